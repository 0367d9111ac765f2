"""Recordings: several series of different lengths at irregular times, with gaps."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int

from hybridsde._types import Numbers
from hybridsde.data.checks import (
    check_length,
    check_names,
    check_shape,
    check_times,
    check_values,
    check_whole,
)


@dataclass(frozen=True, eq=False)
class Trajectories:
    """Series on a common rectangle: shorter ones repeat their last time, unobserved.

    A repeated time is a step of length zero: wherever the drift is finite it moves no state, adds
    no path KL and has no likelihood, so solvers and objectives need no mask. Build one with
    `from_arrays`; the fields are not checked here.
    """

    times: Float[np.ndarray, "series time"]
    values: Float[np.ndarray, "series time obs"]
    observed: Bool[np.ndarray, "series time obs"]
    inputs: Float[np.ndarray, "series time input"]
    lengths: Int[np.ndarray, " series"]
    ids: tuple[str, ...]
    origins: tuple[str, ...]
    """The recording each series was cut from; itself unless it is a window."""
    states: tuple[str, ...]
    input_names: tuple[str, ...]
    epoch: str | None = None
    """The moment at which times are zero, where they were read from timestamps."""

    @classmethod
    def from_arrays(
        cls,
        times: Sequence[Numbers],
        values: Sequence[Numbers],
        *,
        states: Sequence[str] | None = None,
        observed: Sequence[Numbers] | None = None,
        inputs: Sequence[Numbers] | None = None,
        input_names: Sequence[str] | None = None,
        ids: Sequence[str] | None = None,
    ) -> "Trajectories":
        """Check and pad one array of times and one of values per series.

        - `values[i]` has one row per time and one column per state.
        - `observed[i]` is False where a value is missing; by default nothing is missing.
        - `inputs[i]` has one column per exogenous input u(t).
        """
        series = _identifiers(ids, len(times))
        clocks = _numbers(times, series, "times")
        for t, name in zip(clocks, series, strict=True):
            check_length(t, name)
            check_times(t, name)
        nothing = [np.zeros((len(t), 0)) for t in clocks]
        y = _numbers(values, series, "values")
        u = _numbers(nothing if inputs is None else inputs, series, "inputs")
        columns = _column_names(states, y, "x")
        input_columns = _column_names(input_names, u, "u")
        check_names(columns + input_columns, "states" if inputs is None else "states, input_names")
        seen = [np.ones(rows.shape, bool) for rows in y] if observed is None else observed
        _check_count(seen, len(series), "observed")
        seen = [np.asarray(mask, bool) for mask in seen]
        for t, rows, mask, driven, name in zip(clocks, y, seen, u, series, strict=True):
            check_shape(rows, len(t), len(columns), "values", name)
            check_shape(mask, len(t), len(columns), "observed", name)
            check_values(rows, mask, columns, name)
            check_shape(driven, len(t), len(input_columns), "inputs", name)
            check_values(driven, np.ones(driven.shape, bool), input_columns, name, "inputs")
        length = max(len(t) for t in clocks)
        known = [np.where(mask, rows, 0.0) for rows, mask in zip(y, seen, strict=True)]
        return cls(
            times=_stack(clocks, length, mode="edge"),
            values=_stack(known, length),
            observed=_stack(seen, length),
            inputs=_stack(u, length, mode="edge"),
            lengths=np.array([len(t) for t in clocks]),
            ids=series,
            origins=series,
            states=columns,
            input_names=input_columns,
        )

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        gaps = 1 - self.observed.sum() / max(1, self.lengths.sum() * len(self.states))
        longest = f"{self.lengths.min()}–{self.lengths.max()}" if len(self) else "0"
        inputs = f", inputs {', '.join(self.input_names)}" if self.input_names else ""
        return (
            f"Trajectories({len(self)} series of {longest} times, states "
            f"{', '.join(self.states)}{inputs}, {gaps:.0%} missing)"
        )

    def __iter__(self) -> Iterator["Trajectories"]:
        return (self.take([index]) for index in range(len(self)))

    @property
    def interval(self) -> float | None:
        """The usual time between rows; None where no series has two."""
        gaps = np.diff(self.times, axis=1)
        return float(np.median(gaps[gaps > 0])) if np.any(gaps > 0) else None

    @property
    def ends(self) -> Float[np.ndarray, " series"]:
        """The last time of every series."""
        return self.times[np.arange(len(self)), self.lengths - 1]

    @property
    def told_rows(self) -> Int[np.ndarray, " series"]:
        """How many rows each series has up to the last that holds a value; one at least."""
        held: np.ndarray = np.any(self.observed, axis=-1)
        last = held.shape[1] - np.argmax(held[:, ::-1], axis=1)
        return np.where(np.any(held, axis=1), last, 1)

    def named(self, ids: Sequence[str]) -> "Trajectories":
        """The same series under other names."""
        return replace(self, ids=_identifiers(ids, len(self)))

    def take(self, indices: Numbers) -> "Trajectories":
        """The series at these positions, trimmed to the longest of them."""
        indices = self._positions(indices)
        length = int(self.lengths[indices].max())
        return replace(
            self,
            times=self.times[indices, :length],
            values=self.values[indices, :length],
            observed=self.observed[indices, :length],
            inputs=self.inputs[indices, :length],
            lengths=self.lengths[indices],
            ids=tuple(self.ids[i] for i in indices),
            origins=tuple(self.origins[i] for i in indices),
        )

    def _positions(self, indices: Numbers) -> Int[np.ndarray, " series"]:
        given = np.atleast_1d(np.asarray(indices))
        if given.dtype == bool and given.shape == (len(self),):
            given = np.flatnonzero(given)
        whole = given.ndim == 1 and given.size > 0 and np.issubdtype(given.dtype, np.integer)
        if not whole or given.min() < -len(self) or given.max() >= len(self):
            raise ValueError(
                f"`indices` must be positions of at least one of the {len(self)} series, or one "
                f"truth value per series, but is {indices!r}."
            )
        return given

    def split(self, fraction: float, *, seed: int) -> tuple["Trajectories", "Trajectories"]:
        """Two disjoint parts, by recording: windows of one recording stay together."""
        if not 0 < fraction < 1:
            raise ValueError(f"`fraction` must lie strictly between 0 and 1, but is {fraction}.")
        recordings = sorted(set(self.origins))
        if len(recordings) < 2:
            raise ValueError(
                "`split` needs at least two recordings, because windows of one recording are not "
                f"independent, but there is only {recordings}. Give more series, or cut the one "
                "in time yourself with `windows` and `take`."
            )
        count = int(np.clip(round(fraction * len(recordings)), 1, len(recordings) - 1))
        chosen = np.random.default_rng(seed).permutation(len(recordings))[:count]
        first = {recordings[i] for i in chosen}
        inside = np.array([origin in first for origin in self.origins])
        return self.take(np.flatnonzero(inside)), self.take(np.flatnonzero(~inside))

    def windows(
        self, length: int, stride: int | None = None, *, least: int | None = None
    ) -> "Trajectories":
        """Every series cut into windows of `length` times, one beginning every `stride` times.

        A shorter window at the end is dropped, unless it has `least` times or more.
        `windows(n, n - 1, least=2)` uses every interval once: a window begins at the last time of
        the one before.
        """
        return self.cut(self.cuts(length, stride, least=least))

    def cuts(
        self, length: int, stride: int | None = None, *, least: int | None = None
    ) -> list[tuple[int, int, int]]:
        """Where `windows` cuts: the position of a series, first row, and the row after the last."""
        stride = length if stride is None else stride
        least = length if least is None else least
        check_whole(length, "length", least=2)
        check_whole(stride, "stride")
        check_whole(least, "least")
        cuts = [
            (series, start, min(start + length, rows))
            for series, rows in enumerate(map(int, self.lengths))
            for start in range(0, rows - least + 1, stride)
        ]
        if not cuts:
            raise ValueError(
                f"`length` is {length}, but the longest series has {self.lengths.max()} times. "
                "Ask for shorter windows."
            )
        return cuts

    def cut(self, cuts: Sequence[tuple[int, int, int]]) -> "Trajectories":
        """Windows by position of the series, first row, and the row after the last."""
        longest = max(end - start for _, start, end in cuts)
        series = np.array([s for s, _, _ in cuts])[:, None]
        starts, ends = (np.array([cut[n] for cut in cuts])[:, None] for n in (1, 2))
        rows = starts + np.arange(longest)
        inside = rows < ends
        rows = np.minimum(rows, ends - 1)
        whole = (ends[:, 0] == self.lengths[series[:, 0]]) & (starts[:, 0] == 0)
        names = [
            self.ids[s] if all_of_it else f"{self.ids[s]}[{a}:{b}]"
            for (s, a, b), all_of_it in zip(cuts, whole, strict=True)
        ]
        return replace(
            self,
            times=self.times[series, rows],
            values=np.where(inside[..., None], self.values[series, rows], 0.0),
            observed=self.observed[series, rows] & inside[..., None],
            inputs=self.inputs[series, rows],
            lengths=(ends - starts)[:, 0],
            ids=tuple(names),
            origins=tuple(self.origins[s] for s, _, _ in cuts),
        )

    def told(self, interpolation: str = "held") -> "Trajectories":
        """Without the rows that say nothing: no value was observed, and inputs stay as they were.

        Between "linear" inputs a row also says something where they begin to change. The first row
        of a series is kept, where forecasts begin.
        """
        rows = np.arange(self.times.shape[1])
        recorded = rows < self.lengths[:, None]
        changed = np.zeros(recorded.shape, bool)
        moves = np.any(np.diff(self.inputs, axis=1) != 0, -1)
        changed[:, 1:] = moves
        if interpolation == "linear":
            changed[:, :-1] |= moves
        keep = recorded & (self.observed.any(-1) | changed | (rows == 0))
        if np.array_equal(keep, recorded):
            return self
        counts = keep.sum(1)
        order = np.argsort(~keep, axis=1, kind="stable")[:, : counts.max()]
        padded = np.arange(counts.max()) >= counts[:, None]
        order = np.where(padded, np.take_along_axis(order, counts[:, None] - 1, 1), order)
        each = np.arange(len(self))[:, None]
        return replace(
            self,
            times=self.times[each, order],
            values=np.where(padded[..., None], 0.0, self.values[each, order]),
            observed=self.observed[each, order] & ~padded[..., None],
            inputs=self.inputs[each, order],
            lengths=counts,
        )

    def join(self, other: "Trajectories") -> "Trajectories":
        """The series of both; they have the same columns, and no id twice."""
        for name in ("states", "input_names"):
            if getattr(self, name) != getattr(other, name):
                raise ValueError(
                    f"`{name}` differ: {', '.join(getattr(self, name))} and "
                    f"{', '.join(getattr(other, name))}. Only equal columns can be joined."
                )
        length = max(self.times.shape[1], other.times.shape[1])

        def both(name: str, **mode) -> np.ndarray:
            return _stack([*getattr(self, name), *getattr(other, name)], length, **mode)

        return replace(
            self,
            times=both("times", mode="edge"),
            values=both("values"),
            observed=both("observed"),
            inputs=both("inputs", mode="edge"),
            lengths=np.concatenate([self.lengths, other.lengths]),
            ids=_identifiers(self.ids + other.ids, len(self) + len(other)),
            origins=self.origins + other.origins,
        )

    def start(self, rows: int = 1) -> "Trajectories":
        """The first time of every series, or its first rows: what a forecast starts from."""
        check_whole(rows, "rows")
        return replace(
            self,
            times=self.times[:, :rows],
            values=self.values[:, :rows],
            observed=self.observed[:, :rows],
            inputs=self.inputs[:, :rows],
            lengths=np.minimum(self.lengths, rows),
        )


def _identifiers(ids: Sequence[str] | None, count: int) -> tuple[str, ...]:
    if count == 0:
        raise ValueError("`times` holds no series. Give at least one.")
    if ids is None:
        return tuple(str(index) for index in range(count))
    _check_count(ids, count, "ids")
    names = tuple(str(name) for name in ids)
    for position, name in enumerate(names):
        if name in names[:position]:
            raise ValueError(f"`ids` names series {name!r} twice. Give every series its own id.")
    return names


def _check_count(given: Sequence, count: int, what: str) -> None:
    if len(given) != count:
        raise ValueError(
            f"`{what}` holds {len(given)} series but `times` holds {count}. Give one per series."
        )


def _numbers(given: Sequence[Numbers], names: tuple[str, ...], what: str) -> list[np.ndarray]:
    _check_count(given, len(names), what)
    arrays = []
    for series, name in zip(given, names, strict=True):
        try:
            arrays.append(np.asarray(series, float))
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"`{what}` of series {name!r} is not an array of numbers: {error}"
            ) from None
    return arrays


def _column_names(
    names: Sequence[str] | None, series: Sequence[np.ndarray], letter: str
) -> tuple[str, ...]:
    if names is not None:
        check_names(names, "states" if letter == "x" else "input_names")
        return tuple(names)
    columns = series[0].shape[-1] if series[0].ndim == 2 else 1
    return tuple(f"{letter}{index}" for index in range(columns))


def _stack(series: Sequence[np.ndarray], length: int, **mode) -> np.ndarray:
    """Pad each series at its end and stack them."""
    return np.stack(
        [
            np.pad(array, [(0, length - len(array))] + [(0, 0)] * (array.ndim - 1), **mode)
            for array in series
        ]
    )
