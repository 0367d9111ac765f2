"""Numbers of a page: recordings and bands of forecasts, with as many digits as can be seen."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from hybridsde.data import Trajectories
from hybridsde.forecast import Forecast

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
DIGITS_OF_TIME = 8
APART = 3.0
"""Recordings that span so many times the longest of them are drawn from their own beginnings."""


def recorded(data: Trajectories, row: int) -> dict[str, Any]:
    """Times and measured values of a recording."""
    last = int(data.lengths[row])
    values = np.where(data.observed[row, :last], data.values[row, :last], np.nan)
    return {"times": plain(data.times[row, :last], DIGITS_OF_TIME), "values": plain(values.T)}


def bands(forecast: Forecast, row: int, rows: int) -> dict[str, Any]:
    """Quantiles of what would be measured, for every observation, at the first rows."""
    draws = forecast.observations.isel(trajectory=row, time=slice(0, rows))
    found = np.quantile(draws.values, QUANTILES, 0)
    clock = draws["clock"].values
    return {
        "times": plain(clock, DIGITS_OF_TIME),
        "quantiles": plain(np.moveaxis(found, -1, 0)),
    }


def clock_label(unit: str | None, epoch: str | None = None) -> str:
    """What an axis of time says: its unit, and the moment that timestamps count from."""
    since = f" since {epoch[:16].replace('T', ' ')}" if epoch else ""
    return f"time, {unit}{since}" if unit else "time"


def lie_apart(data: Sequence[Trajectories]) -> bool:
    """Whether recordings were made long after each other, so that one axis would show none."""
    begins = np.concatenate([one.times[:, 0] for one in data])
    ends = np.concatenate(
        [one.times[np.arange(len(one)), one.lengths.astype(int) - 1] for one in data]
    )
    return bool(np.ptp(np.append(begins, ends)) > APART * np.max(ends - begins))


def plain(numbers: np.ndarray, digits: int = 5) -> list[Any]:
    """So many digits of the range that each row spans; None where there is nothing."""
    array = np.asarray(numbers, float)
    if array.ndim > 1:
        return [plain(one, digits) for one in array]
    told = array[np.isfinite(array)]
    span = float(np.ptp(told) or np.abs(told).max()) if told.size else 0.0
    places = digits - 1 - int(np.floor(np.log10(span))) if span > 0 else 0
    return [round(float(one), places) if np.isfinite(one) else None for one in array]
