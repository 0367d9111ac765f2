"""Scores of a predictive sample against what happened, per observation and overall.

Draws have shape `sample series time obs`; every score is a mean over the observed values of one
column, so that missing values count nowhere.
"""

import jax
import jax.numpy as jnp

from hybridsde._types import Array, Bool, Float

SCORES = ("mse", "rmse", "nll", "nll_gaussian", "crps", "coverage90", "width90")
"""Names of the scores that are shown, in their order."""

LEVEL = 0.9
"""Nominal coverage of the reported interval."""


def crps(
    draws: Float[Array, "sample *shape"], values: Float[Array, "*shape"]
) -> Float[Array, "*shape"]:
    """Continuous ranked probability score, unbiased over pairs of draws.

    E|X − y| − ½ E|X − X′|. By the triangle inequality no pair of draws lies further apart than the
    two lie from y together, so this is never negative. Summed over sorted draws x₍₁₎ ≤ … ≤ x₍ₙ₎
    nothing cancels, however far some of them are:

        2/(n(n−1)) Σ_i |x₍ᵢ₎ − y| · (n − i where x₍ᵢ₎ ≥ y, else i − 1)
    """
    n = len(draws)
    errors = jnp.sort(draws, 0) - values
    shape = (n, *(1,) * (errors.ndim - 1))
    rank = jnp.arange(1, n + 1, dtype=errors.dtype).reshape(shape)
    beyond = jnp.where(errors >= 0, n - rank, rank - 1)
    return (2 / (n * (n - 1)) * jnp.abs(errors) * beyond).sum(0)


def gaussian_nll(
    means: Float[Array, "sample *shape obs"],
    sd: Float[Array, "*#obs"],
    values: Float[Array, "*shape obs"],
) -> Float[Array, "*shape obs"]:
    """−ln N(y; m, v + σ²), m and v the mean and variance of the draws, σ² the mean of theirs."""
    variance = means.var(0, ddof=1) + jnp.mean(jnp.broadcast_to(sd, means.shape) ** 2, 0)
    return 0.5 * (jnp.log(2 * jnp.pi * variance) + (values - means.mean(0)) ** 2 / variance)


def mixture_nll(
    means: Float[Array, "sample *shape obs"],
    sd: Float[Array, "*#obs"],
    values: Float[Array, "*shape obs"],
) -> Float[Array, "*shape obs"]:
    """−ln (1/S) Σ_s N(y; h_s, σ²): the predictive density itself, value by value."""
    z = (values - means) / sd
    logs = -0.5 * z**2 - jnp.log(sd) - 0.5 * jnp.log(2 * jnp.pi)
    return jnp.log(len(means)) - jax.nn.logsumexp(logs, 0)


def interval(
    draws: Float[Array, "sample *shape"], level: float = LEVEL
) -> tuple[Float[Array, "*shape"], Float[Array, "*shape"]]:
    """Ends of the central interval of the draws."""
    tail = (1 - level) / 2
    low, high = jnp.quantile(draws, jnp.array([tail, 1 - tail]), 0)
    return low, high


def score(
    means: Float[Array, "sample series time obs"],
    draws: Float[Array, "sample series time obs"],
    values: Float[Array, "series time obs"],
    densities: dict[str, Float[Array, "series time obs"]],
    observed: Bool[Array, "series time obs"],
    over: tuple[int, ...] = (0, 1),
) -> dict[str, Float[Array, "*time column"]]:
    """Every score: one number per observation, then one over all of them.

    Averaged `over` series and times; over series alone there is one row for each time.

    `means` are sampled states as seen through the observation map, `draws` the same with
    observation noise; `densities` are scores that were computed value by value already. `mse` is
    of the mean of the sampled paths, `mse_sample` the mean of their own, which is never smaller.
    """
    low, high = interval(draws)
    pointwise = {
        **densities,
        "mse": (means.mean(0) - values) ** 2,
        "mse_sample": ((means - values) ** 2).mean(0),
        "crps": crps(draws, values),
        "coverage90": ((low <= values) & (values <= high)).astype(values.dtype),
        "width90": high - low,
    }

    def columns(scores: Float[Array, "series time obs"]) -> Float[Array, "*time column"]:
        each = jnp.mean(scores, over, where=observed)
        overall = jnp.mean(scores, (*over, 2), where=observed)
        return jnp.concatenate([each, overall[..., None]], -1)

    table = {name: columns(scores) for name, scores in pointwise.items()}
    return table | {"rmse": jnp.sqrt(table["mse"])}
