"""Forecasts that any system should beat: what was seen last, and what is seen on average."""

from dataclasses import dataclass

import equinox as eqx
import jax.numpy as jnp

from hybridsde._parameters import Fixed, Relative
from hybridsde._types import Array, Float, PRNGKeyArray
from hybridsde.baselines.base import (
    AbstractEstimatedBaseline,
    AbstractSameShape,
    FixedContext,
    WithInputs,
    direct,
)
from hybridsde.data import Batch
from hybridsde.fit import Callback, Fitted
from hybridsde.forecast import AbstractForecaster, Prediction, Requirements, estimated, noise_spread
from hybridsde.model import GaussianObservation, Standardiser

SHORTEST = 1e-4
"""Share of the forecast that counts as elapsed at least."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Persistence(WithInputs, FixedContext, AbstractSameShape, AbstractEstimatedBaseline):
    """Everything stays as it was last seen: a random walk without drift.

    After a long time it has gone no further than two rows that have nothing to do with each other
    lie apart.
    """

    @property
    def name(self) -> str:
        """What it is called."""
        return "persistence"

    @property
    def requirements(self) -> Requirements:
        """Recordings as they are; inputs have no say."""
        return Requirements(whole=True)

    def check_settings(self) -> None:
        """Anything goes."""

    def init(self, batch: Batch, *, key: PRNGKeyArray | None = None) -> "RandomWalk":
        """The variance of the walk, from neighbouring rows."""
        del key
        seen = batch.observed[:, 1:] & batch.observed[:, :-1]
        steps = jnp.where(batch.steps > 0, batch.steps, 1.0)[..., None]
        square = jnp.mean(jnp.diff(batch.values, axis=1) ** 2 / steps, (0, 1), where=seen)
        rate = jnp.sqrt(jnp.where(square > 0, square, 1.0))
        usual = Standardiser.of(batch.values, batch.observed)
        return RandomWalk(
            observation=direct(self, rate),
            unseen=Fixed(usual.mean),
            forgotten=Fixed(2 * usual.sd**2 / rate**2),
            context=self.given,
        )

    def estimate(self, batch: Batch, callbacks: tuple[Callback, ...]) -> Fitted[AbstractForecaster]:
        """At once."""
        del callbacks
        return estimated(self.init(batch))


class RandomWalk(AbstractForecaster):
    """y(t) ~ N(y₀, r² min(t, T)), r the `sd` of the observation.

    T = 2 s²/r², s the spread of all rows: then the variance is that of the difference of two
    independent rows. Without it the walk of a logarithm has a mean that grows without end.
    """

    observation: GaussianObservation
    unseen: Fixed
    """What stands in for a value that none of the given rows holds."""
    forgotten: Fixed
    """T, after which a row says nothing of the next."""
    context: int = eqx.field(static=True)

    def last(
        self, batch: Batch, times: Float[Array, "series time"]
    ) -> tuple[Float[Array, "series obs"], Float[Array, "series obs"]]:
        """The last value that was seen in the given rows or the past, and when."""
        given = (batch.values[:, : self.context], batch.observed[:, : self.context])
        clock = times[:, : self.context]
        if batch.past is not None:
            given = (batch.past.values, batch.past.observed)
            clock = batch.past.elapsed - batch.past.elapsed[:, -1:] + clock[:, -1:]
        values, observed = given
        order = jnp.arange(values.shape[1])[:, None]
        last = jnp.max(jnp.where(observed, order, -1), 1)
        row = jnp.maximum(last, 0)[:, None]
        found = jnp.take_along_axis(values, row, 1)[:, 0]
        when = jnp.take_along_axis(jnp.broadcast_to(clock[..., None], values.shape), row, 1)[:, 0]
        ever = last >= 0
        return jnp.where(ever, found, self.unseen.value), jnp.where(ever, when, 0.0)

    def predict(
        self, batch: Batch, draws: int, *, paths_per_weight: int = 1, key: PRNGKeyArray
    ) -> Prediction:
        """The same mean at all times, and a spread that grows."""
        del paths_per_weight, key
        times = batch.elapsed
        value, when = self.last(batch, times)
        means = jnp.broadcast_to(value[:, None], batch.values.shape)
        elapsed = times[..., None] - when[:, None]
        # A moment at least, so that a time that was given already has a density.
        elapsed = jnp.maximum(elapsed, SHORTEST * times[:, -1, None, None])
        sd = self.observation.sd.value * jnp.sqrt(jnp.minimum(elapsed, self.forgotten.value))
        return Prediction.of_observations(jnp.broadcast_to(means, (draws, *means.shape)), sd[None])

    def spreads(self) -> dict[str, Relative]:
        """That of the walk."""
        return noise_spread(self.observation)

    def describe(self) -> str:
        """Without steps."""
        return "a random walk"


@dataclass(frozen=True, kw_only=True, eq=False)
class Climatology(WithInputs, FixedContext, AbstractSameShape, AbstractEstimatedBaseline):
    """Every column has its mean and spread over all training rows, whatever was seen."""

    @property
    def name(self) -> str:
        """What it is called."""
        return "climatology"

    @property
    def requirements(self) -> Requirements:
        """Recordings as they are; inputs have no say."""
        return Requirements(whole=True)

    def check_settings(self) -> None:
        """Anything goes."""

    def init(self, batch: Batch, *, key: PRNGKeyArray | None = None) -> "Average":
        """Mean and standard deviation of all rows."""
        del key
        rows = Standardiser.of(batch.values, batch.observed)
        return Average(observation=direct(self, rows.sd), mean=Fixed(rows.mean), context=self.given)

    def estimate(self, batch: Batch, callbacks: tuple[Callback, ...]) -> Fitted[AbstractForecaster]:
        """At once."""
        del callbacks
        return estimated(self.init(batch))


class Average(AbstractForecaster):
    """y ~ N(m, s²)."""

    observation: GaussianObservation
    mean: Fixed
    context: int = eqx.field(static=True)

    def predict(
        self, batch: Batch, draws: int, *, paths_per_weight: int = 1, key: PRNGKeyArray
    ) -> Prediction:
        """The same at all times."""
        del paths_per_weight, key
        means: Array = jnp.broadcast_to(self.mean.value, (draws, *batch.values.shape))
        return Prediction.of_observations(means, self.observation.sd.value[None, None, None])

    def spreads(self) -> dict[str, Relative]:
        """That of the columns."""
        return noise_spread(self.observation)

    def describe(self) -> str:
        """Without steps."""
        return "the average of all training rows"
