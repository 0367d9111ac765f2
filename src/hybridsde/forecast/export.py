"""Forecasts as files."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Int

from hybridsde._errors import InputError
from hybridsde._files import read_text, write_whole
from hybridsde.data import Trajectories
from hybridsde.data.dates import Calendar
from hybridsde.forecast.forecast import Forecast

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def future_of(
    data: Trajectories,
    origins: Int[np.ndarray, " series"],
    steps: int | None,
    times: Path | None,
    *,
    interval: float,
) -> np.ndarray:
    """Times to forecast on the clock of the data, one row per trajectory.

    A number of intervals after the row `origins` of each, times since then in a file, or the rows
    that the data have after it.
    """
    each = np.arange(len(data))
    if steps is None and times is None:
        short = np.flatnonzero(data.lengths <= origins + 1)
        if short.size:
            raise InputError(
                f"Trajectory {data.ids[short[0]]!r} has no rows after the one that its forecast "
                "starts from. Say how far to forecast: --steps or --times; or append rows with "
                "times and inputs but without values."
            )
        count = int((data.lengths - origins - 1).max())
        rows = np.minimum(origins[:, None] + 1 + np.arange(count), data.lengths[:, None] - 1)
        return data.times[each[:, None], rows]
    elapsed = _read_times(times) if times else interval * np.arange(1, (steps or 0) + 1)
    return data.times[each, origins][:, None] + elapsed


def summary(forecast: Forecast, *, hidden: bool = False) -> pd.DataFrame:
    """Mean, standard deviation and quantiles of what would be measured: one row per number.

    Rows that only pad a shorter trajectory are left out. With `hidden`, states that are not
    measured follow.
    """
    frames = [summarised(forecast.observations)]
    if hidden:
        states = forecast.states.rename({"state": "obs"})
        measured = set(forecast.observations["obs"].values)
        others = [name for name in states["obs"].values if name not in measured]
        frames += [summarised(states.sel(obs=others))] if others else []
    return pd.concat(frames, ignore_index=True)


def summarised(draws: xr.DataArray) -> pd.DataFrame:
    """Mean, standard deviation and quantiles of labelled draws, without rows that only pad."""
    parts = {"mean": draws.mean("draw"), "sd": draws.std("draw")}
    found = draws.quantile(list(QUANTILES), "draw")
    for q in QUANTILES:
        parts[f"q{round(100 * q):02d}"] = found.sel(quantile=q, drop=True)
    clock = draws["clock"]
    padding = np.zeros(clock.shape, bool)
    padding[:, 1:] = np.cumsum(np.diff(clock.values)[:, ::-1], 1)[:, ::-1] == 0
    parts["padding"] = clock.copy(data=padding)
    frame = xr.Dataset(parts).to_dataframe().reset_index()
    frame = frame[~frame.pop("padding").astype(bool)]
    frame = pd.DataFrame(frame).drop(columns="time").rename(columns={"clock": "time"})
    columns = ["trajectory", "time", "elapsed", "obs", *(one for one in parts if one != "padding")]
    return frame.reindex(columns=columns).reset_index(drop=True)


def write_forecast(
    forecast: Forecast, path: Path, *, hidden: bool = False, calendar: Calendar | None = None
) -> None:
    """A table of quantiles (.csv, .parquet), with timestamps where they are known, or all draws."""

    def draws() -> xr.Dataset:
        return xr.Dataset({"states": forecast.states, "observations": forecast.observations})

    write_table(lambda: summary(forecast, hidden=hidden), draws, path, calendar)


def write_table(
    table: Callable[[], pd.DataFrame],
    draws: Callable[[], xr.Dataset],
    path: Path,
    calendar: Calendar | None = None,
) -> None:
    """A table (.csv, .parquet), or what it summarises (.nc)."""

    def dated() -> pd.DataFrame:
        found = table()
        if calendar is not None:
            moments = calendar.moments(found["time"].to_numpy(float))
            found.insert(list(found.columns).index("time") + 1, "moment", moments)
        return found

    if path.suffix == ".csv":
        write_whole(path, dated().to_csv(index=False))
    elif path.suffix == ".parquet":
        try:
            content = dated().to_parquet(index=False)
        except ImportError:
            raise InputError(
                "Parquet needs pyarrow. Install it with: pip install 'hybridsde[parquet]'"
            ) from None
        write_whole(path, content or b"")
    elif path.suffix == ".nc":
        write_whole(path, bytes(draws().to_netcdf()))
    else:
        raise InputError(f"{path}: draws are written as .csv, .parquet or .nc.")


def _read_times(path: Path) -> np.ndarray:
    lines = read_text(path, links=True).split()
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
