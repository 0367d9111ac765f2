"""Experiments on a simulated system of which part is known, all repetitions as one program."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from hybridsde._devices import over_seeds
from hybridsde._types import Array, Float, Keys, PRNGKeyArray
from hybridsde.data import Batch
from hybridsde.experiments.preset import Preset
from hybridsde.experiments.table import Results, Row, RowKey, fingerprint, summarise
from hybridsde.fit import Callback, Fitted, train_many
from hybridsde.forecast import evaluate, score_paths
from hybridsde.model import BayesianSDE, Gate, HybridSDE
from hybridsde.model.drift import make_gate
from hybridsde.physics import AbstractPhysics, FunctionPhysics, known_drift
from hybridsde.simulate import AbstractSolver, EulerMaruyama, simulate

DRAWS = 100
"""Paths per test sequence. The paper averages 21, too few for the coverage of an interval."""


@dataclass(frozen=True)
class System:
    """A simulated system: its recording, its true equations, and the noisy knowledge of them."""

    states: tuple[str, ...]
    diffusion: tuple[float, ...]
    interval: float
    observe: Callable[..., Float[Array, "time state"]]
    """One recording from a `key`."""
    equations: Callable
    truth: Callable[[], FunctionPhysics]
    """All equations with the true parameters."""
    parameter_sd: float
    """Spread of the error in each known parameter, drawn once per repetition."""

    def noisy(self, *, key: PRNGKeyArray) -> FunctionPhysics:
        """All equations, each parameter off by its own normal error."""
        return self.blurred(self.truth(), key=key)

    def blurred(self, physics: AbstractPhysics, *, key: PRNGKeyArray) -> FunctionPhysics:
        """The same equations with a further error in every parameter."""
        if not isinstance(physics, FunctionPhysics):
            raise ValueError(f"Only parameters of a function can be blurred, not of {physics!r}.")
        errors = self.parameter_sd * jr.normal(key, (len(physics.parameters),))
        pairs = zip(physics.parameters.items(), errors, strict=True)
        return known_drift(self.equations, **{name: p.value + error for (name, p), error in pairs})


@dataclass(frozen=True)
class Protocol:
    """How a recording is cut: its first half into training sequences, its second into tests."""

    train_sequences: int
    train_length: int
    test_sequences: int
    test_length: int


def cut(
    system: System, path: Float[Array, "time state"], first: int, count: int, length: int
) -> Batch:
    """Consecutive sequences of a recording, from observation `first` on."""
    end = first + count * length
    shape = (count, length)
    values = path[first:end].reshape(*shape, -1)
    return Batch(
        times=system.interval * jnp.arange(first, end, dtype=path.dtype).reshape(shape),
        steps=jnp.full((count, length - 1), system.interval),
        values=values,
        observed=jnp.ones(values.shape, bool),
        inputs=jnp.zeros((*shape, 0)),
        recorded=jnp.ones(shape, bool),
    )


def recording(system: System, protocol: Protocol, *, key: PRNGKeyArray) -> tuple[Batch, Batch]:
    """Training and test sequences of one recording."""
    path = system.observe(key=key)
    return (
        cut(system, path, 0, protocol.train_sequences, protocol.train_length),
        cut(system, path, len(path) // 2, protocol.test_sequences, protocol.test_length),
    )


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
def score_many(
    models: BayesianSDE, solver: AbstractSolver, test: Batch, draws: int, keys: Keys
) -> dict[str, Float[Array, "seed column"]]:
    """Scores of every repetition on its own test sequences, one after the other.

    A repetition fills a device by itself; all at once would only fill its memory.
    """

    def one(model: BayesianSDE, batch: Batch, key: PRNGKeyArray) -> dict[str, Float[Array, " _"]]:
        return evaluate(model, solver, batch, draws, key=key)

    return over_seeds(one, models, test, keys, one_by_one=True)


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
    gate = jnp.array([float(name in known) for name in system.states])
    if preset.learned_gate and not alone:
        gate = make_gate("learn", system.states, known)
    model = replace(preset.model, hidden=None) if alone else preset.model
    train, test, models = prepare(system, protocol, model, gate, keys)
    fitted = None
    if alone and preset.uncertain_physics:
        scores = score_physics(system, models, preset.solver, test, DRAWS, test_keys)
        return scores, None
    if not alone:
        if preset.window is not None:
            length, stride = preset.window
            train = jax.vmap(lambda one: one.windows(length, stride))(train)
        fitted = train_many(
            models,
            train,
            preset.objective(method),
            solver=preset.solver,
            training=preset.training,
            callbacks=callbacks,
            keys=fit_keys,
        )
        models = fitted.model
    return score_many(models, preset.solver, test, DRAWS, test_keys), fitted


@dataclass(frozen=True)
class Experiment:
    """A table of the paper: its system, its rows, and the settings to run them with."""

    title: str
    notes: str
    """Why measured and published numbers differ."""
    system: System
    protocols: Mapping[str, Protocol]
    known: Mapping[str, tuple[str, ...]]
    """The equations behind each name in the column "known"."""
    published: Mapping[tuple[str, str], float | None]
    """The rows, (known, method), with the mean test MSE that the paper gives."""
    presets: Mapping[str, Preset]

    def epochs(self, presets: tuple[str, ...]) -> int:
        """How many epochs all rows take together."""
        rows = sum(method != "physics" for _, method in self.published)
        return rows * sum(self.presets[name].training.epochs for name in presets)

    def reproduce(
        self,
        folder: Path,
        *,
        presets: tuple[str, ...],
        repetitions: int,
        protocol: str,
        seed: int,
        watch: Callable[[str], tuple[Callback, ...]],
    ) -> Results:
        """Every row under the chosen presets, saved as they finish.

        `watch` gives the callbacks of a row by its name.
        """
        results = Results(folder, self.title, self.notes)
        for preset in presets:
            for known, method in self.published:
                system = (self.system.diffusion, self.system.interval, self.system.parameter_sd)
                settings = fingerprint(
                    self.presets[preset], self.protocols[protocol], system, DRAWS
                )
                key = RowKey(known, method, preset, protocol, repetitions, seed, settings)
                results.get(key, lambda key=key: self._row(key, watch))
        oracle, persistence = floors(self.system, self.protocols[protocol], repetitions, seed)
        results.extra = {
            "oracle_mse": oracle,
            "persistence_mse": persistence,
            "seconds": sum(row.seconds for row in results.rows),
        }
        results.save()
        return results

    def _row(self, key: RowKey, watch: Callable[[str], tuple[Callback, ...]]) -> Row:
        began = time.monotonic()
        scores, fitted = run_row(
            self.system,
            self.protocols[key.protocol],
            self.presets[key.preset],
            self.known[key.known],
            key.method,
            repetitions=key.repetitions,
            seed=key.seed,
            callbacks=() if key.method == "physics" else watch(" ".join(key[:3])),
        )
        return Row(
            *key,
            **summarise(scores),
            published_mse=self.published[key.known, key.method],
            diverged=0 if fitted is None else int(np.sum(fitted.diverged)),
            seconds=time.monotonic() - began,
        )


def floors(system: System, protocol: Protocol, repetitions: int, seed: int) -> tuple[float, float]:
    """MSE of the true SDE with ten sub-steps, and of predicting that nothing moves."""
    keys, _, test_keys = repetition_keys(repetitions, seed)
    exact = HybridSDE(
        states=system.states,
        physics=system.truth(),
        diffusion=system.diffusion,
        noise=1e-3,
        hidden=None,
    )

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
