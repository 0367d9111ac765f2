"""Forecast every series from its first rows and score the rest: one compiled program."""

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr

from hybridsde._devices import over_seeds
from hybridsde._types import Array, Float, Keys, PRNGKeyArray
from hybridsde.data import Batch
from hybridsde.forecast.forecaster import AbstractForecaster
from hybridsde.forecast.scores import gaussian_nll, mixture_nll, score


@eqx.filter_jit
def evaluate(
    forecaster: AbstractForecaster, batch: Batch, draws: int, *, key: PRNGKeyArray
) -> dict[str, Float[Array, " column"]]:
    """Every score of forecasts of the rows after the given ones, in the units of the data.

    One number per observation, then one over all of them. All draws are independent: each has its
    own weights. `mse_all` counts the given rows too. Can be mapped over repetitions.
    """
    path_key, noise_key = jr.split(key)
    whole = forecaster.predict(batch, draws, key=path_key)
    context, observation = forecaster.context, forecaster.observation
    later = whole.after(context)
    values, raw = batch.values[:, context:], observation.raw
    slope = observation.log_slope(values)
    densities = {
        "nll": mixture_nll(later.means, later.sd, values) + slope,
        "nll_gaussian": gaussian_nll(later.means, later.sd, values) + slope,
    }
    drawn = raw(later.draws(key=noise_key))
    table = score(raw(later.means), drawn, raw(values), densities, batch.observed[:, context:])
    error = (raw(whole.means).mean(0) - raw(batch.values)) ** 2
    return table | {"mse_all": jnp.mean(error, where=batch.observed)[None]}


@eqx.filter_jit
def evaluate_many(
    forecasters: AbstractForecaster, test: Batch, draws: int, keys: Keys
) -> dict[str, Float[Array, "seed column"]]:
    """Scores of every repetition on its own test series, one after the other.

    A repetition fills a device by itself; all at once would only fill its memory.
    """

    def one(forecaster: AbstractForecaster, batch: Batch, key: PRNGKeyArray):
        return evaluate(forecaster, batch, draws, key=key)

    return over_seeds(one, forecasters, test, keys, one_by_one=True)
