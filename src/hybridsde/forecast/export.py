"""Forecasts as files."""

from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

from hybridsde._errors import InputError
from hybridsde._files import write_whole
from hybridsde.data import Trajectories
from hybridsde.forecast.forecast import Forecast

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def future_of(
    data: Trajectories, steps: int | None, times: Path | None
) -> tuple[np.ndarray, np.ndarray]:
    """Times to forecast on the clock of the data, and the inputs there, one row per trajectory.

    A number of usual intervals, times since the start in a file, or the times of the data. Where
    times are not those of the data an input keeps its last recorded value.
    """
    if steps is None and times is None:
        return data.times[:, 1:], data.inputs[:, 1:]
    if times is not None:
        elapsed = _read_times(times)
    else:
        gaps = np.diff(data.times, axis=1)
        elapsed = float(np.median(gaps[gaps > 0])) * np.arange(1, (steps or 0) + 1)
    clock = data.times[:, :1] + elapsed
    rows = [
        np.searchsorted(data.times[n, : data.lengths[n]], clock[n] + 1e-9, "right") - 1
        for n in range(len(data))
    ]
    return clock, np.stack([data.inputs[n, row] for n, row in enumerate(rows)])


def summary(forecast: Forecast) -> pd.DataFrame:
    """Mean, standard deviation and quantiles of what would be measured, one row per number."""
    draws = forecast.observations
    parts = {"mean": draws.mean("draw"), "sd": draws.std("draw")}
    found = draws.quantile(list(QUANTILES), "draw")
    for q in QUANTILES:
        parts[f"q{round(100 * q):02d}"] = found.sel(quantile=q, drop=True)
    frame = xr.Dataset(parts).to_dataframe().reset_index()
    frame = frame.rename(columns={"time": "elapsed", "clock": "time"})
    return frame.reindex(columns=["trajectory", "time", "elapsed", "obs", *parts])


def write_forecast(forecast: Forecast, path: Path) -> None:
    """A table of quantiles (.csv, .parquet) or all draws (.nc)."""
    if path.suffix == ".csv":
        write_whole(path, summary(forecast).to_csv(index=False))
    elif path.suffix == ".parquet":
        try:
            content = summary(forecast).to_parquet(index=False)
        except ImportError:
            raise InputError(
                "Parquet needs pyarrow. Install it with: pip install 'hybridsde[parquet]'"
            ) from None
        write_whole(path, content or b"")
    elif path.suffix == ".nc":
        draws = xr.Dataset({"states": forecast.states, "observations": forecast.observations})
        write_whole(path, bytes(draws.to_netcdf()))
    else:
        raise InputError(f"{path}: a forecast is written as .csv, .parquet or .nc.")


def _read_times(path: Path) -> np.ndarray:
    try:
        lines = path.read_text(encoding="utf-8").split()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}.") from None
    numbers = []
    for number, word in enumerate(lines, 1):
        try:
            numbers.append(float(word))
        except ValueError:
            raise InputError(f"{path}, line {number}: {word[:40]!r} is not a number.") from None
    if not numbers or not np.isfinite(numbers).all() or np.any(np.diff(numbers) <= 0):
        raise InputError(f"{path} must hold finite times that increase, one on every line.")
    if numbers[0] < 0:
        raise InputError(f"{path} begins with {numbers[0]:g}; times count from the start, so 0 on.")
    return np.array(numbers)
