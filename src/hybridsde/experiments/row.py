"""One row of a table: all repetitions trained and scored as one program."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr

from hybridsde._devices import over_seeds
from hybridsde._types import Array, Float, Keys, PRNGKeyArray
from hybridsde.data import Batch
from hybridsde.experiments.preset import Preset
from hybridsde.experiments.system import Protocol, System, recording
from hybridsde.fit import Callback, Fitted, train_many
from hybridsde.forecast import evaluate, score_many, score_paths
from hybridsde.model import BayesianSDE, Gate, HybridSDE
from hybridsde.model.drift import make_gate
from hybridsde.simulate import AbstractSolver, EulerMaruyama, simulate

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


@eqx.filter_jit
def score_physics(
    system: System, models: BayesianSDE, solver: AbstractSolver, test: Batch, draws: int, keys: Keys
) -> dict[str, Float[Array, "seed column"]]:
    """Scores of physics alone whose parameters are only known with their error.

    Each path has parameters of its own. Where ξ̃ ~ N(ξ, s²) is known, and nothing else about ξ,
    belief in ξ is N(ξ̃, s²).
    """

    def one(model: BayesianSDE, batch: Batch, key: PRNGKeyArray) -> dict[str, Float[Array, " _"]]:
        def path(key: PRNGKeyArray) -> Float[Array, "series time state"]:
            physics_key, path_key = jr.split(key)
            physics = system.blurred(model.known.physics, key=physics_key)
            drawn = eqx.tree_at(lambda m: m.known.physics, model, physics)
            return simulate(drawn, solver, batch, samples=1, key=path_key).states[0]

        draw_key, noise_key = jr.split(key)
        states = jax.vmap(path)(jr.split(draw_key, draws))
        return score_paths(model.observation, states, batch, key=noise_key)

    return over_seeds(one, models, test, keys, one_by_one=True)


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
) -> tuple[dict[str, Float[Array, "seed column"]], Fitted | None]:
    """Train and score one row of a table. Physics alone ("physics") is not trained."""
    keys, fit_keys, test_keys = repetition_keys(repetitions, seed)
    alone = method == "physics"
    learned = preset.learned_gate and not alone
    gate = make_gate("learn", system.states, known) if learned else system.gate(known)
    model = replace(preset.model, hidden=None) if alone else preset.model
    train, test, models = prepare(system, protocol, model, gate, keys)
    fitted = None
    if alone and preset.uncertain_physics:
        scores = score_physics(system, models, preset.solver, test, DRAWS, test_keys)
        return scores, None
    if not alone:
        fitted = train_many(
            models,
            jax.vmap(preset.pieces)(train),
            preset.objective(method),
            solver=preset.solver,
            training=preset.training,
            callbacks=callbacks,
            keys=fit_keys,
        )
        models = fitted.model
    return score_many(models, preset.solver, test, DRAWS, test_keys), fitted


def floors(system: System, protocol: Protocol, repetitions: int, seed: int) -> tuple[float, float]:
    """MSE of the true SDE with ten sub-steps, and of predicting that nothing moves."""
    keys, _, test_keys = repetition_keys(repetitions, seed)
    exact = system.exact()

    @eqx.filter_jit
    def all_repetitions(keys: Keys, test_keys: Keys):
        def one(key: PRNGKeyArray, test_key: PRNGKeyArray):
            train, test = recording(system, protocol, key=jr.split(key, 3)[0])
            model = exact.init(train, key=key)
            scores = evaluate(model, EulerMaruyama(substeps=10), test, DRAWS, key=test_key)
            still = jnp.mean((test.values[:, 1:] - test.values[:, :1]) ** 2)
            return scores["mse"][-1], still

        return over_seeds(one, keys, test_keys, one_by_one=True)

    oracle, persistence = all_repetitions(keys, test_keys)
    return float(oracle.mean()), float(persistence.mean())


def repetition_keys(repetitions: int, seed: int) -> tuple[Keys, Keys, Keys]:
    """For data and models, for training, and for testing."""
    model, fit, test = (jr.split(key, repetitions) for key in jr.split(jr.key(seed), 3))
    return model, fit, test
