"""Forecasts by precedent: what followed the most similar moments of the training recordings."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from hybridsde._parameters import Fixed, Relative
from hybridsde._types import Array, Float, Int, PRNGKeyArray
from hybridsde.baselines.base import AbstractEstimatedBaseline, FixedContext, WithInputs, direct
from hybridsde.data import Batch
from hybridsde.fit import Callback, Fitted
from hybridsde.forecast import AbstractForecaster, Prediction, Requirements, estimated, noise_spread
from hybridsde.model import GaussianObservation, Standardiser

SHARE = 0.05
"""Precedents that are used, as a share of all."""
FEWEST, MOST = 10, 100
TOO_SHORT = 25.0
"""Added to the squared distance of a precedent that ends at once; in part where it ends early."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Analogues(WithInputs, FixedContext, AbstractEstimatedBaseline):
    """Continuations of the most similar rows (Lorenz 1969), sampled in equal shares.

    - `inputs`: exogenous inputs; a precedent should have similar ones at its start.
    - `neighbours`: how many; by default a twentieth of all rows, between 10 and 100.
    - `first_rows`: only the starts of recordings are precedents. Their continuations are then
      curves of whole recordings, and their average the mean curve of similar trajectories.
    """

    neighbours: int | None = None
    first_rows: bool = False

    @property
    def name(self) -> str:
        """What it is called."""
        return "mean curve" if self.first_rows else "analogues"

    @property
    def requirements(self) -> Requirements:
        """Recordings as they are, and whole."""
        return Requirements(whole=True)

    def check_settings(self) -> None:
        """At least one neighbour."""
        if self.neighbours is not None and self.neighbours < 1:
            raise ValueError(f"`neighbours` must be positive, but is {self.neighbours}.")

    def init(self, batch: Batch, *, key: PRNGKeyArray | None = None) -> "Precedents":
        """The library of all recordings, gaps bridged by straight lines."""
        del key
        rows = np.asarray(batch.recorded).sum(1)
        curves, clock = batch.bridged(), np.asarray(batch.elapsed, float)
        curves, clock = curves[:, : rows.max()], clock[:, : rows.max()]
        sd = np.asarray(Standardiser.of(batch.values, batch.observed).sd, float)
        each = range(1) if self.first_rows else range(curves.shape[1])
        begins = [(s, r) for s in range(len(curves)) for r in each if r + 1 < rows[s]] or [(0, 0)]
        count = self.neighbours or int(np.clip(SHARE * len(begins), FEWEST, MOST))
        if self.first_rows and self.neighbours is None:
            count = max(5, len(begins) // 3)
        near = _typical_gap(curves, begins) if len(begins) > 1 else 0.1 * sd
        return Precedents(
            observation=direct(self, jnp.asarray(np.where(near > 0, near, 0.05 * sd))),
            curves=Fixed(jnp.asarray(curves)),
            clock=Fixed(jnp.asarray(clock)),
            inputs=Fixed(batch.inputs[:, : rows.max()]),
            begins=Fixed(jnp.asarray(begins)),
            ends=Fixed(jnp.asarray(clock[np.arange(len(curves)), rows - 1])),
            sd=Fixed(jnp.asarray(sd)),
            input_sd=Fixed(jnp.maximum(jnp.std(batch.inputs, (0, 1)), 1e-6)),
            count=min(count, len(begins)),
            context=self.given,
        )

    def estimate(self, batch: Batch, callbacks: tuple[Callback, ...]) -> Fitted[AbstractForecaster]:
        """At once."""
        del callbacks
        return estimated(self.init(batch))

    def restore(self, notes: Mapping[str, Any]) -> "Precedents":
        """A library of the size that was saved."""
        series, rows, begins, count = (int(notes[one]) for one in SIZES)
        n, m = len(self.observations), len(self.inputs)
        zero = jnp.zeros
        return Precedents(
            observation=direct(self, jnp.ones(n)),
            curves=Fixed(zero((series, rows, n))),
            clock=Fixed(zero((series, rows))),
            inputs=Fixed(zero((series, rows, m))),
            begins=Fixed(zero((begins, 2), int)),
            ends=Fixed(zero(series)),
            sd=Fixed(jnp.ones(n)),
            input_sd=Fixed(jnp.ones(m)),
            count=count,
            context=self.given,
        )

    def notes_of(self, forecaster: AbstractForecaster) -> dict[str, Any]:
        """The size of the library."""
        assert isinstance(forecaster, Precedents)
        series, rows, _ = forecaster.curves.value.shape
        sizes = (series, rows, len(forecaster.begins.value), forecaster.count)
        return dict(zip(SIZES, sizes, strict=True))


SIZES = ("series", "rows", "begins", "count")


def _typical_gap(curves: np.ndarray, begins: list[tuple[int, int]]) -> np.ndarray:
    """How far apart nearest precedents are in each column, as a standard deviation."""
    chosen = np.array(begins)[np.linspace(0, len(begins) - 1, min(400, len(begins))).astype(int)]
    points = curves[chosen[:, 0], chosen[:, 1]]
    scale = points.std(0)
    scaled = points / np.where(scale > 0, scale, 1.0)
    far = ((scaled[:, None] - scaled[None]) ** 2).sum(-1)
    far[chosen[:, None, 0] == chosen[None, :, 0]] = np.inf
    if not np.isfinite(far).any():
        return 0.1 * scale
    nearest = far.argmin(1)
    usable = np.isfinite(far.min(1))
    return np.median(np.abs(points - points[nearest])[usable], 0) * 1.4826 / np.sqrt(2)


class Precedents(AbstractForecaster):
    """y(t₀ + τ) ~ y_i(t_i + τ) + ε, i one of the rows nearest to what was seen last."""

    observation: GaussianObservation
    curves: Fixed
    clock: Fixed
    inputs: Fixed
    begins: Fixed
    """Series and row of every precedent."""
    ends: Fixed
    """When each series ends, since its start."""
    sd: Fixed
    input_sd: Fixed
    count: int = eqx.field(static=True)
    context: int = eqx.field(static=True)

    def nearest(
        self, y: Float[Array, " obs"], seen: Array, u: Float[Array, " input"], ahead: Array
    ) -> Int[Array, " neighbour"]:
        """The precedents that are most like a row, among those that go on for long enough."""
        series, row = self.begins.value.T
        apart = (self.curves.value[series, row] - y) / self.sd.value
        distance = jnp.sum(jnp.where(seen, apart**2, 0.0), -1)
        driven = (self.inputs.value[series, row] - u) / self.input_sd.value
        distance = distance + jnp.sum(driven**2, -1)
        left = self.ends.value[series] - self.clock.value[series, row]
        lacking = jnp.clip(1 - left / jnp.maximum(ahead, 1e-12), 0.0, 1.0)
        return jax.lax.top_k(-(distance + TOO_SHORT * lacking), self.count)[1]

    def predict(
        self, batch: Batch, draws: int, *, paths_per_weight: int = 1, key: PRNGKeyArray
    ) -> Prediction:
        """Continuations of randomly chosen neighbours; one that ends stays where it is."""
        del paths_per_weight
        clock, last = batch.elapsed, self.context - 1
        begins, curves, times = self.begins.value, self.curves.value, self.clock.value

        def one(y, seen, u, t, key) -> Float[Array, "draw time obs"]:
            found = self.nearest(y[last], seen[last], u[last], t[-1] - t[last])
            chosen = jr.choice(key, found, (draws,))

            def follow(index) -> Float[Array, "time obs"]:
                series, row = begins[index]
                when = times[series, row] + t - t[last]
                curve = curves[series]
                return jax.vmap(lambda column: jnp.interp(when, times[series], column), 1, 1)(curve)

            return jax.vmap(follow)(chosen)

        keys = jr.split(key, batch.count)
        each = jax.vmap(one)(batch.values, batch.observed, batch.inputs, clock, keys)
        sd = self.observation.sd.value[None, None, None]
        return Prediction.of_observations(jnp.moveaxis(each, 0, 1), sd)

    def spreads(self) -> dict[str, Relative]:
        """What is added to a precedent."""
        return noise_spread(self.observation)

    def describe(self) -> str:
        """Without steps."""
        return f"continuations of {self.count} precedents"
