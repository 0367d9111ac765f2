"""One row of a table: all repetitions trained and scored as one program."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from hybridsde._devices import over_seeds
from hybridsde._parameters import Relative
from hybridsde._types import Array, Float, Keys, PRNGKeyArray
from hybridsde.data import Batch
from hybridsde.fit import Callback, Fitted, train_many
from hybridsde.forecast import AbstractForecaster, Prediction, evaluate
from hybridsde.hybrid import HybridSDE, SDEForecaster
from hybridsde.hybrid.sparse import Sparse, fit_sparse
from hybridsde.model import AbstractObservation, BayesianSDE, Gate
from hybridsde.model.drift import make_gate
from hybridsde.paper.preset import LIBRARY, METHODS, PHYSICS, Preset
from hybridsde.paper.system import Protocol, System, recording, recording_keys
from hybridsde.run import Repetitions, fit_and_score
from hybridsde.simulate import EulerMaruyama, Heun

DRAWS = 100
"""Paths per test sequence. The paper averages 21, too few for the coverage of an interval."""


@eqx.filter_jit
def prepare(
    system: System,
    protocol: Protocol,
    model: HybridSDE,
    gate: Float[Array, " state"] | Gate,
    keys: Keys,
) -> tuple[Batch, Batch, BayesianSDE]:
    """Data sets and untrained models of all repetitions.

    Rows differ in their gate alone, so where it is given as numbers one compiled program trains
    them all. A gate that is learned has a program for every row.
    """

    def one(key: PRNGKeyArray, data_key: PRNGKeyArray):
        _, physics_key, init_key = jr.split(key, 3)
        train, test = recording(system, protocol, key=data_key)
        hybrid = replace(model, physics=system.noisy(key=physics_key))
        untrained = hybrid.init(train, key=init_key)
        if isinstance(gate, Gate):
            return train, test, eqx.tree_at(lambda m: m.known.gate, untrained, gate)
        held = eqx.tree_at(lambda m: m.known.gate.strength.frozen, untrained, gate)
        return train, test, held

    return over_seeds(one, keys, recording_keys(protocol, keys))


class UncertainPhysics(AbstractForecaster):
    """Physics alone whose parameters are only known with their error.

    Each path has parameters of its own. Where ξ̃ ~ N(ξ, s²) is known, and nothing else about ξ,
    belief in ξ is N(ξ̃, s²).
    """

    base: SDEForecaster
    system: System = eqx.field(static=True)

    def __init__(self, base: SDEForecaster, system: System):
        self.base, self.system = base, system

    @property
    def observation(self) -> AbstractObservation:
        """What is measured of the states."""
        return self.base.observation

    @property
    def context(self) -> int:
        """How many first rows a forecast is given."""
        return self.base.context

    def predict(
        self, batch: Batch, draws: int, *, paths_per_weight: int = 1, key: PRNGKeyArray
    ) -> Prediction:
        """Every path under parameters of its own."""
        del paths_per_weight

        def path(key: PRNGKeyArray) -> Float[Array, "series time state"]:
            physics_key, path_key = jr.split(key)
            physics = self.system.blurred(self.base.model.known.physics, key=physics_key)
            drawn = eqx.tree_at(lambda f: f.model.known.physics, self.base, physics)
            return drawn.predict(batch, 1, key=path_key).states[0]

        states = jax.vmap(path)(jr.split(key, draws))
        return Prediction.of_states(self.observation, states)

    def spreads(self) -> dict[str, Relative]:
        """Declared, all of them."""
        return self.base.spreads()

    def describe(self) -> str:
        """As its base does."""
        return self.base.describe()


def run_row(
    system: System,
    protocol: Protocol,
    preset: Preset,
    known: tuple[str, ...],
    method: str,
    *,
    repetitions: int,
    seed: int = 0,
    callbacks: tuple[Callback, ...] = (),
) -> Repetitions:
    """Train and score one row of a table. Physics alone ("physics") is not trained."""
    keys, fit_keys, test_keys = repetition_keys(repetitions, seed)
    alone = method == PHYSICS
    learned = preset.learned_gate and method in METHODS
    gate = make_gate("learn", system.states, known) if learned else system.gate(known)
    model = model_of(preset, method)
    train, test, models = prepare(system, protocol, model, gate, keys)

    def untrained() -> Fitted:
        none = np.zeros(repetitions, int)
        return Fitted(models, {}, none.astype(bool), none, none)

    def forecaster(model: BayesianSDE) -> AbstractForecaster:
        base = forecaster_of(preset, method, model)
        return UncertainPhysics(base, system) if alone and preset.uncertain_physics else base

    def trained() -> Fitted:
        return train_row(models, train, preset, method, callbacks, fit_keys)

    return fit_and_score(
        untrained if alone else trained,
        test,
        draws=DRAWS,
        keys=test_keys,
        adjust=forecaster,
    )


def model_of(preset: Preset, method: str) -> HybridSDE:
    """What a method declares, without physics.

    A library is declared as `fit` takes it by default: of a preset it has the names of the states.
    """
    if method == LIBRARY:
        return HybridSDE(states=preset.model.states, learned=LIBRARY)
    return replace(preset.model, hidden=None) if method == PHYSICS else preset.model


def forecaster_of(preset: Preset, method: str, model: BayesianSDE) -> SDEForecaster:
    """What a fitted model forecasts with."""
    return SDEForecaster(model, Heun() if method == LIBRARY else preset.solver)


def train_row(
    models: BayesianSDE,
    train: Batch,
    preset: Preset,
    method: str,
    callbacks: tuple[Callback, ...],
    keys: Keys,
) -> Fitted[BayesianSDE]:
    """All repetitions of a row, each on its own recording."""
    if method == LIBRARY:
        return fit_libraries(models, train)
    return train_many(
        models,
        jax.vmap(preset.pieces)(train),
        preset.objective(method),
        training=preset.training,
        callbacks=callbacks,
        keys=keys,
    )


def fit_libraries(models: BayesianSDE, train: Batch) -> Fitted[BayesianSDE]:
    """Terms by their evidence, one repetition after the other: each search is its own."""
    arrays, static = eqx.partition((models, train), eqx.is_array)

    def one(number: int) -> Sparse:
        model, batch = eqx.combine(jax.tree.map(lambda leaf: leaf[number], arrays), static)
        return fit_sparse(model, Heun(), batch)

    found = [one(number) for number in range(train.times.shape[0])]
    fitted = [eqx.filter(one.model, eqx.is_array) for one in found]
    lost = np.array([not np.isfinite(one.log_evidence) for one in found])
    steps = np.array([len(one.log_likelihoods) for one in found])
    same = eqx.partition(found[0].model, eqx.is_array)[1]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *fitted)
    return Fitted(eqx.combine(stacked, same), {}, lost, steps, steps)


def floors(system: System, protocol: Protocol, repetitions: int, seed: int) -> tuple[float, float]:
    """MSE of the true SDE with ten sub-steps, and of predicting that nothing moves."""
    keys, _, test_keys = repetition_keys(repetitions, seed)
    exact = system.exact()

    @eqx.filter_jit
    def all_repetitions(keys: Keys, test_keys: Keys):
        def one(key: PRNGKeyArray, data_key: PRNGKeyArray, test_key: PRNGKeyArray):
            train, test = recording(system, protocol, key=data_key)
            truth = SDEForecaster(exact.init(train, key=key), EulerMaruyama(substeps=10))
            scores = evaluate(truth, test, DRAWS, key=test_key)
            still = jnp.mean((test.values[:, 1:] - test.values[:, :1]) ** 2)
            return scores["mse"][-1], still

        data_keys = recording_keys(protocol, keys)
        return over_seeds(one, keys, data_keys, test_keys, one_by_one=True)

    oracle, persistence = all_repetitions(keys, test_keys)
    return float(oracle.mean()), float(persistence.mean())


def repetition_keys(repetitions: int, seed: int) -> tuple[Keys, Keys, Keys]:
    """For data and models, for training, and for testing."""
    model, fit, test = (jr.split(key, repetitions) for key in jr.split(jr.key(seed), 3))
    return model, fit, test
