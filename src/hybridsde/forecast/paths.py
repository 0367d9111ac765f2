"""Predictive paths as plain arrays: the compiled part of a forecast."""

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from hybridsde._types import Array, Float, PRNGKeyArray
from hybridsde.data import Batch, Trajectories
from hybridsde.model import BayesianSDE
from hybridsde.simulate import AbstractSolver, simulate

STEPS_AT_ONCE = 5_000_000
"""Path-steps simulated in one call, which bounds the memory that the noise takes."""


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
