"""Forecasts while sliders are moved: inputs, physical parameters, and where the forecast begins.

All beginnings along a recording are one batch of one shape, so that nothing is compiled again when
a slider moves.
"""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from hybridsde._errors import InputError, InputNotice
from hybridsde._parameters import Bounded
from hybridsde.data import Trajectories
from hybridsde.hybrid import SDEForecaster
from hybridsde.hybrid.parameters import parameters_of
from hybridsde.report.bands import bands, recorded
from hybridsde.report.whatif import with_parameter
from hybridsde.run import Run
from hybridsde.studio.opened import OpenRun

ORIGINS = 6
"""Rows along a recording from which forecasts begin."""
DRAWS = 200
MOST_ROWS = 600
"""Of a recording that are forecast."""
BEYOND = 0.25
"""How far a forecast goes on after the end of a recording, as a share of its rows."""
WIDEST = 2.0
"""An input or a parameter can be set to so many times what it is."""


def sliders_of(run: Run) -> list[dict[str, Any]]:
    """What can be changed: inputs by a factor, parameters by their value."""
    found = [
        {"kind": "input", "name": name, "low": 0.0, "high": WIDEST, "now": 1.0}
        for name in run.spec.inputs
    ]
    if not isinstance(run.forecaster, SDEForecaster):
        return found
    for name, parameter in parameters_of(run.forecaster.model.known.physics).items():
        now = np.asarray(parameter.value, float)
        if now.ndim or now == 0 or not np.isfinite(now):
            continue
        ends = sorted((0.0, WIDEST * float(now)))
        if isinstance(parameter, Bounded):
            ends = [parameter.low, parameter.high]
        found.append(
            {"kind": "parameter", "name": name, "low": ends[0], "high": ends[1], "now": float(now)}
        )
    return found


def forecasts_along(opened: OpenRun, series: str, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Forecasts of one recording from several of its rows, all rows before given.

    `changes` are `inputs` (factors by name) and `parameters` (values by name). After the end of the
    recording the last inputs stay, which the page says where `held`.
    """
    data = opened.recordings
    if series not in data.ids:
        raise InputError(f"There is no recording {series[:60]!r} in this run.")
    whole = _first_rows(data, data.ids.index(series))
    given = _origins(int(whole.lengths[0]), opened.run.spec.context)
    history = whole.cut([(0, 0, rows) for rows in given])
    clock, inputs = _future(whole, given, opened.run.metadata.interval)
    run = _changed(opened.run, changes.get("parameters") or {})
    factors = _factors(run, changes.get("inputs") or {})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputNotice)  # what was changed may lead anywhere
        found = run.forecast(history, clock, inputs=inputs * factors, draws=DRAWS)
    last = whole.times[0, -1] + BEYOND * (whole.times[0, -1] - whole.times[0, 0])
    return {
        "id": series,
        "part": opened.part_of(series),
        "held": bool(opened.run.spec.inputs),
        **recorded(whole, 0),
        "origins": [
            {"given": rows, "forecast": bands(found, n, int((clock[n] <= last).sum()))}
            for n, rows in enumerate(given)
        ],
    }


def _first_rows(data: Trajectories, row: int) -> Trajectories:
    """One recording, without what is too long to be shown."""
    return data.cut([(row, 0, min(int(data.lengths[row]), MOST_ROWS))])


def _origins(rows: int, context: int) -> list[int]:
    """How many rows are given, from the fewest to all of them."""
    return sorted({round(float(one)) for one in np.linspace(context, rows, ORIGINS)})


def _future(
    whole: Trajectories, given: list[int], interval: float | None
) -> tuple[np.ndarray, np.ndarray]:
    """Times and inputs after each beginning, as many for each: the recording's, then further."""
    rows = int(whole.lengths[0])
    steps = rows - given[0] + max(1, round(BEYOND * rows))
    usual = interval or whole.interval or 1.0
    times = np.append(
        whole.times[0, :rows], whole.times[0, rows - 1] + usual * np.arange(1, 2 * rows)
    )
    places = np.array(given)[:, None] + np.arange(steps)
    return times[places], whole.inputs[0, np.minimum(places, rows - 1)]


def _changed(run: Run, parameters: Mapping[str, Any]) -> Run:
    known = {one["name"]: one for one in sliders_of(run) if one["kind"] == "parameter"}
    for name, value in parameters.items():
        if name not in known:
            raise InputError(f"There is no parameter {str(name)[:60]!r} in this run.")
        if value != known[name]["now"]:
            run = with_parameter(run, name, _number(name, value))
    return run


def _factors(run: Run, inputs: Mapping[str, Any]) -> np.ndarray:
    unknown = [name for name in inputs if name not in run.spec.inputs]
    if unknown:
        raise InputError(f"There is no input {str(unknown[0])[:60]!r} in this run.")
    return np.array([_number(name, inputs.get(name, 1.0)) for name in run.spec.inputs])


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
        raise InputError(f"{name} must be a number, but is {str(value)[:60]!r}.")
    return float(value)
