"""A first look at recordings, before anything is fitted: what is there, and what looks odd."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from hybridsde.data import Columns, Trajectories
from hybridsde.data.dates import Calendar
from hybridsde.data.table import lines_of
from hybridsde.forecast.spec import JITTER
from hybridsde.project.guessing import guess_table, looks_like_doses, say_missing
from hybridsde.project.settings import Settings
from hybridsde.project.settings_file import settings_bytes, settings_of
from hybridsde.project.settings_template import template_of

FAR = 12.0
"""A row that sticks out from its neighbours by so many robust spreads is an outlier."""
STUCK = 4
"""Rows that stay at one end of the range for so long look saturated."""
STILL = 6
"""Rows that are exactly equal, where a column moves elsewhere, may come from a sensor that hung."""
CHANCE = 1e-3
"""They are reported where fewer such stretches are expected by chance."""
MOST_LINES = 12
"""Lines of a table that a sentence names."""
LONG = 5.0
"""A gap of so many usual intervals is named."""
DECADES = 30.0
"""A positive column whose values differ by this factor is better seen by its logarithm."""
FEW_ROWS = 8
"""Fewer rows than this in a trajectory teach little."""


@dataclass(frozen=True)
class Doubt:
    """Cells of a state that may be a fault of its instrument, by the lines of the table."""

    state: str
    lines: tuple[int, ...]
    sentence: str


@dataclass(frozen=True)
class Look:
    """Recordings, the settings that they were read by, and what was found."""

    source: Path
    settings: Settings
    text: str
    """The settings as a file, guessed where the source is a table."""
    data: Trajectories
    columns: pd.DataFrame
    """One row per state: values, missing, range, noise, outliers, stuck."""
    findings: tuple[str, ...]
    """What to look at, a sentence each."""
    doubts: tuple[Doubt, ...]
    """Those of them that are about cells which may be empty."""


def look(source: Path) -> Look:
    """Read a table by guessed settings, or what a settings file names, and look at it."""
    said: tuple[str, ...] = ()
    if source.suffix == ".toml":
        text = settings_bytes(source).decode("utf-8-sig", errors="replace")
    else:
        guess = guess_table(source)
        said = (*guess.notes, *map(_about_doses, guess.doses))
        text = template_of(guess, source, source.parent)
    settings = settings_of(text.encode(), source)
    if source.suffix == ".toml" and settings.data.missing:
        said = (say_missing(settings.data.missing),)
    frame, meaning = settings.read_frame(source.parent)
    data = settings.recordings(frame, meaning)
    columns = column_facts(data)
    seen = _Seen(settings, data, columns, frame, meaning)
    doubts = tuple(doubt for k in range(len(data.states)) for doubt in seen.doubts(k))
    findings = (*said, *seen.about_times(), *seen.about_columns(doubts))
    return Look(source, settings, text, data, columns, findings, doubts)


def _about_doses(name: str) -> str:
    looks = looks_like_doses(name)
    return (
        f"{looks[:1].upper()}{looks[1:]} It is not used here: the settings below say the choices."
    )


def column_facts(data: Trajectories) -> pd.DataFrame:
    """Numbers about every state."""
    rows = {}
    recorded = np.arange(data.times.shape[1]) < data.lengths[:, None]
    for k, name in enumerate(data.states):
        seen = data.observed[..., k]
        values = data.values[..., k][seen]
        rows[name] = {
            "values": int(seen.sum()),
            "missing": 1 - seen.sum() / max(1, recorded.sum()),
            "lowest": float(values.min()) if values.size else np.nan,
            "highest": float(values.max()) if values.size else np.nan,
            "spread": float(values.std()) if values.size else np.nan,
            "noise": roughness(data, k),
            "outliers": len(outliers(data, k)),
            "stuck": sum(stuck(data, k))
            + sum(last - first for _, first, last in stretches(data, k)),
        }
    return pd.DataFrame(rows).T.rename_axis("state")


def _bends(data: Trajectories, column: int) -> list[tuple[int, np.ndarray, np.ndarray]]:
    """Series, rows and second differences y_k − (line through its neighbours) of each series."""
    found = []
    for series in range(len(data)):
        rows = np.flatnonzero(data.observed[series, :, column])
        if len(rows) < 3:
            continue
        t, y = data.times[series, rows], data.values[series, rows, column]
        span = t[2:] - t[:-2]
        share = np.where(span > 0, (t[1:-1] - t[:-2]) / np.where(span > 0, span, 1), 0.5)
        found.append((series, rows[1:-1], y[1:-1] - (1 - share) * y[:-2] - share * y[2:]))
    return found


def roughness(data: Trajectories, column: int) -> float:
    """How far a row lies from the line through its neighbours: √(2/3) of it is the noise at most.

    For white noise of spread σ on a straight line, y_k − (y_k−1 + y_k+1)/2 has the variance 3σ²/2.
    """
    bends = [one for _, _, one in _bends(data, column)]
    if not bends:
        return float("nan")
    return float(np.sqrt(2 / 3) * 1.4826 * np.median(np.abs(np.concatenate(bends))))


def outliers(data: Trajectories, column: int) -> list[tuple[int, int]]:
    """Series and row of values that stick out from their neighbours."""
    bends = _bends(data, column)
    if not bends:
        return []
    size = 1.4826 * np.median(np.abs(np.concatenate([one for _, _, one in bends])))
    values = data.values[..., column][data.observed[..., column]]
    least = max(FAR * size, 0.1 * float(values.std()))
    found = []
    for series, rows, bend in bends:
        # A row that sticks out bends its neighbours half as much; a step bends both sides alike.
        size_here = np.abs(bend)
        beside = np.maximum(np.append(0.0, size_here[:-1]), np.append(size_here[1:], 0.0))
        peaks = (size_here > least) & (size_here > 1.5 * beside)
        found += [(series, int(row)) for row in rows[peaks]]
    return found


def stuck(data: Trajectories, column: int) -> tuple[int, int]:
    """How many values stand at the lowest and at the highest one, `STUCK` or more in a row."""
    seen = data.values[..., column][data.observed[..., column]]
    if seen.size == 0 or seen.max() == seen.min():
        return 0, 0

    def at_end(end: float) -> int:
        total = 0
        for series in range(len(data)):
            values = data.values[series, data.observed[series, :, column], column]
            edges = np.diff(np.concatenate([[0], (values == end).astype(int), [0]]))
            runs = np.flatnonzero(edges == -1) - np.flatnonzero(edges == 1)
            total += int(runs[runs >= STUCK].sum())
        return total

    return at_end(seen.min()), at_end(seen.max())


def stretches(data: Trajectories, column: int) -> list[tuple[int, int, int]]:
    """Where a column stands still though it moves elsewhere: series, first row, row after the last.

    Rows that are exactly equal come by chance where a sensor is rounded. With p the share of rows
    that equal the one before them, elsewhere in the column, a stretch of L rows is expected
    n·p^(L−1) times among n rows; it is reported where that is below `CHANCE`. A state at rest looks
    the same, but it comes to rest and leaves it slowly, in steps of the rounding; so one end of the
    stretch must be a jump, as large as the typical step of the column. Stretches at an end of the
    range are those of `stuck`.
    """
    runs, steps = [], []
    for series in range(len(data)):
        rows = np.flatnonzero(data.observed[series, :, column])
        if not rows.size:
            continue
        y = data.values[series, rows, column]
        steps.append(np.diff(y))
        begins = np.flatnonzero(np.append(True, np.diff(y) != 0))
        for first, last in zip(begins, np.append(begins[1:], len(y)), strict=True):
            into = abs(y[first] - y[first - 1]) if first else 0.0
            out = abs(y[last] - y[first]) if last < len(y) else 0.0
            runs.append((series, rows, first, last, y[first], max(into, out)))
    sizes = np.abs(np.concatenate(steps)) if steps else np.zeros(0)
    moves = sizes[sizes > 0]
    if not moves.size:
        return []
    seen = data.values[..., column][data.observed[..., column]]
    equal = len(sizes) - len(moves)
    found = []
    for series, rows, first, last, value, jump in runs:
        own = last - first - 1
        share = (equal - own + 1) / (len(sizes) - own + 2)
        by_chance = len(sizes) * share**own
        at_end = value in (seen.min(), seen.max())
        jumped = jump > max(0.5 * np.median(moves), 1.5 * moves.min())
        if own + 1 >= STILL and by_chance < CHANCE and jumped and not at_end:
            found.append((series, int(rows[first]), int(rows[last - 1]) + 1))
    return found


@dataclass(frozen=True)
class _Seen:
    """Recordings with their table, so that rows are named as a reader finds them."""

    settings: Settings
    data: Trajectories
    columns: pd.DataFrame
    frame: pd.DataFrame
    meaning: Columns

    @property
    def unit(self) -> str:
        return self.settings.data.unit or "units of time"

    def recording(self, series: int) -> str:
        """In which one; nothing where there is only one."""
        return f" in {self.data.ids[series]}" if len(self.data) > 1 else ""

    def moment(self, time: float) -> str:
        """As the table has it: a timestamp, or a number."""
        unit = self.settings.data.unit
        if self.data.epoch is None or unit is None:
            return f"{time:.6g}"
        stamp = pd.Timestamp(Calendar(unit, self.data.epoch).moments(np.array([time]))[0])
        return f"{stamp:%Y-%m-%d %H:%M}" + (f":{stamp:%S}" if stamp.second else "")

    def lines(self, column: int, cells: list[tuple[int, int]]) -> list[int]:
        """The lines of the table that hold these series and rows of a state."""
        ids, times, name = self.data.ids, self.data.times, self.data.states[column]
        rows = [(ids[series], float(times[series, row])) for series, row in cells]
        return lines_of(self.frame, self.meaning, name, rows)

    def about_times(self) -> list[str]:
        """Gaps, intervals, and how many recordings there are."""
        data, unit, found = self.data, self.unit, []
        gaps = [np.diff(data.times[n, : int(rows)]) for n, rows in enumerate(data.lengths)]
        steps = np.concatenate(gaps) if gaps else np.zeros(0)
        usual = data.interval
        if usual:
            odd = float(np.mean(np.abs(steps - usual) > JITTER * usual))
            if odd > 0.02:
                found.append(
                    f"Times are irregular: {100 * odd:.0f} % of the intervals differ from the "
                    f"usual {usual:.3g} {unit}. That is fine here; some other systems need "
                    "equal steps."
                )
            longest = [(float(one.max()), n) for n, one in enumerate(gaps) if one.size]
            gap, series = max(longest, default=(0.0, 0))
            if gap > LONG * usual:
                row = int(np.argmax(gaps[series]))
                found.append(
                    f"The longest gap, {gap:.3g} {unit} ({gap / usual:.0f} usual intervals), comes"
                    f"{self.recording(series)} after {self.moment(data.times[series, row])}. If it "
                    "is two recordings, give them two names."
                )
        short = [data.ids[n] for n, rows in enumerate(data.lengths) if rows < FEW_ROWS]
        if short:
            named = ", ".join(short[:5]) + (" and more" if len(short) > 5 else "")
            found.append(f"{len(short)} trajectories have fewer than {FEW_ROWS} rows: {named}.")
        if len(data) == 1:
            start = float(data.times[0, int(0.8 * data.lengths[0])])
            that_is = f", which is {self.moment(start)}" if data.epoch else ""
            found.append(
                "There is one recording. Its end can be held out for scores: "
                f"test = {{ start = {start!r} }}{that_is}."
            )
        elif len(data) < 5:
            found.append(
                f"There are {len(data)} recordings: scores of held-out ones will be rough."
            )
        return found

    def about_columns(self, doubts: Sequence[Doubt]) -> list[str]:
        """Gaps, values that stick out, stretches that stand still, ranges, noise."""
        data, found = self.data, []
        for k, name in enumerate(data.states):
            row = self.columns.loc[name]
            if row["missing"] > 0.02:
                found.append(f"{name} is missing in {100 * row['missing']:.0f} % of the rows.")
            found += [doubt.sentence for doubt in doubts if doubt.state == name]
            low, high = stuck(data, k)
            if low + high:
                ends = row["lowest"] if low else -np.inf, row["highest"] if high else np.inf
                found.append(
                    f"{name} stands at an end of its range for {low + high} rows. If the "
                    f"instrument ends there: saturates = {{ {name} = [{float(ends[0])!r}, "
                    f"{float(ends[1])!r}] }}; if the quantity itself does, say `bounds` instead."
                )
            positive = row["lowest"] > 0 and row["highest"] > DECADES * row["lowest"]
            if positive and name not in self.settings.data.positive:
                found.append(
                    f"{name} is positive and ranges over a factor of "
                    f"{row['highest'] / row['lowest']:.0f}. If it cannot be zero: "
                    f'positive = ["{name}"].'
                )
            if row["noise"] > 0.3 * row["spread"]:
                found.append(
                    f"{name} changes from row to row by {100 * row['noise'] / row['spread']:.0f} % "
                    "of its spread: it is mostly noise, or sampled too rarely to follow."
                )
        return found

    def doubts(self, column: int) -> list[Doubt]:
        """Cells of a state that may be a fault of its instrument."""
        data, name, found = self.data, self.data.states[column], []
        cells = outliers(data, column)
        if cells:
            (series, at), one = cells[0], len(cells) == 1
            lines = self.lines(column, cells)
            shown = ", ".join(map(str, lines[:MOST_LINES]))
            more = f" and {len(lines) - MOST_LINES} more" if len(lines) > MOST_LINES else ""
            sentence = (
                f"{name}: {len(cells)} {'value sticks' if one else 'values stick'} out from the "
                f"neighbours, first{self.recording(series)} at "
                f"{self.moment(data.times[series, at])}. If that is a fault of the instrument, "
                f"empty {'this cell: line' if one else 'these cells: lines'} {shown}{more}."
            )
            found.append(Doubt(name, tuple(lines), sentence))
        for series, first, last in stretches(data, column):
            rows = first + np.flatnonzero(data.observed[series, first:last, column])
            lines = self.lines(column, [(series, int(row)) for row in rows])
            begin, end = (self.moment(data.times[series, row]) for row in (first, last - 1))
            sentence = (
                f"{name} is exactly {data.values[series, first, column]:.6g} for {len(rows)} rows"
                f"{self.recording(series)}, from {begin} to {end} (lines {lines[0]} to "
                f"{lines[-1]}), and moves elsewhere. If the sensor hung, empty these cells."
            )
            found.append(Doubt(name, tuple(lines), sentence))
        return found
