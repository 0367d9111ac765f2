"""Cells of a table: where they stand, and the numbers and times in them."""

import warnings

import numpy as np
import pandas as pd

from hybridsde._errors import InputError

UNITS = {
    "s": 1.0,
    "min": 60.0,
    "h": 3600.0,
    "day": 86400.0,
    "week": 604800.0,
    "year": 31557600.0,
}
"""Units that timestamps can be counted in, in seconds; a year is 365.25 days."""
LINE = "\0line"
"""Column that remembers where a row was read, for messages."""
SOURCE, FILE = "\0file", "\0name"


def source_of(frame: pd.DataFrame) -> str:
    """The file a frame came from."""
    if SOURCE in frame.columns and len(frame):
        files = frame[SOURCE].unique()
        return files[0] if len(files) == 1 else f"{files[0]} and {len(files) - 1} more"
    return "The table"


def place(frame: pd.DataFrame, row: int | np.integer) -> str:
    """Where a row stands."""
    if LINE in frame.columns:
        return f"{frame[SOURCE].iloc[row]}, line {frame[LINE].iloc[row]}"
    return f"row {row}"


def as_numbers(frame: pd.DataFrame, name: str) -> np.ndarray:
    """A column as numbers; NaN where a cell is not one."""
    return np.asarray(pd.to_numeric(frame[name], errors="coerce"), float)


def numbers_of(frame: pd.DataFrame, name: str) -> np.ndarray:
    """A column as finite numbers, NaN where it is empty; an `InputError` names any other cell."""
    numbers = as_numbers(frame, name)
    cells = pd.Series(frame[name])
    filled = cells.notna() & (cells.astype(str).str.strip() != "")
    wrong = np.flatnonzero(np.isnan(numbers) & filled.to_numpy())
    if wrong.size:
        row = wrong[0]
        raise InputError(
            f"{place(frame, row)}, column {name!r}: {str(cells.iloc[row])[:40]!r} is not a "
            "number. Correct it, or leave the cell empty where a value is missing."
        )
    endless = np.flatnonzero(np.isinf(numbers))
    if endless.size:
        raise InputError(
            f"{place(frame, endless[0])}, column {name!r}: the value is infinite. Correct it, or "
            "leave the cell empty."
        )
    return numbers


def times_of(frame: pd.DataFrame, column: str, unit: str | None) -> np.ndarray:
    """Numbers as they are; timestamps in `unit` since the first of all."""
    cells = pd.Series(frame[column])
    missing = np.flatnonzero(cells.isna())
    if missing.size:
        raise InputError(
            f"{place(frame, missing[0])}: the time in column {column!r} is missing. Fill it "
            "in or drop the row."
        )
    stamped = pd.api.types.is_datetime64_any_dtype(cells)
    if not stamped and np.isfinite(as_numbers(frame, column)).any():
        return numbers_of(frame, column)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pandas warns where it must guess a format
        stamps = cells if stamped else pd.to_datetime(cells, errors="coerce", utc=True)
    wrong = np.flatnonzero(stamps.isna())
    if wrong.size:
        row = wrong[0]
        raise InputError(
            f"{place(frame, row)}, column {column!r}: {str(cells.iloc[row])[:40]!r} is "
            "neither a number nor a timestamp such as 2026-03-01 14:30."
        )
    if unit not in UNITS:
        given = "no unit is given" if unit is None else f"the unit is {unit!r}"
        raise InputError(
            f"{source_of(frame)}: the times in column {column!r} are timestamps, but {given}. "
            f"Say what one unit of time is in the equations: unit = one of {', '.join(UNITS)}."
        )
    passed = pd.Series(stamps - stamps.min()).dt.total_seconds()
    return passed.to_numpy() / UNITS[unit]
