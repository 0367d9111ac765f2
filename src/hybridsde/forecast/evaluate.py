"""Forecast every series from its first time and score the rest: one compiled program."""

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr

from hybridsde._devices import over_seeds
from hybridsde._types import Array, Float, Keys, PRNGKeyArray
from hybridsde.data import Batch
from hybridsde.forecast.scores import gaussian_nll, mixture_nll, score
from hybridsde.model import AbstractObservation, BayesianSDE
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
    return score_paths(model.observation, states, batch, model.context, key=noise_key)


def score_paths(
    observation: AbstractObservation,
    states: Float[Array, "sample series time state"],
    batch: Batch,
    context: int = 1,
    *,
    key: PRNGKeyArray,
) -> dict[str, Float[Array, " column"]]:
    """Every score of sampled paths, their first times left out, which are given."""
    later, values = states[:, :, context:], batch.values[:, context:]
    means, draws = observation.mean(later), observation.sample(later, key=key)
    sd = jnp.broadcast_to(observation.sd.value, (len(observation.names),))
    slope = observation.log_slope(values)
    densities = {
        "nll": mixture_nll(means, sd, values) + slope,
        "nll_gaussian": gaussian_nll(means, sd, values) + slope,
    }
    raw = observation.raw
    return score(raw(means), raw(draws), raw(values), densities, batch.observed[:, context:])


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
