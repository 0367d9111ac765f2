"""Forecast every series from its first rows and score the rest: one compiled program."""

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr

from hybridsde._devices import over_seeds
from hybridsde._types import Array, Float, Keys, PRNGKeyArray
from hybridsde.data import Batch
from hybridsde.forecast.forecaster import AbstractForecaster
from hybridsde.forecast.plausible import cut_off, implausible
from hybridsde.forecast.scores import gaussian_nll, mixture_nll, score


@eqx.filter_jit
def evaluate(
    forecaster: AbstractForecaster,
    batch: Batch,
    draws: int,
    *,
    plausible: Float[Array, "obs 2"] | None = None,
    key: PRNGKeyArray,
) -> dict[str, Float[Array, " column"]]:
    """Every score of forecasts of the rows after the given ones, in the units of the data.

    One number per observation, then one over all of them. All draws are independent: each has its
    own weights. The point forecast is the mean of what would be measured, of every system.
    `mse_all` counts the given rows too. Draws outside the `plausible` range of an
    observation count as its nearer end; `implausible` is their share. Can be mapped over
    repetitions.
    """
    return evaluate_by(forecaster, batch, draws, ((0, 1),), plausible=plausible, key=key)[0]


def evaluate_by(
    forecaster: AbstractForecaster,
    batch: Batch,
    draws: int,
    over: tuple[tuple[int, ...], ...],
    *,
    plausible: Float[Array, "obs 2"] | None = None,
    key: PRNGKeyArray,
) -> tuple[dict[str, Float[Array, "*time column"]], ...]:
    """The same forecasts scored once for each entry of `over`, the axes that are averaged."""
    path_key, noise_key = jr.split(key)
    whole = forecaster.predict(batch, draws, key=path_key)
    context, observation = forecaster.context, forecaster.observation
    later = whole.after(context)
    values, raw = batch.values[:, context:], observation.raw
    slope = observation.log_slope(values)
    held = later.means
    if plausible is not None:
        held = jnp.clip(held, *observation.numbers(plausible.T))
    densities = {
        "nll": mixture_nll(later.means, later.sd, values) + slope,
        "nll_gaussian": gaussian_nll(held, later.sd, values) + slope,
    }
    seen = batch.observed[:, context:]
    drawn, means = raw(later.draws(key=noise_key)), observation.expected(whole.means, whole.sd)
    outside = jnp.zeros(drawn.shape[-1] + 1)
    if plausible is not None:
        left = implausible(drawn, plausible).mean(0)
        each = jnp.mean(left, (0, 1), where=seen)
        outside = jnp.append(each, jnp.mean(left, where=seen))
        drawn, means = (cut_off(one, plausible) for one in (drawn, means))
    error = (means.mean(0) - raw(batch.values)) ** 2
    common = {
        "mse_all": jnp.mean(error, where=batch.observed)[None],
        "implausible": outside,
    }
    return tuple(
        score(means[:, :, context:], drawn, raw(values), densities, seen, axes) | common
        for axes in over
    )


@eqx.filter_jit
def evaluate_values(
    forecaster: AbstractForecaster,
    batch: Batch,
    draws: int,
    *,
    plausible: Float[Array, "obs 2"] | None = None,
    key: PRNGKeyArray,
) -> tuple[dict[str, Float[Array, " column"]], Float[Array, "series time obs"]]:
    """What `evaluate` finds, and the CRPS of every value after the given rows."""
    over = ((0, 1), ())
    whole, each = evaluate_by(forecaster, batch, draws, over, plausible=plausible, key=key)
    return whole, each["crps"][..., :-1]


@eqx.filter_jit
def evaluate_many(
    forecasters: AbstractForecaster,
    test: Batch,
    draws: int,
    keys: Keys,
    plausible: Float[Array, "obs 2"] | None = None,
) -> dict[str, Float[Array, "seed column"]]:
    """Scores of every repetition on its own test series, one after the other.

    A repetition fills a device by itself; all at once would only fill its memory.
    """

    def one(forecaster: AbstractForecaster, batch: Batch, key: PRNGKeyArray):
        return evaluate(forecaster, batch, draws, plausible=plausible, key=key)

    return over_seeds(one, forecasters, test, keys, one_by_one=True)
