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
from hybridsde.model import AbstractObservation, BayesianSDE, Gate
from hybridsde.model.drift import make_gate
from hybridsde.paper.preset import Preset
from hybridsde.paper.system import Protocol, System, recording
from hybridsde.run import Repetitions, fit_and_score
from hybridsde.simulate import EulerMaruyama

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

    def one(key: PRNGKeyArray):
        data_key, physics_key, init_key = jr.split(key, 3)
        train, test = recording(system, protocol, key=data_key)
        hybrid = replace(model, physics=system.noisy(key=physics_key))
        untrained = hybrid.init(train, key=init_key)
        if isinstance(gate, Gate):
            return train, test, eqx.tree_at(lambda m: m.known.gate, untrained, gate)
        held = eqx.tree_at(lambda m: m.known.gate.strength.frozen, untrained, gate)
        return train, test, held

    return over_seeds(one, keys)


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
    alone = method == "physics"
    learned = preset.learned_gate and not alone
    gate = make_gate("learn", system.states, known) if learned else system.gate(known)
    model = replace(preset.model, hidden=None) if alone else preset.model
    train, test, models = prepare(system, protocol, model, gate, keys)

    def untrained() -> Fitted:
        none = np.zeros(repetitions, int)
        return Fitted(models, {}, none.astype(bool), none, none)

    def forecaster(model: BayesianSDE) -> AbstractForecaster:
        base = SDEForecaster(model, preset.solver)
        return UncertainPhysics(base, system) if alone and preset.uncertain_physics else base

    return fit_and_score(
        untrained
        if alone
        else lambda: train_row(models, train, preset, method, callbacks, fit_keys),
        test,
        draws=DRAWS,
        keys=test_keys,
        adjust=forecaster,
    )


def train_row(
    models: BayesianSDE,
    train: Batch,
    preset: Preset,
    method: str,
    callbacks: tuple[Callback, ...],
    keys: Keys,
) -> Fitted[BayesianSDE]:
    """All repetitions of a row, each on its own recording."""
    return train_many(
        models,
        jax.vmap(preset.pieces)(train),
        preset.objective(method),
        training=preset.training,
        callbacks=callbacks,
        keys=keys,
    )


def floors(system: System, protocol: Protocol, repetitions: int, seed: int) -> tuple[float, float]:
    """MSE of the true SDE with ten sub-steps, and of predicting that nothing moves."""
    keys, _, test_keys = repetition_keys(repetitions, seed)
    exact = system.exact()

    @eqx.filter_jit
    def all_repetitions(keys: Keys, test_keys: Keys):
        def one(key: PRNGKeyArray, test_key: PRNGKeyArray):
            train, test = recording(system, protocol, key=jr.split(key, 3)[0])
            truth = SDEForecaster(exact.init(train, key=key), EulerMaruyama(substeps=10))
            scores = evaluate(truth, test, DRAWS, key=test_key)
            still = jnp.mean((test.values[:, 1:] - test.values[:, :1]) ** 2)
            return scores["mse"][-1], still

        return over_seeds(one, keys, test_keys, one_by_one=True)

    oracle, persistence = all_repetitions(keys, test_keys)
    return float(oracle.mean()), float(persistence.mean())


def repetition_keys(repetitions: int, seed: int) -> tuple[Keys, Keys, Keys]:
    """For data and models, for training, and for testing."""
    model, fit, test = (jr.split(key, repetitions) for key in jr.split(jr.key(seed), 3))
    return model, fit, test
