"""A first look at recordings, before anything is fitted: what is there, and what looks odd."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from hybridsde._files import read_text
from hybridsde.data import Trajectories
from hybridsde.project.settings import Settings
from hybridsde.project.settings_file import settings_bytes, settings_of
from hybridsde.project.settings_template import settings_template

FAR = 12.0
"""A row that sticks out from its neighbours by so many robust spreads is an outlier."""
STUCK = 4
"""Rows that stay at one end of the range for so long look saturated."""
LONG = 5.0
"""A gap of so many usual intervals is named."""
DECADES = 30.0
"""A positive column whose values differ by this factor is better seen by its logarithm."""
FEW_ROWS = 8
"""Fewer rows than this in a trajectory teach little."""


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


def look(source: Path) -> Look:
    """Read a table by guessed settings, or what a settings file names, and look at it."""
    if source.suffix == ".toml":
        text = settings_bytes(source).decode("utf-8-sig", errors="replace")
    else:
        read_text(source, links=True)
        text = settings_template(source, source.parent)
    settings = settings_of(text.encode(), source)
    data = settings.read_data(source.parent)
    columns = column_facts(data)
    unit = settings.data.unit or "units of time"
    findings = (*_time_findings(data, unit), *_column_findings(data, columns, settings))
    return Look(source, settings, text, data, columns, findings)


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
            "stuck": sum(stuck(data, k)),
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


def _time_findings(data: Trajectories, unit: str) -> list[str]:
    found = []
    gaps = [np.diff(data.times[n, : int(rows)]) for n, rows in enumerate(data.lengths)]
    steps = np.concatenate(gaps) if gaps else np.zeros(0)
    usual = data.interval
    if usual:
        odd = float(np.mean(np.abs(steps - usual) > 0.05 * usual))
        if odd > 0.02:
            found.append(
                f"Times are irregular: {100 * odd:.0f} % of the intervals differ from the usual "
                f"{usual:.3g} {unit}. That is fine here; some other systems need equal steps."
            )
        longest = [(float(one.max()), n) for n, one in enumerate(gaps) if one.size]
        gap, series = max(longest, default=(0.0, 0))
        if gap > LONG * usual:
            row = int(np.argmax(gaps[series]))
            found.append(
                f"The longest gap, {gap:.3g} {unit} ({gap / usual:.0f} usual intervals), is in "
                f"{data.ids[series]} after {data.times[series, row]:.6g}. If it is two recordings, "
                "give them two names."
            )
    short = [data.ids[n] for n, rows in enumerate(data.lengths) if rows < FEW_ROWS]
    if short:
        named = ", ".join(short[:5]) + (" and more" if len(short) > 5 else "")
        found.append(f"{len(short)} trajectories have fewer than {FEW_ROWS} rows: {named}.")
    if len(data) == 1:
        found.append(
            "There is one recording. Its end can be held out for scores: "
            f"test = {{ start = {float(data.times[0, int(0.8 * data.lengths[0])])!r} }}."
        )
    elif len(data) < 5:
        found.append(f"There are {len(data)} recordings: scores of held-out ones will be rough.")
    return found


def _column_findings(data: Trajectories, columns: pd.DataFrame, settings: Settings) -> list[str]:
    found = []
    for k, name in enumerate(data.states):
        row = columns.loc[name]
        if row["missing"] > 0.02:
            found.append(f"{name} is missing in {100 * row['missing']:.0f} % of the rows.")
        if row["outliers"]:
            series, at = outliers(data, k)[0]
            many = row["outliers"] > 1
            found.append(
                f"{name}: {row['outliers']:.0f} {'values stick' if many else 'value sticks'} out "
                f"from the neighbours, first in {data.ids[series]} at "
                f"{data.times[series, at]:.6g}. Leave blank what is a fault of the instrument."
            )
        if row["stuck"]:
            low, high = stuck(data, k)
            ends = row["lowest"] if low else -np.inf, row["highest"] if high else np.inf
            found.append(
                f"{name} stands at an end of its range for {low + high} rows. If the instrument "
                f"ends there: saturates = {{ {name} = [{float(ends[0])!r}, {float(ends[1])!r}] }}; "
                "if the quantity itself does, say `bounds` instead."
            )
        positive = row["lowest"] > 0 and row["highest"] > DECADES * row["lowest"]
        if positive and name not in settings.data.positive:
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
