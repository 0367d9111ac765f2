"""The paper's Lorenz experiment: forecasts with one equation known, none, or all.

Haussmann et al. 2021, Table 1. The first half of a recording is cut into training sequences, the
second half into test sequences; the later points of each are predicted from its first.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax import lax

from hybridsde._types import Array, Float, Keys, PRNGKeyArray, PyTree
from hybridsde.data import Batch
from hybridsde.datasets import lorenz
from hybridsde.experiments.preset import Preset
from hybridsde.experiments.table import Results, Row, summarise
from hybridsde.fit import Callback, Fitted, Training, train_many
from hybridsde.forecast import evaluate
from hybridsde.model import BayesianSDE, HybridSDE
from hybridsde.physics import AbstractPhysics, known_drift
from hybridsde.simulate import AbstractSolver, EulerMaruyama

PARAMETER_SD = 1.0
"""Spread of the error in each known parameter, drawn once per repetition."""
DRAWS = 100
"""Paths per test sequence. The paper averages 21, too few for the coverage of an interval."""

KNOWN = {"none": (), "x": ("x",), "y": ("y",), "z": ("z",), "all": ("x", "y", "z")}
"""Which equations each row is given."""

PUBLISHED = {
    ("none", "e-bayes"): 29.20,
    ("none", "e-pac-bayes"): 29.05,
    ("x", "e-bayes"): 27.58,
    ("x", "e-pac-bayes"): 27.42,
    ("y", "e-bayes"): 15.87,
    ("y", "e-pac-bayes"): 15.06,
    ("z", "e-bayes"): 27.82,
    ("z", "e-pac-bayes"): 28.37,
    ("all", "physics"): 16.40,
}
"""Mean test MSE of Table 1."""

PRESETS = {
    "paper": Preset(
        HybridSDE(
            states=lorenz.STATES,
            diffusion=lorenz.DIFFUSION,
            noise=1.0,
            standardise=False,
            weights="local",
            initial_sd=0.1,
            last_layer=1.0,
        ),
        Training(epochs=100, batch_size=2, learning_rate=1e-3, schedule="constant", clip=None),
        EulerMaruyama(),
        samples=1,
    ),
    "recommended": Preset(
        HybridSDE(states=lorenz.STATES, diffusion=lorenz.DIFFUSION, noise=0.4),
        Training(epochs=500, batch_size=2, learning_rate=5e-3, schedule="cosine"),
        EulerMaruyama(),
        samples=2,
    ),
}


@dataclass(frozen=True)
class Protocol:
    """How a recording is cut."""

    train_sequences: int
    train_length: int
    test_sequences: int
    test_length: int


PROTOCOLS = {
    "24": Protocol(20, 24, 20, 24),
    "appendix": Protocol(20, 50, 10, 100),
}


def sequences(path: Float[Array, "time state"], first: int, count: int, length: int) -> Batch:
    """Consecutive sequences of a recording, from observation `first` on."""
    end = first + count * length
    shape = (count, length)
    values = path[first:end].reshape(*shape, -1)
    return Batch(
        times=lorenz.INTERVAL * jnp.arange(first, end, dtype=path.dtype).reshape(shape),
        steps=jnp.full((count, length - 1), lorenz.INTERVAL),
        values=values,
        observed=jnp.ones(values.shape, bool),
        inputs=jnp.zeros((*shape, 0)),
        recorded=jnp.ones(shape, bool),
    )


def recording(protocol: Protocol, *, key: PRNGKeyArray) -> tuple[Batch, Batch]:
    """Training and test sequences of one recording."""
    path = lorenz.observe(key=key)
    return (
        sequences(path, 0, protocol.train_sequences, protocol.train_length),
        sequences(path, len(path) // 2, protocol.test_sequences, protocol.test_length),
    )


def noisy_physics(*, key: PRNGKeyArray) -> AbstractPhysics:
    """All equations, each parameter off by a standard normal error.

    Rows differ in their gate alone, so one compiled program serves them all.
    """
    errors = PARAMETER_SD * jr.normal(key, (len(lorenz.TRUE),))
    pairs = zip(lorenz.TRUE.items(), errors, strict=True)
    return known_drift(lorenz.equations, **{name: true + error for (name, true), error in pairs})


@eqx.filter_jit
def prepare(
    keys: Keys, gate: Float[Array, " state"], model: HybridSDE, protocol: Protocol
) -> tuple[Batch, Batch, BayesianSDE]:
    """Data sets and untrained models of all repetitions."""

    def one(key: PRNGKeyArray):
        data_key, physics_key, init_key = jr.split(key, 3)
        train, test = recording(protocol, key=data_key)
        hybrid = replace(model, physics=noisy_physics(key=physics_key))
        untrained = hybrid.init(train, key=init_key)
        gated = eqx.tree_at(lambda m: m.known.gate.strength.frozen, untrained, gate)
        return train, test, gated

    return eqx.filter_vmap(one)(keys)


@eqx.filter_jit
def score_many(
    models: BayesianSDE, solver: AbstractSolver, test: Batch, draws: int, keys: Keys
) -> dict[str, Float[Array, "seed column"]]:
    """Scores of every repetition on its own test sequences, one after the other.

    A repetition fills the machine by itself; all at once would only fill its memory.
    """
    arrays, static = eqx.partition((models, test, keys), eqx.is_array)

    def one(arrays: PyTree) -> dict[str, Float[Array, " column"]]:
        model, batch, key = eqx.combine(arrays, static)
        return evaluate(model, solver, batch, draws, key=key)

    return lax.map(one, arrays)


def run_row(
    known: str,
    method: str,
    preset: Preset,
    *,
    repetitions: int,
    protocol: Protocol = PROTOCOLS["24"],
    seed: int = 0,
    callbacks: tuple[Callback, ...] = (),
) -> tuple[dict[str, Float[Array, "seed column"]], Fitted | None]:
    """Train and score one row of the table, all repetitions as one program.

    Physics alone ("physics") is not trained.
    """
    keys, fit_keys, test_keys = (jr.split(key, repetitions) for key in jr.split(jr.key(seed), 3))
    gate = jnp.array([float(name in KNOWN[known]) for name in lorenz.STATES])
    alone = method == "physics"
    model = replace(preset.model, hidden=None) if alone else preset.model
    train, test, models = prepare(keys, gate, model, protocol)
    fitted = None
    if not alone:
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


def floors(repetitions: int, protocol: Protocol, seed: int) -> tuple[float, float]:
    """MSE of the true SDE with sub-steps of 1e-3, and of predicting that nothing moves."""
    keys, _, test_keys = (jr.split(key, repetitions) for key in jr.split(jr.key(seed), 3))
    truth = HybridSDE(
        states=lorenz.STATES,
        physics=lorenz.true_physics(),
        diffusion=lorenz.DIFFUSION,
        noise=1e-3,
        hidden=None,
    )

    @eqx.filter_jit
    def all_repetitions(keys: Keys, test_keys: Keys):
        def one(key: PRNGKeyArray, test_key: PRNGKeyArray):
            train, test = recording(protocol, key=jr.split(key, 3)[0])
            model = truth.init(train, key=key)
            scores = evaluate(model, EulerMaruyama(substeps=10), test, DRAWS, key=test_key)
            still = jnp.mean((test.values[:, 1:] - test.values[:, :1]) ** 2)
            return scores["mse"][-1], still

        return eqx.filter_vmap(one)(keys, test_keys)

    oracle, persistence = all_repetitions(keys, test_keys)
    return float(oracle.mean()), float(persistence.mean())


NOTES = """\
Where our numbers differ from the published ones, and why:

- The published black-box rows are near what raw, unscaled inputs give (`paper` preset). The
  `recommended` preset standardises states and drift and trains longer with a decaying rate.
- The published second-equation rows (15.87, 15.06) are ten times ours: the drift here does not see
  absolute time, which at test time is always outside the range it was trained on.
- The published row (v), 16.40, is explained by parameters of standard deviation 2 with fresh noise
  at every step, as in the public reference code. Here they are drawn once, with standard deviation
  1, as the paper's text says.
- Table 1 swaps the means of κ and ρ. Here κ = 28 stands in the second equation and ρ = 2.67 in the
  third.
- S, σ and the initial spread of the weights are not given in the paper. `paper` uses S = 1, σ = 1
  and 0.1.
"""


def reproduce(
    folder: Path,
    *,
    presets: tuple[str, ...],
    repetitions: int,
    protocol: str,
    seed: int,
    watch: Callable[[str], tuple[Callback, ...]],
) -> Results:
    """Every row of Table 1 under the chosen presets, saved as they finish.

    `watch` gives the callbacks of a row by its name.
    """
    results = Results(folder, "Lorenz attractor (Haussmann et al. 2021, Table 1)", NOTES)
    began = time.monotonic()
    for name in presets:
        for (known, method), published in PUBLISHED.items():
            identity = (known, method, name, protocol, repetitions, seed)

            def compute(known=known, method=method, name=name, published=published) -> Row:
                start = time.monotonic()
                preset = PRESETS[name]
                scores, fitted = run_row(
                    known,
                    method,
                    preset,
                    repetitions=repetitions,
                    protocol=PROTOCOLS[protocol],
                    seed=seed,
                    callbacks=() if method == "physics" else watch(f"{name} {known} {method}"),
                )
                return Row(
                    known,
                    method,
                    name,
                    protocol,
                    repetitions,
                    seed,
                    **summarise(scores),
                    published_mse=published,
                    diverged=0 if fitted is None else int(np.sum(fitted.diverged)),
                    seconds=time.monotonic() - start,
                )

            results.get(identity, compute)
    oracle, persistence = floors(repetitions, PROTOCOLS[protocol], seed)
    results.extra = {
        "oracle_mse": oracle,
        "persistence_mse": persistence,
        "seconds": time.monotonic() - began,
    }
    results.save()
    return results
