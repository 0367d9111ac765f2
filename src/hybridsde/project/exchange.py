"""Forecasts in the columns of other forecasting libraries: unique_id, ds, and intervals."""

from pathlib import Path

import pandas as pd
import xarray as xr

from hybridsde._errors import InputError
from hybridsde.data.dates import Calendar
from hybridsde.forecast import Forecast
from hybridsde.forecast.export import summary, write_table

OWN, NIXTLA = "own", "nixtla"
NAME = "hybridsde"
ENDS = {"lo-50": "q25", "hi-50": "q75", "lo-90": "q05", "hi-90": "q95"}
"""Ends of central intervals, and the quantiles that they are."""


def check_layout(layout: str, path: Path) -> None:
    """An `InputError` unless a forecast can be written in these columns into such a file."""
    if layout not in (OWN, NIXTLA):
        raise InputError(f"There is no format {layout!r}. Choose {OWN} or {NIXTLA}.")
    if layout == NIXTLA and path.suffix not in (".csv", ".parquet"):
        raise InputError(f"{path}: --format {NIXTLA} is a table, .csv or .parquet.")


def long_frame(forecast: Forecast, calendar: Calendar | None = None) -> pd.DataFrame:
    """One row per series and time: its mean, and the ends of its 50 % and 90 % intervals.

    A series is a trajectory; where several columns were measured, each of them in a trajectory,
    as in `run7/x`.
    """
    table = summary(forecast)
    names = table["trajectory"].astype(str)
    if len(set(table["obs"])) > 1:
        names = names + "/" + table["obs"].astype(str)
    times = table["time"].to_numpy(float)
    ds = times if calendar is None else calendar.moments(times)
    found = pd.DataFrame({"unique_id": names, "ds": ds, NAME: table["mean"]})
    for end, quantile in ENDS.items():
        found[f"{NAME}-{end}"] = table[quantile]
    return found.sort_values(["unique_id", "ds"], kind="stable", ignore_index=True)


def write_long_frame(forecast: Forecast, path: Path, calendar: Calendar | None = None) -> None:
    """Write it as .csv or .parquet."""
    draws = xr.Dataset({"observations": forecast.observations})
    write_table(lambda: long_frame(forecast, calendar), lambda: draws, path)
