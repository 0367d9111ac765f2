"""Forecast every series from its first time and score the rest: one compiled program."""

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr

from hybridsde._types import Array, Float, PRNGKeyArray
from hybridsde.data import Batch
from hybridsde.forecast.scores import score
from hybridsde.model import BayesianSDE, GaussianObservation
from hybridsde.simulate import AbstractSolver, simulate


@eqx.filter_jit
def evaluate(
    model: BayesianSDE, solver: AbstractSolver, batch: Batch, draws: int, *, key: PRNGKeyArray
) -> dict[str, Float[Array, " column"]]:
    """Every score: one number per observation, then one over all of them.

    All draws are independent: each has its own weights. Can be mapped over repetitions.
    """
    path_key, noise_key = jr.split(key)
    states = simulate(model, solver, batch, samples=draws, key=path_key).states
    return score_paths(model.observation, states, batch, key=noise_key)


def score_paths(
    observation: GaussianObservation,
    states: Float[Array, "sample series time state"],
    batch: Batch,
    *,
    key: PRNGKeyArray,
) -> dict[str, Float[Array, " column"]]:
    """Every score of sampled paths, their first time left out, which is given."""
    later = states[:, :, 1:]
    return score(
        observation.mean(later),
        observation.sample(later, key=key),
        jnp.broadcast_to(observation.sd.value, (len(observation.names),)),
        batch.values[:, 1:],
        batch.observed[:, 1:],
    )
