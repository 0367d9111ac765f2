"""Predictive paths as plain arrays: the compiled part of a forecast."""

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from hybridsde._types import Array, Float, Numbers, PRNGKeyArray
from hybridsde.data import Batch, Trajectories
from hybridsde.model import BayesianSDE
from hybridsde.simulate import AbstractSolver, simulate

STEPS_AT_ONCE = 5_000_000
"""Path-steps simulated in one call, which bounds the memory that the noise takes."""


def clock_of(
    start: Trajectories, times: Numbers | None, elapsed: Numbers | None, context: int
) -> np.ndarray:
    """Forecast times on the clock of the data, one row per trajectory."""
    if (times is None) == (elapsed is None):
        raise ValueError("Give exactly one of `times` and `elapsed`.")
    first = start.times[:, :1]
    name = "times" if elapsed is None else "elapsed"
    given = np.asarray(times if elapsed is None else elapsed, float)
    rows = len(given) if given.ndim == 2 else len(start)
    if given.ndim not in (1, 2) or given.size == 0 or rows != len(start):
        raise ValueError(
            f"`{name}` must be one grid for all, or one row for each of the {len(start)} "
            f"trajectories, but has shape {given.shape}."
        )
    clock = np.broadcast_to(given, (len(start), given.shape[-1]))
    clock = clock if elapsed is None else first + clock
    whole = np.concatenate([start.times[:, context - 1 : context], clock], 1)
    if not np.isfinite(whole).all():
        raise ValueError(f"`{name}` must be finite.")
    early = np.argwhere(np.diff(whole, axis=1) < 0)
    if early.size:
        series, index = early[0]
        raise ValueError(
            f"`{name}` must not decrease or lie before the start of a trajectory, but for "
            f"{start.ids[series]!r} entry {index} is {clock[series, index]:g} after "
            f"{whole[series, index]:g}. Use `elapsed` for times since each start."
        )
    return clock


def future(
    start: Trajectories,
    times: Float[np.ndarray, "series time"],
    inputs: Float[np.ndarray, "series time input"] | None,
    context: int = 1,
) -> Batch:
    """A batch that begins with the first rows of `start` and asks for nothing but `times`."""
    given = slice(0, context)
    clock = np.concatenate([start.times[:, given], times], 1)
    rows = clock.shape[1]
    values = np.zeros((len(start), rows, len(start.states)))
    observed = np.zeros(values.shape, bool)
    values[:, given], observed[:, given] = start.values[:, given], start.observed[:, given]
    if inputs is None:
        inputs = np.repeat(start.inputs[:, context - 1 : context], times.shape[1], 1)
    return Batch(
        times=jnp.asarray(clock),
        steps=jnp.asarray(np.diff(clock)),
        values=jnp.asarray(values),
        observed=jnp.asarray(observed),
        inputs=jnp.asarray(np.concatenate([start.inputs[:, given], inputs], 1)),
        recorded=jnp.ones(clock.shape, bool),
    )


def predict(
    model: BayesianSDE,
    solver: AbstractSolver,
    batch: Batch,
    *,
    draws: int,
    paths_per_weight: int,
    key: PRNGKeyArray,
) -> Float[np.ndarray, "sample series time state"]:
    """Sampled states at all times of the batch, the start included.

    Draws come in groups of `paths_per_weight` that share their weights.
    """
    weights = draws // paths_per_weight
    steps = max(1, batch.steps.size * solver.substeps * paths_per_weight)
    size = int(np.clip(STEPS_AT_ONCE // steps, 1, weights))
    chunks = -(-weights // size)
    parts = [
        np.asarray(_simulate(model, solver, batch, size, paths_per_weight, key=chunk_key))
        for chunk_key in jr.split(key, chunks)
    ]
    return np.concatenate(parts)[:draws]


@eqx.filter_jit
def _simulate(
    model: BayesianSDE,
    solver: AbstractSolver,
    batch: Batch,
    samples: int,
    paths: int,
    *,
    key: PRNGKeyArray,
) -> Float[Array, "sample series time state"]:
    return simulate(model, solver, batch, samples=samples, paths=paths, key=key).states
