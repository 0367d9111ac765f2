"""Forecast every series from its first time and score the rest: one compiled program."""

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr

from hybridsde._devices import over_seeds, repetitions
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
    means, draws, sd = _seen(observation, states[:, :, context:], key)
    return score_seen(observation, means, draws, sd, batch, context)


def _seen(
    observation: AbstractObservation,
    states: Float[Array, "sample series time state"],
    key: PRNGKeyArray,
) -> tuple[
    Float[Array, "sample series time obs"],
    Float[Array, "sample series time obs"],
    Float[Array, "sample 1 1 obs"],
]:
    """What would be measured of paths, without noise and with it, and the noise of each."""
    means, draws = observation.mean(states), observation.sample(states, key=key)
    sd = jnp.broadcast_to(observation.sd.value, (len(means), 1, 1, len(observation.names)))
    return means, draws, sd


def score_seen(
    observation: AbstractObservation,
    means: Float[Array, "sample series time obs"],
    draws: Float[Array, "sample series time obs"],
    sd: Float[Array, "#sample #series #time obs"],
    batch: Batch,
    context: int,
) -> dict[str, Float[Array, " column"]]:
    """Every score of forecasts of the rows after the given ones, in the units of the data."""
    values = batch.values[:, context:]
    slope = observation.log_slope(values)
    densities = {
        "nll": mixture_nll(means, sd, values) + slope,
        "nll_gaussian": gaussian_nll(means, sd, values) + slope,
    }
    raw = observation.raw
    return score(raw(means), raw(draws), raw(values), densities, batch.observed[:, context:])


@eqx.filter_jit
def score_ensembles(
    models: BayesianSDE, solver: AbstractSolver, test: Batch, draws: int, keys: Keys
) -> dict[str, Float[Array, "seed column"]]:
    """Scores of forecasts that several models make together, `draws` paths by each of them.

    Arrays of `models` begin with the axes seed × member, others with seed. `mse_all` counts the
    rows that are given, too.
    """

    def one(members: BayesianSDE, batch: Batch, key: PRNGKeyArray) -> dict[str, Float[Array, " _"]]:
        def of_member(model: BayesianSDE, key: PRNGKeyArray):
            path_key, noise_key = jr.split(key)
            states = simulate(model, solver, batch, samples=draws, key=path_key).states
            return _seen(model.observation, states, noise_key)

        context = members.context
        parts = eqx.filter_vmap(of_member)(members, jr.split(key, repetitions(members)))
        means, seen, sd = (part.reshape(-1, *part.shape[2:]) for part in parts)
        raw = members.observation.raw
        error = (raw(means).mean(0) - raw(batch.values)) ** 2
        later = means[:, :, context:], seen[:, :, context:]
        table = score_seen(members.observation, *later, sd, batch, context)
        return table | {"mse_all": jnp.mean(error, where=batch.observed)[None]}

    return over_seeds(one, models, test, keys, one_by_one=True)


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
