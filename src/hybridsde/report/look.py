"""The page about recordings before any fit."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hybridsde._files import write_whole
from hybridsde.data.dates import Calendar
from hybridsde.forecast.spec import SAME_STEP
from hybridsde.project.look import Look, outliers, stretches
from hybridsde.report.bands import DIGITS_OF_TIME, clock_label, lie_apart, plain
from hybridsde.report.html import asset, render_template

MOST_NUMBERS = 80_000
"""In one page; of longer recordings every second, third, … row is drawn."""
MOST_SERIES = 40
BINS = 30
"""Of the intervals between rows."""


def look_content(found: Look) -> dict[str, Any]:
    """All that is shown of recordings: what charts draw, and what is said."""
    data, unit = found.data, found.settings.data.unit
    shown = min(MOST_SERIES, len(data))
    count = int(data.lengths[:shown].sum()) * (len(data.states) + len(data.input_names) + 1)
    thin = max(1, -(-count // MOST_NUMBERS))
    apart, cells = lie_apart([data]), max(1, data.lengths.sum() * len(data.states))
    begins = data.times[:, 0] if apart else np.zeros(len(data))
    axis = _Axis(found, begins, moments=data.epoch is not None and unit is not None and not apart)
    charts = {
        "clock": f"{clock_label(unit)} since its start" if apart else axis.label,
        "columns": [*data.states, *data.input_names],
        "inputs": len(data.input_names),
        "series": [_series(found, row, thin, axis) for row in range(shown)],
        "outliers": [
            [[row, axis.at(row, at), float(data.values[row, at, k])]
             for row, at in outliers(data, k) if row < shown]
            for k in range(len(data.states))
        ],
        "still": [
            [[row, axis.at(row, first), axis.at(row, last - 1), float(data.values[row, first, k])]
             for row, first, last in stretches(data, k) if row < shown]
            for k in range(len(data.states))
        ],
        "intervals": _intervals(found),
        "unit": f", {unit}" if unit else "",
    }  # fmt: skip
    return {
        "live": charts,
        "trajectories": len(data),
        "rows_in_all": int(data.lengths.sum()),
        "states": len(data.states),
        "inputs": len(data.input_names),
        "missing": _share(1 - data.observed.sum() / cells),
        "thin": thin,
        "shown": shown,
        "interval": f"{data.interval or 0:.4g}{f' {unit}' if unit else ''}",
        "facts": fact_rows(found).reset_index().to_dict("records"),
        "findings": list(found.findings),
        "doubts": {
            one.sentence: {"state": one.state, "lines": list(one.lines)} for one in found.doubts
        },
    }


def write_look(found: Look, path: Path) -> Path:
    """Write the page."""
    text = render_template(
        "look.html",
        title=f"A first look at {found.source.name}",
        settings=found.text,
        guessed=found.source.suffix != ".toml",
        charts=asset("assets/plotly-basic.min.js"),
        common=asset("common.js"),
        script=asset("look.js"),
        **look_content(found),
    )
    write_whole(path, text)
    return path


def fact_rows(found: Look) -> pd.DataFrame:
    """Facts about every state as they are shown."""
    shown = {
        "values": "{:.0f}", "missing": "{:.0f} %", "lowest": "{:.4g}", "highest": "{:.4g}",
        "spread": "{:.3g}", "noise": "{:.2g}", "outliers": "{:.0f}", "stuck": "{:.0f}",
    }  # fmt: skip
    table = found.columns.assign(missing=100 * found.columns["missing"])
    return pd.DataFrame({name: [form.format(one) for one in table[name]]
                         for name, form in shown.items()}, table.index)  # fmt: skip


def _share(share: float) -> str:
    return "below 1 %" if 0 < share < 0.005 else f"{100 * share:.0f} %"


@dataclass(frozen=True)
class _Axis:
    """Places on the axis of time: moments where the table has them, or numbers."""

    found: Look
    begins: np.ndarray
    moments: bool

    @property
    def label(self) -> str:
        """What the axis says; the zone of moments, where they have one beside UTC."""
        data, unit = self.found.data, self.found.settings.data.unit
        if not self.moments or data.epoch is None:
            return clock_label(unit)
        zone = data.epoch[19:].lstrip("0123456789.")
        return "time" if zone in ("", "+00:00") else f"time, UTC{zone}"

    def of(self, row: int, rows: slice) -> list[Any]:
        """Those of some rows of a recording."""
        data, unit = self.found.data, self.found.settings.data.unit
        times = data.times[row, rows]
        if self.moments and data.epoch is not None and unit is not None:
            stamps = Calendar(unit, data.epoch).moments(times)
            return [str(one)[:19].replace("T", " ") for one in stamps]
        return plain(times - self.begins[row], DIGITS_OF_TIME)

    def at(self, row: int, place: int) -> Any:
        """That of one row."""
        if self.moments:
            return self.of(row, slice(place, place + 1))[0]
        return float(self.found.data.times[row, place] - self.begins[row])


def _series(found: Look, row: int, thin: int, axis: _Axis) -> dict[str, Any]:
    data = found.data
    rows = slice(0, int(data.lengths[row]), thin)
    values = np.where(data.observed[row, rows], data.values[row, rows], np.nan)
    whole = np.concatenate([values, data.inputs[row, rows]], 1)
    return {
        "id": str(data.ids[row]),
        "times": axis.of(row, rows),
        "values": plain(whole.T),
    }


def _intervals(found: Look) -> dict[str, Any] | None:
    """How often intervals between rows occur, in bins of equal width; None where all are alike."""
    data = found.data
    steps = [np.diff(data.times[n, : int(rows)]) for n, rows in enumerate(data.lengths)]
    every = np.concatenate(steps) if steps else np.zeros(0)
    if every.size == 0 or np.ptp(every) <= SAME_STEP * every.max():
        return None
    counts, edges = np.histogram(every, BINS)
    width = float(edges[1] - edges[0])
    return {"places": plain(edges[:-1] + width / 2), "width": width, "counts": counts.tolist()}
