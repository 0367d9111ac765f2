"""Losses of sampled hypotheses: fresh weights and noise for every trajectory and every draw."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr
from jax import lax

from hybridsde._types import Array, Bool, Float, PRNGKeyArray, PyTree
from hybridsde.certify.losses import AbstractLoss, band_score
from hybridsde.data import Batch
from hybridsde.forecast import AbstractBayesianForecaster, AbstractForecaster

AT_ONCE = 30_000_000
"""Simulated numbers held in memory together; more are taken series by series."""

Judge = Callable[
    [
        Float[Array, "sample time obs"],
        Float[Array, "sample time obs"],
        Float[Array, "time obs"],
        Bool[Array, "time obs"],
    ],
    Float[Array, "*shape"],
]
"""What is made of one forecast: from means, draws, values and what was observed."""


class Hypothesis(NamedTuple):
    """A hypothesis: `networks` draws of the weights, and `paths` sampled futures under each."""

    networks: int = 1
    paths: int = 19

    @property
    def size(self) -> int:
        """Sampled futures in one forecast."""
        return self.networks * self.paths


def sample_losses(
    forecaster: AbstractForecaster,
    batch: Batch,
    losses: Sequence[AbstractLoss],
    hypothesis: Hypothesis,
    draws: int,
    *,
    key: PRNGKeyArray,
) -> Float[Array, "loss series sample"]:
    """X_ij = ℓ(H_ij; Y_i) with H_ij drawn anew for every trajectory i and draw j.

    Draws shared by all trajectories would be m draws in all; these are n·m. Can be compiled and
    mapped over repetitions.
    """

    def judge(means: Array, seen: Array, values: Array, observed: Array) -> Array:
        return jnp.stack([loss(means, seen, values, observed) for loss in losses])

    found = _judge_forecasts(forecaster, batch, judge, hypothesis, draws, key=key)
    return jnp.moveaxis(found, -1, 0)


def sample_band_scores(
    forecaster: AbstractForecaster,
    batch: Batch,
    hypothesis: Hypothesis,
    *,
    key: PRNGKeyArray,
) -> Float[Array, " series"]:
    """max |y − ŷ|/σ̂ of every trajectory, from one forecast each."""

    def judge(means: Array, seen: Array, values: Array, observed: Array) -> Array:
        del means
        return band_score(seen, values, observed)

    return _judge_forecasts(forecaster, batch, judge, hypothesis, 1, key=key)[:, 0]


def _judge_forecasts(
    forecaster: AbstractForecaster,
    batch: Batch,
    judge: Judge,
    hypothesis: Hypothesis,
    draws: int,
    *,
    key: PRNGKeyArray,
) -> Float[Array, "series sample *shape"]:
    """Every one of `draws` forecasts of every trajectory, judged."""
    context = forecaster.context

    def one_series(series: Batch, key: PRNGKeyArray) -> Array:
        path_key, noise_key = jr.split(key)
        single = jax.tree.map(lambda leaf: leaf[None], _first_rows(series, context))
        found = forecaster.predict(
            single, draws * hypothesis.size, paths_per_weight=hypothesis.paths, key=path_key
        ).after(context)
        means, seen = found.means[:, 0], found.draws(key=noise_key)[:, 0]
        shape = (draws, hypothesis.size, *means.shape[1:])
        values, observed = series.values[context:], series.observed[context:]
        return jax.vmap(lambda m, s: judge(m, s, values, observed))(
            means.reshape(shape), seen.reshape(shape)
        )

    held = batch.values.size * draws * hypothesis.size
    return _each_series(one_series, batch, key, one_by_one=held > AT_ONCE)


def _first_rows(series: Batch, context: int) -> Batch:
    """What a forecast is given: nothing of what it is to be compared with."""
    given = (jnp.arange(len(series.times)) < context)[:, None]
    return replace(
        series, values=jnp.where(given, series.values, 0.0), observed=series.observed & given
    )


class Evidence(NamedTuple):
    """What the paper's bound is made of."""

    log_z: Float[Array, "series sample"]
    """Σ_k [ln p(y_k|h_k) − ln B̄] of every path: minus half its squared error in units of σ."""
    path_kl: Float[Array, "series sample"]


def sample_evidence(
    forecaster: AbstractBayesianForecaster, batch: Batch, draws: int, *, key: PRNGKeyArray
) -> Evidence:
    """Ln z and the path KL of `draws` paths per trajectory, each with its own weights."""
    first = forecaster.first_scored_row

    def one_series(series: Batch, key: PRNGKeyArray) -> Evidence:
        single = jax.tree.map(lambda leaf: leaf[None], series)
        found = forecaster.predict(single, draws, key=key)
        later = found.after(first)
        z = (series.values[first:] - later.means[:, 0]) / later.sd[:, 0]
        squares = jnp.where(series.observed[first:], z**2, 0.0).sum((1, 2))
        return Evidence(-0.5 * squares, found.path_kl[:, 0])

    held = batch.values.size * draws
    return _each_series(one_series, batch, key, one_by_one=held > AT_ONCE)


def _each_series(
    function: Callable[[Batch, PRNGKeyArray], PyTree],
    batch: Batch,
    key: PRNGKeyArray,
    *,
    one_by_one: bool,
) -> PyTree:
    """Map over series, each with a key of its own."""
    keys = jr.split(key, batch.count)
    if one_by_one:
        return lax.map(lambda pair: function(*pair), (batch, keys))
    return jax.vmap(function)(batch, keys)
