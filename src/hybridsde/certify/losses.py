"""Losses in [0, 1] of one forecast of one trajectory: what a certificate is about.

A forecast is a sample of paths, `means` as seen through the observation map and `draws` with
measurement noise, in the units of the model (logarithms of positive states). Constants of a loss
are fixed before the certified trajectories are looked at.
"""

import abc
from collections.abc import Callable
from dataclasses import fields
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from hybridsde._types import Array, Bool, Float, Numbers, Scalar
from hybridsde.forecast import crps

LEVEL = 0.9


def _array(value: Numbers) -> Array:
    return jnp.asarray(value, float)


class AbstractLoss(eqx.Module):
    """A number in [0, 1] for a forecast and what happened."""

    name: eqx.AbstractClassVar[str]
    binary: eqx.AbstractClassVar[bool]
    """Whether only 0 and 1 occur."""

    @abc.abstractmethod
    def __call__(
        self,
        means: Float[Array, "sample time obs"],
        draws: Float[Array, "sample time obs"],
        values: Float[Array, "time obs"],
        observed: Bool[Array, "time obs"],
    ) -> Scalar:
        """The loss over all observed values of one trajectory."""

    @abc.abstractmethod
    def describe(self) -> str:
        """What its expectation is, for people."""

    def constants(self) -> dict[str, Any]:
        """Its numbers, for a record."""
        return {f.name: np.asarray(getattr(self, f.name)).tolist() for f in fields(self)}


def _list(numbers: Array) -> str:
    """Numbers in words; many are not spelled out."""
    values = np.atleast_1d(np.asarray(numbers))
    if len(values) > 4:
        return f"{values.min():.3g} to {values.max():.3g}"
    return ", ".join(f"{value:.3g}" for value in values)


def bounded(loss: Scalar) -> Scalar:
    """Cut off at 0 and 1; a forecast that is not finite loses everything."""
    return jnp.where(jnp.isfinite(loss), jnp.clip(loss, 0.0, 1.0), 1.0)


def _mean(scores: Float[Array, "time obs"], observed: Bool[Array, "time obs"]) -> Scalar:
    return jnp.sum(scores, where=observed) / jnp.maximum(observed.sum(), 1)


class TruncatedError(AbstractLoss):
    """min(1, e²/c²),   e² = mean over times and observations of ((ŷ − y)/s)².

    ŷ is the mean of the sampled paths. With s the spread of the data and c = 1 a loss of 1 is that
    of forecasting the overall mean.
    """

    scale: Float[Array, "*obs"] = eqx.field(converter=_array)
    cutoff: Float[Array, ""] = eqx.field(converter=_array, default=1.0)
    name: ClassVar[str] = "error"
    binary: ClassVar[bool] = False

    def __call__(
        self,
        means: Float[Array, "sample time obs"],
        draws: Float[Array, "sample time obs"],
        values: Float[Array, "time obs"],
        observed: Bool[Array, "time obs"],
    ) -> Scalar:
        """Of the mean path."""
        del draws
        scaled = (means.mean(0) - values) / self.scale
        return bounded(_mean(scaled**2, observed) / self.cutoff**2)

    def describe(self) -> str:
        """With its cut-off."""
        return (
            "squared error of the mean forecast, averaged over times and states in units of "
            f"{_list(self.scale)}, divided by {float(self.cutoff) ** 2:g} and cut off at 1"
        )


class IntervalMiss(AbstractLoss):
    """The share of values outside their central interval.

    The interval lies between the k-th lowest and k-th highest of M draws, (M + 1 − 2k)/(M + 1) its
    level.
    """

    level: float = eqx.field(static=True, default=LEVEL)
    name: ClassVar[str] = "interval"
    binary: ClassVar[bool] = False

    def __call__(
        self,
        means: Float[Array, "sample time obs"],
        draws: Float[Array, "sample time obs"],
        values: Float[Array, "time obs"],
        observed: Bool[Array, "time obs"],
    ) -> Scalar:
        """Value by value."""
        del means
        k = interval_rank(len(draws), self.level)
        ordered = jnp.sort(draws, 0)
        inside = (ordered[k - 1] <= values) & (values <= ordered[-k])
        return bounded(_mean(1.0 - inside, observed))

    def describe(self) -> str:
        """With its level."""
        return f"share of values outside the {100 * self.level:.4g} % interval"


def interval_rank(draws: int, level: float) -> int:
    """k such that the k-th lowest and highest of so many draws enclose this probability."""
    rank = (1 - level) / 2 * (draws + 1)
    if round(rank) < 1 or abs(rank - round(rank)) > 1e-6:
        raise ValueError(f"{draws} draws have no {level:.4g} interval: {rank:.4g} is not whole.")
    return round(rank)


def fitting_draws(level: float, least: int, multiple: int = 1) -> int:
    """The smallest number of draws, `least` or more, that has such an interval."""
    for draws in range(least, least + 2000):
        rank = (1 - level) / 2 * (draws + 1)
        if draws % multiple == 0 and round(rank) >= 1 and abs(rank - round(rank)) < 1e-6:
            return draws
    raise ValueError(
        f"No reasonable number of draws, a multiple of {multiple}, has a {level:.4g} interval. "
        "Take a rounder level, or an ensemble of 1."
    )


def band_score(
    draws: Float[Array, "sample time obs"],
    values: Float[Array, "time obs"],
    observed: Bool[Array, "time obs"],
) -> Scalar:
    """max |y − ŷ|/σ̂ over all observed values, ŷ and σ̂ the mean and spread of the draws."""
    centre, spread = draws.mean(0), draws.std(0, ddof=1)
    distance = jnp.where(observed, jnp.abs(values - centre) / spread, 0.0)
    return jnp.max(jnp.where(jnp.isfinite(distance), distance, jnp.inf), initial=0.0)


class BandMiss(AbstractLoss):
    """1 if any value leaves the band ŷ ± r σ̂, else 0: simultaneous over the whole horizon."""

    radius: Float[Array, ""] = eqx.field(converter=_array)
    name: ClassVar[str] = "band"
    binary: ClassVar[bool] = True

    def __call__(
        self,
        means: Float[Array, "sample time obs"],
        draws: Float[Array, "sample time obs"],
        values: Float[Array, "time obs"],
        observed: Bool[Array, "time obs"],
    ) -> Scalar:
        """One for the whole trajectory, as soon as one of its values is outside."""
        del means
        return (band_score(draws, values, observed) > self.radius).astype(values.dtype)

    def describe(self) -> str:
        """With its radius."""
        return (
            "probability that any value of a trajectory leaves the band of "
            f"{float(self.radius):.3g} standard deviations about the mean forecast"
        )


class ScaledCRPS(AbstractLoss):
    """min(1, mean CRPS/s / c)."""

    scale: Float[Array, "*obs"] = eqx.field(converter=_array)
    cutoff: Float[Array, ""] = eqx.field(converter=_array, default=1.0)
    name: ClassVar[str] = "crps"
    binary: ClassVar[bool] = False

    def __call__(
        self,
        means: Float[Array, "sample time obs"],
        draws: Float[Array, "sample time obs"],
        values: Float[Array, "time obs"],
        observed: Bool[Array, "time obs"],
    ) -> Scalar:
        """Value by value, then averaged."""
        del means
        return bounded(_mean(crps(draws, values) / self.scale, observed) / self.cutoff)

    def describe(self) -> str:
        """With its cut-off."""
        return (
            f"CRPS, averaged over times and states in units of {_list(self.scale)}, divided by "
            f"{float(self.cutoff):g} and cut off at 1"
        )


class TemperedLikelihood(AbstractLoss):
    """1 − (Π p(y|h)/B̄)^{1/KD} = 1 − exp(−½ mean ((y − h)/τ)²), averaged over paths.

    The loss of the paper's bound with its exponent divided by the number of values, without which
    it is 1 for every model. τ is a declared tolerance; with the noise itself, τ = σ, a perfect
    model loses 0.39.
    """

    tolerance: Float[Array, "*obs"] = eqx.field(converter=_array)
    name: ClassVar[str] = "likelihood"
    binary: ClassVar[bool] = False

    def __call__(
        self,
        means: Float[Array, "sample time obs"],
        draws: Float[Array, "sample time obs"],
        values: Float[Array, "time obs"],
        observed: Bool[Array, "time obs"],
    ) -> Scalar:
        """Path by path."""
        del draws
        squares = jnp.where(observed, ((values - means) / self.tolerance) ** 2, 0.0)
        per_path = squares.sum((1, 2)) / jnp.maximum(observed.sum(), 1)
        return bounded(1.0 - jnp.exp(-0.5 * per_path).mean())

    def describe(self) -> str:
        """As one minus a likelihood."""
        return (
            "one minus the likelihood per value, relative to a perfect hit, at a tolerance of "
            f"{_list(self.tolerance)}"
        )


LOSSES: dict[str, Callable[..., AbstractLoss]] = {
    loss.name: loss
    for loss in (TruncatedError, IntervalMiss, BandMiss, ScaledCRPS, TemperedLikelihood)
}
