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
from hybridsde.data.checks import check_whole
from hybridsde.model import GaussianObservation
from hybridsde.objective import Terms

SHORTEST = 1e-4
"""Share of the forecast that counts as elapsed at least."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Persistence(AbstractEstimated):
    """Everything stays as it was last seen: a random walk without drift.

    - `given`: first rows of a series that a forecast is given.
    """

    given: int = 1

    def __post_init__(self):
        super().__post_init__()
        check_whole(self.given, "given")
        if self.noise is not None:
            raise ValueError("`noise` cannot be set: the spread of the recordings is all there is.")

    @property
    def name(self) -> str:
        """What it is called."""
        return "persistence"

    @property
    def context(self) -> int:
        """How many first rows a forecast is given."""
        return self.given

    def init(self, batch: Batch, *, key: PRNGKeyArray) -> "RandomWalk":
        """The variance of the walk, from neighbouring rows."""
        del key
        seen = batch.observed[:, 1:] & batch.observed[:, :-1]
        steps = jnp.where(batch.steps > 0, batch.steps, 1.0)[..., None]
        square = jnp.mean(jnp.diff(batch.values, axis=1) ** 2 / steps, (0, 1), where=seen)
        rate = jnp.sqrt(jnp.where(square > 0, square, 1.0))
        first = jnp.mean(batch.values, (0, 1), where=batch.observed)
        return RandomWalk(
            observation=direct(self, Fixed(rate)),
            unseen=Fixed(jnp.nan_to_num(first)),
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

    def loss(self, batch: Batch, total: int, *, key: PRNGKeyArray) -> Terms:
        """There is nothing to train."""
        raise NotImplementedError

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
    """Every column has its mean and spread over all training rows, whatever was seen.

    - `given`: first rows of a series that a forecast is given, and that are not scored.
    """

    given: int = 1

    def __post_init__(self):
        super().__post_init__()
        check_whole(self.given, "given")
        if self.noise is not None:
            raise ValueError("`noise` cannot be set: the spread of the recordings is all there is.")

    @property
    def name(self) -> str:
        """What it is called."""
        return "climatology"

    @property
    def context(self) -> int:
        """How many first rows are not scored."""
        return self.given

    def init(self, batch: Batch, *, key: PRNGKeyArray) -> "Average":
        """Mean and standard deviation of all rows."""
        del key
        mean = jnp.mean(batch.values, (0, 1), where=batch.observed)
        sd = jnp.std(batch.values, (0, 1), where=batch.observed)
        spread = Fixed(jnp.where(sd > 0, sd, 1.0))
        return Average(observation=direct(self, spread), mean=Fixed(mean))


class Average(AbstractForecaster):
    """y ~ N(m, s²)."""

    observation: GaussianObservation
    mean: Fixed

    def loss(self, batch: Batch, total: int, *, key: PRNGKeyArray) -> Terms:
        """There is nothing to train."""
        raise NotImplementedError

    def predict(self, batch: Batch, samples: int, *, key: PRNGKeyArray) -> Prediction:
        """The same at all times."""
        del key
        means: Array = jnp.broadcast_to(self.mean.value, (samples, *batch.values.shape))
        return Prediction(means, self.observation.sd.value[None, None, None])
