"""What a compiled program sees of the recordings: arrays of equal shape."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax import lax

from hybridsde._types import Array, Bool, Float, PRNGKeyArray
from hybridsde.data.grid import Clock, Grid
from hybridsde.data.trajectories import Trajectories


class Entry(eqx.Module):
    """A Gaussian over the state at the first row of a series, given the rows before it."""

    mean: Float[Array, "*series network state"]
    covariance: Float[Array, "*series network state state"]
    """Under each of several networks."""
    known: Bool[Array, "*series"]
    """False where no row comes before the first."""


class Batch(eqx.Module):
    """Series as device arrays; a batch of them, or, mapped over `series`, a single one.

    Steps Δt are differences of the double-precision times, so they stay exact where times are
    large and steps are small. The times themselves are in single precision by default, counted
    from the origin of a `Clock`.
    """

    times: Float[Array, "*series time"]
    steps: Float[Array, "*series time-1"]
    values: Float[Array, "*series time obs"]
    observed: Bool[Array, "*series time obs"]
    inputs: Float[Array, "*series time input"]
    recorded: Bool[Array, "*series time"]
    """False on the rows that only pad a series."""
    fine: Grid | None = None
    """The steps of a solver, where they follow time; None where they follow rows."""
    past: "Batch | None" = None
    """Everything that was recorded up to the first row, that row included; None: nothing is."""
    entry: Entry | None = None
    """What the past says of the state at the first row; None: nobody has asked yet."""

    @classmethod
    def of(cls, data: Trajectories, clock: Clock | None = None) -> "Batch":
        """Move recordings to the device."""
        clock = clock or Clock()
        return cls(
            times=jnp.asarray(data.times - clock.origin),
            steps=jnp.asarray(np.diff(data.times)),
            values=jnp.asarray(data.values),
            observed=jnp.asarray(data.observed),
            inputs=jnp.asarray(data.inputs),
            recorded=jnp.asarray(np.arange(data.times.shape[1]) < data.lengths[:, None]),
            fine=clock.grid(data.times, data.inputs),
        )

    @classmethod
    def regular(
        cls, values: Float[Array, "series time obs"], interval: float, first: int = 0
    ) -> "Batch":
        """Consecutive series observed in full at equal intervals, from observation `first` on."""
        count, length, _ = values.shape
        numbers = first + jnp.arange(count * length, dtype=values.dtype)
        return cls(
            times=interval * numbers.reshape(count, length),
            steps=jnp.full((count, length - 1), interval, values.dtype),
            values=values,
            observed=jnp.ones(values.shape, bool),
            inputs=jnp.zeros((count, length, 0), values.dtype),
            recorded=jnp.ones((count, length), bool),
        )

    @property
    def elapsed(self) -> Float[Array, "*series time"]:
        """Times since the first row, exact where times are large."""
        before = [(0, 0)] * (self.steps.ndim - 1)
        return jnp.pad(jnp.cumsum(self.steps, -1), [*before, (1, 0)])

    def bridged(self) -> Float[np.ndarray, "series time obs"]:
        """Values with straight lines over gaps, on the host; means where a column has none."""
        y, seen = np.asarray(self.values, float), np.asarray(self.observed)
        clock = np.asarray(self.elapsed, float)
        with np.errstate(invalid="ignore"):
            means = y.sum((0, 1), where=seen) / seen.sum((0, 1))
        lines = np.broadcast_to(np.nan_to_num(means), y.shape).copy()
        for series, column in np.ndindex(y.shape[0], y.shape[2]):
            there = seen[series, :, column]
            if there.any():
                known = clock[series, there], y[series, there, column]
                lines[series, :, column] = np.interp(clock[series], *known)
        return lines

    def grid(self, substeps: int, interpolation: str = "held") -> Grid:
        """The steps of one series: those of its clock, or of its rows, each cut into `substeps`."""
        if self.fine is not None:
            return self.fine.cut(substeps)
        return Grid.refine(self.times, self.steps, self.inputs, substeps, interpolation)

    def solver_steps(self, substeps: int) -> int:
        """How many steps a solver takes along a series."""
        return substeps * (self.steps if self.fine is None else self.fine.dt).shape[-1]

    def last_rows(
        self, count: int
    ) -> tuple[Float[Array, "series row obs"], Bool[Array, "series row obs"]]:
        """The last recorded rows of every series, the first one repeated where there are fewer."""
        last = self.recorded.sum(1) - 1
        rows = jnp.maximum(last[:, None] - jnp.arange(count)[::-1], 0)[..., None]
        values, observed = (
            jnp.take_along_axis(one, rows, 1) for one in (self.values, self.observed)
        )
        return values, observed

    def take(self, indices: Array) -> "Batch":
        """The series at these positions, in this order."""
        return jax.tree.map(lambda leaf: leaf[indices], self)

    def random_windows(self, length: int, *, key: PRNGKeyArray) -> "Batch":
        """A random window of `length` rows of every series, or all of a shorter one."""
        rows = self.recorded.sum(1)
        last = jnp.maximum(rows - length, 0)
        starts = jr.randint(key, (self.count,), 0, last + 1)
        length = min(length, self.times.shape[1])

        def of_one(series: Batch, start: Array) -> Batch:
            def cut(leaf: Array, size: int = length) -> Array:
                return lax.dynamic_slice_in_dim(leaf, start, size)

            return Batch(
                times=cut(series.times),
                steps=cut(series.steps, length - 1),
                values=cut(series.values),
                observed=cut(series.observed),
                inputs=cut(series.inputs),
                recorded=cut(series.recorded),
            )

        return jax.vmap(of_one)(self, starts)

    def windows(self, length: int, stride: int) -> "Batch":
        """As `Trajectories.windows`, for series without padding."""
        rows = np.arange(0, self.times.shape[-1] - length + 1, stride)[:, None] + np.arange(length)

        def pieces(leaf: Array, rows: np.ndarray) -> Array:
            return leaf[:, rows].reshape(len(leaf) * len(rows), rows.shape[1], *leaf.shape[2:])

        return Batch(
            times=pieces(self.times, rows),
            steps=pieces(self.steps, rows[:, :-1]),
            values=pieces(self.values, rows),
            observed=pieces(self.observed, rows),
            inputs=pieces(self.inputs, rows),
            recorded=pieces(self.recorded, rows),
        )

    @property
    def count(self) -> int:
        """How many series there are."""
        return self.times.shape[0]
