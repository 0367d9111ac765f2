"""Forecast every series from its first time and score the rest: one compiled program."""

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr

from hybridsde._types import Array, Float, PRNGKeyArray
from hybridsde.data import Batch
from hybridsde.forecast.scores import score
from hybridsde.model import BayesianSDE
from hybridsde.simulate import AbstractSolver, simulate


@eqx.filter_jit
def evaluate(
    model: BayesianSDE, solver: AbstractSolver, batch: Batch, draws: int, *, key: PRNGKeyArray
) -> dict[str, Float[Array, " column"]]:
    """Every score: one number per observation, then one over all of them.

    All draws are independent: each has its own weights. Can be mapped over repetitions.
    """
    path_key, noise_key = jr.split(key)
    states = simulate(model, solver, batch, samples=draws, key=path_key).states[:, :, 1:]
    observation = model.observation
    return score(
        observation.mean(states),
        observation.sample(states, key=noise_key),
        jnp.broadcast_to(observation.sd.value, (len(observation.names),)),
        batch.values[:, 1:],
        batch.observed[:, 1:],
    )
