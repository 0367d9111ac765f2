"""Time as a solver sees it: the steps that it takes between the rows of a recording."""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hybridsde._errors import InputError
from hybridsde._types import Array, Float, Int

ROUNDING = 1e-6
"""A gap may exceed a whole number of steps by this share of one and still be cut into as many."""
MOST_STEPS = 1_000_000
"""More solver steps along one series are refused."""


class Grid(eqx.Module):
    """Where each step of one series starts, how long it is, the inputs there, and where it ends."""

    t: Float[Array, "*series step"]
    dt: Float[Array, "*series step"]
    u: Float[Array, "*series step input"]
    row: Int[Array, "*series step"]
    """The row of the recording that is reached at the end of a step; 0 for none."""

    @classmethod
    def refine(
        cls,
        times: Float[Array, " time"],
        steps: Float[Array, " interval"],
        inputs: Float[Array, "time input"],
        substeps: int,
        interpolation: str = "held",
    ) -> "Grid":
        """Cut every interval into equal sub-steps.

        Inputs are held from each time to the next, or change linearly between them; a sub-step
        takes those at its middle.
        """
        dt = jnp.repeat(steps / substeps, substeps)
        offset = jnp.tile(jnp.arange(substeps, dtype=dt.dtype), len(steps)) * dt
        t = jnp.repeat(times[:-1], substeps) + offset
        u = jnp.repeat(inputs[:-1], substeps, axis=0)
        if interpolation == "linear":
            middle = (jnp.tile(jnp.arange(substeps, dtype=dt.dtype), len(steps)) + 0.5) / substeps
            u = u + middle[:, None] * jnp.repeat(jnp.diff(inputs, axis=0), substeps, axis=0)
        rows = jnp.arange(1, len(steps) + 1)
        return cls(t, dt, u, _at_ends(rows, substeps))

    def cut(self, substeps: int) -> "Grid":
        """Every step of one series cut into equal ones, with the inputs of the whole."""
        if substeps == 1:
            return self
        dt = jnp.repeat(self.dt / substeps, substeps)
        offset = jnp.tile(jnp.arange(substeps, dtype=dt.dtype), len(self.dt)) * dt
        return Grid(
            t=jnp.repeat(self.t, substeps) + offset,
            dt=dt,
            u=jnp.repeat(self.u, substeps, axis=0),
            row=_at_ends(self.row, substeps),
        )

    def ends(self, rows: int) -> Int[Array, " row"]:
        """The step that reaches each row after the first; the last step for rows that only pad."""
        reached = jax.lax.cummax(self.row)
        found = jnp.searchsorted(reached, jnp.arange(1, rows))
        return jnp.minimum(found, len(self.row) - 1)


def _at_ends(rows: Int[Array, " step"], substeps: int) -> Int[Array, " substep"]:
    """Rows that are reached by the last of each group of sub-steps."""
    return jnp.zeros((len(rows), substeps), rows.dtype).at[:, -1].set(rows).reshape(-1)


@dataclass(frozen=True)
class Clock:
    """How the times of a table become steps of a solver.

    - `origin`: the time that `t` counts from in equations. Subtracted in double precision.
    - `step`: no step of the solver is longer. None: rows are the steps.
    - `interpolation`: of inputs between rows, "held" or "linear".
    """

    origin: float = 0.0
    step: float | None = None
    interpolation: str = "held"

    def counts(self, times: Float[np.ndarray, "series time"]) -> Int[np.ndarray, "series interval"]:
        """Into how many equal steps each interval is cut; none after the last time of a series."""
        gaps = np.diff(times)
        wanted = np.ones_like(gaps) if self.step is None else np.ceil(gaps / self.step - ROUNDING)
        over = np.cumsum(gaps[:, ::-1], 1)[:, ::-1] == 0
        counts = np.where(over, 0, np.maximum(wanted, 1))
        most = counts.sum(1).max(initial=0)
        if most > MOST_STEPS:
            raise InputError(
                f"Steps of {self.step:g} would cut a series into {most:.3g} of them, more than "
                f"{MOST_STEPS:,}. Use longer steps, or shorter recordings."
            )
        return counts.astype(int)

    def grid(
        self,
        times: Float[np.ndarray, "series time"],
        inputs: Float[np.ndarray, "series time input"],
    ) -> Grid | None:
        """The steps of every series in double precision, padded by steps of length zero."""
        if self.step is None:
            return None
        counts = self.counts(times)
        longest = max(1, int(counts.sum(1).max()))
        parts = [
            _steps(t, u, n, longest, self.interpolation)
            for t, u, n in zip(times - self.origin, inputs, counts, strict=True)
        ]
        t, dt, u, row = (jnp.asarray(np.stack(leaves)) for leaves in zip(*parts, strict=True))
        return Grid(t, dt, u, row)


def _steps(
    times: np.ndarray, inputs: np.ndarray, counts: np.ndarray, longest: int, interpolation: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The steps of one series: beginnings, lengths, inputs, and rows that are reached."""
    interval = np.repeat(np.arange(len(counts)), counts)
    number = np.arange(len(interval)) - np.repeat(np.cumsum(counts) - counts, counts)
    dt = (np.diff(times) / np.maximum(counts, 1))[interval]
    u = inputs[interval]
    if interpolation == "linear":
        share = (number + 0.5) / counts[interval]
        u = u + share[:, None] * np.diff(inputs, axis=0)[interval]
    row = np.where(number == counts[interval] - 1, interval + 1, 0)
    spare = longest - len(interval)
    return (
        np.pad(times[interval] + number * dt, (0, spare), constant_values=times[-1]),
        np.pad(dt, (0, spare)),
        np.concatenate([u, np.repeat(inputs[-1:], spare, 0)]),
        np.pad(row, (0, spare)),
    )
