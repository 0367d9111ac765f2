"""Forecasts that any system should beat: what was seen last, and what is seen on average."""

from dataclasses import dataclass

import equinox as eqx
import jax.numpy as jnp

from hybridsde._parameters import Fixed
from hybridsde._types import Array, Float, PRNGKeyArray
from hybridsde.baselines.base import (
    AbstractEstimated,
    AbstractForecaster,
    Prediction,
    direct,
    since_start,
)
from hybridsde.data import Batch
from hybridsde.model import GaussianObservation
from hybridsde.model.latent import Channels

SHORTEST = 1e-4
"""Share of the forecast that counts as elapsed at least."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Persistence(AbstractEstimated):
    """Everything stays as it was last seen: a random walk without drift."""

    @property
    def name(self) -> str:
        """What it is called."""
        return "persistence"

    def init(self, batch: Batch, *, key: PRNGKeyArray) -> "RandomWalk":
        """The variance of the walk, from neighbouring rows."""
        del key
        seen = batch.observed[:, 1:] & batch.observed[:, :-1]
        steps = jnp.where(batch.steps > 0, batch.steps, 1.0)[..., None]
        square = jnp.mean(jnp.diff(batch.values, axis=1) ** 2 / steps, (0, 1), where=seen)
        rate = jnp.sqrt(jnp.where(square > 0, square, 1.0))
        return RandomWalk(
            observation=direct(self, Fixed(rate)),
            unseen=Fixed(Channels.of(batch).mean),
            given=self.given,
        )


class RandomWalk(AbstractForecaster):
    """y(t) ~ N(y₀, r² t), r the `sd` of the observation."""

    observation: GaussianObservation
    unseen: Fixed
    """What stands in for a value that none of the given rows holds."""
    given: int = eqx.field(static=True)

    def last(
        self, batch: Batch, times: Float[Array, "series time"]
    ) -> tuple[Float[Array, "series obs"], Float[Array, "series obs"]]:
        """The last value that was seen in the given rows, and when."""
        found = jnp.broadcast_to(self.unseen.value, batch.values[:, 0].shape)
        when = jnp.zeros_like(found)
        for row in range(self.given):
            seen = batch.observed[:, row]
            found = jnp.where(seen, batch.values[:, row], found)
            when = jnp.where(seen, times[:, row, None], when)
        return found, when

    def predict(self, batch: Batch, samples: int, *, key: PRNGKeyArray) -> Prediction:
        """The same mean at all times, and a spread that grows."""
        del key
        times = since_start(batch)
        value, when = self.last(batch, times)
        means = jnp.broadcast_to(value[:, None], batch.values.shape)
        elapsed = times[..., None] - when[:, None]
        # A moment at least, so that a time that was given already has a density.
        elapsed = jnp.maximum(elapsed, SHORTEST * times[:, -1, None, None])
        sd = self.observation.sd.value * jnp.sqrt(elapsed)
        return Prediction(jnp.broadcast_to(means, (samples, *means.shape)), sd[None])


@dataclass(frozen=True, kw_only=True, eq=False)
class Climatology(AbstractEstimated):
    """Every column has its mean and spread over all training rows, whatever was seen."""

    @property
    def name(self) -> str:
        """What it is called."""
        return "climatology"

    def init(self, batch: Batch, *, key: PRNGKeyArray) -> "Average":
        """Mean and standard deviation of all rows."""
        del key
        channels = Channels.of(batch)
        return Average(observation=direct(self, Fixed(channels.sd)), mean=Fixed(channels.mean))


class Average(AbstractForecaster):
    """y ~ N(m, s²)."""

    observation: GaussianObservation
    mean: Fixed

    def predict(self, batch: Batch, samples: int, *, key: PRNGKeyArray) -> Prediction:
        """The same at all times."""
        del key
        means: Array = jnp.broadcast_to(self.mean.value, (samples, *batch.values.shape))
        return Prediction(means, self.observation.sd.value[None, None, None])
