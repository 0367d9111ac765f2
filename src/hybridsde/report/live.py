"""What the page can be asked: forecasts from several rows, what-if forecasts, the drift along time.

Everything is computed here and written into the page, which needs no network and no server.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from hybridsde._errors import InputError
from hybridsde.data import Trajectories
from hybridsde.forecast import AbstractStateEstimator, Forecast
from hybridsde.forecast.backtest import origins_of
from hybridsde.report.bands import DIGITS_OF_TIME, QUANTILES, bands, plain, recorded
from hybridsde.report.drift import Hybrid, rates_along
from hybridsde.report.whatif import what_if
from hybridsde.run import Run

DRAWS = 200
MOST_NUMBERS = 60_000
"""Of forecasts in one page: fewer trajectories are shown where they are long."""
MOST_SERIES, ORIGINS = 12, 8
MOST_ROWS = 1500
"""Of a recording that are drawn."""
SMOOTHED = 60
"""Sampled paths behind the drift along time."""


def live_content(
    run: Run,
    hybrid: Hybrid | None,
    held_out: Trajectories,
    whole: Trajectories,
    first: Forecast,
    horizon: int | None,
    clock: str,
) -> dict[str, Any]:
    """All that the page draws by itself, of the first `MOST_ROWS` rows of every recording.

    - `held_out`: recordings as they are scored, in pieces where there is a `horizon`; `first` are
      their forecasts from the first rows.
    - `whole`: the same recordings uncut.
    """
    names, given = list(run.spec.observations), run.spec.context
    cut_short = bool((whole.lengths > MOST_ROWS).any())
    held_out, whole = _shortened(held_out), _shortened(whole)
    each = held_out.times.shape[1] * len(names) * (len(QUANTILES) + 1)
    count = int(np.clip(MOST_NUMBERS // max(1, each), 1, min(MOST_SERIES, len(held_out))))
    return {
        "clock": clock,
        "observations": names,
        "given": given,
        "shortened": MOST_ROWS if cut_short else None,
        "series": [
            {
                "id": str(held_out.ids[row]),
                **recorded(held_out, row),
                "forecast": bands(first, row, int(held_out.lengths[row]) - given),
            }
            for row in range(count)
        ],
        "rolling": list(_rolling(run, whole, horizon)),
        "whatif": what_if(run, held_out),
        "drift": [] if hybrid is None else _drift(run, hybrid, whole),
    }


def _shortened(data: Trajectories) -> Trajectories:
    """The first rows of every recording."""
    if data.times.shape[1] <= MOST_ROWS:
        return data
    found = data.cut([(n, 0, min(int(rows), MOST_ROWS)) for n, rows in enumerate(data.lengths)])
    return replace(found, ids=data.ids)


def _rolling(run: Run, data: Trajectories, horizon: int | None) -> Iterator[dict[str, Any]]:
    """Forecasts along whole records, each given all rows before; none where they are too short."""
    ahead = horizon or max(1, int(np.median(data.lengths)) // 4)
    try:
        starts = origins_of(data, ahead, ORIGINS, run.spec.context)
    except InputError:
        return
    shown = sorted({series for series, _ in starts})[:MOST_SERIES]
    numbers = ahead * len(run.spec.observations) * len(QUANTILES) * ORIGINS
    shown = shown[: max(1, MOST_NUMBERS // max(1, numbers))]
    starts = [(series, row) for series, row in starts if series in shown]
    later = [(series, slice(row + 1, row + 1 + ahead)) for series, row in starts]
    found = run.forecast(
        data.cut([(series, 0, row + 1) for series, row in starts]),
        np.stack([data.times[one] for one in later]),
        inputs=np.stack([data.inputs[one] for one in later]),
        draws=DRAWS,
    )
    for series in shown:
        mine = [number for number, (one, _) in enumerate(starts) if one == series]
        yield {
            "id": str(data.ids[series]),
            **recorded(data, series),
            "origins": [{"row": starts[n][1], "forecast": bands(found, n, ahead)} for n in mine],
        }


def _drift(run: Run, hybrid: Hybrid, data: Trajectories) -> list[dict[str, Any]]:
    """Known, learned and noise along smoothed records, in the units of the states per time."""
    latent = hybrid.spec.latent is not None
    if latent or not isinstance(run.forecaster, AbstractStateEstimator):
        return []
    shown = data.take(range(min(4, len(data))))
    smoothed = run.smooth(shown, estimator="extended", draws=SMOOTHED).states
    spread = getattr(hybrid.model.diffusion, "sd", None)
    found = []
    for row in range(len(shown)):
        last = int(shown.lengths[row])
        path = np.median(smoothed.isel(trajectory=row).values[:, :last], 0)
        times, inputs = shown.times[row, :last], shown.inputs[row, :last]
        learned, known = rates_along(hybrid, path, times, inputs)
        usual = float(np.median(np.diff(times)[np.diff(times) > 0])) if last > 1 else 1.0
        noise = None
        if spread is not None:
            size = np.broadcast_to(np.asarray(spread.value), (len(hybrid.spec.states),))
            slope = [name in hybrid.spec.positive for name in hybrid.spec.states]
            noise = np.where(slope, path, 1.0) * size / np.sqrt(usual)
        low, middle, high = np.quantile(learned, [0.05, 0.5, 0.95], 0)
        found.append(
            {
                "id": str(shown.ids[row]),
                "times": plain(times, DIGITS_OF_TIME),
                "states": list(hybrid.spec.states),
                "known": plain(known.T),
                "learned": plain(middle.T),
                "low": plain(low.T),
                "high": plain(high.T),
                "noise": None if noise is None else plain(noise.T),
            }
        )
    return found
