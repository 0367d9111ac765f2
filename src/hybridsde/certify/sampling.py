"""Losses of sampled forecasters: fresh weights and noise for every trajectory and every draw."""

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
from hybridsde.model import BayesianSDE
from hybridsde.simulate import AbstractSolver, simulate

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


class Forecaster(NamedTuple):
    """A hypothesis: `networks` draws of the weights, and `paths` sampled futures under each."""

    networks: int = 1
    paths: int = 19

    @property
    def size(self) -> int:
        """Sampled futures in one forecast."""
        return self.networks * self.paths


def sample_losses(
    model: BayesianSDE,
    solver: AbstractSolver,
    batch: Batch,
    losses: Sequence[AbstractLoss],
    forecaster: Forecaster,
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

    found = _judge_forecasts(model, solver, batch, judge, forecaster, draws, key=key)
    return jnp.moveaxis(found, -1, 0)


def sample_band_scores(
    model: BayesianSDE,
    solver: AbstractSolver,
    batch: Batch,
    forecaster: Forecaster,
    *,
    key: PRNGKeyArray,
) -> Float[Array, " series"]:
    """Max |y − ŷ|/σ̂ of every trajectory, from one forecast each."""

    def judge(means: Array, seen: Array, values: Array, observed: Array) -> Array:
        del means
        return band_score(seen, values, observed)

    return _judge_forecasts(model, solver, batch, judge, forecaster, 1, key=key)[:, 0]


def _judge_forecasts(
    model: BayesianSDE,
    solver: AbstractSolver,
    batch: Batch,
    judge: Judge,
    forecaster: Forecaster,
    draws: int,
    *,
    key: PRNGKeyArray,
) -> Float[Array, "series sample *shape"]:
    """Every one of `draws` forecasts of every trajectory, judged."""

    def one_series(series: Batch, key: PRNGKeyArray) -> Array:
        path_key, noise_key = jr.split(key)
        samples = draws * forecaster.networks
        single = jax.tree.map(lambda leaf: leaf[None], _first_rows(series, model.context))
        paths = simulate(
            model, solver, single, samples=samples, paths=forecaster.paths, key=path_key
        )
        later = slice(model.context, None)
        states = paths.states[:, 0, later]
        means = model.observation.mean(states)
        seen = model.observation.sample(states, key=noise_key)
        shape = (draws, forecaster.size, *means.shape[1:])
        values, observed = series.values[later], series.observed[later]
        return jax.vmap(lambda m, s: judge(m, s, values, observed))(
            means.reshape(shape), seen.reshape(shape)
        )

    held = batch.values.size * draws * forecaster.size * solver.substeps
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
    model: BayesianSDE, solver: AbstractSolver, batch: Batch, draws: int, *, key: PRNGKeyArray
) -> Evidence:
    """Ln z and the path KL of `draws` paths per trajectory, each with its own weights."""

    def one_series(series: Batch, key: PRNGKeyArray) -> Evidence:
        single = jax.tree.map(lambda leaf: leaf[None], series)
        paths = simulate(model, solver, single, samples=draws, key=key)
        later = slice(model.explained, None)
        means = model.observation.mean(paths.states[:, 0, later])
        z = (series.values[later] - means) / model.observation.sd.value
        squares = jnp.where(series.observed[later], z**2, 0.0).sum((1, 2))
        return Evidence(-0.5 * squares, paths.kl[:, 0])

    held = batch.values.size * draws * solver.substeps
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
