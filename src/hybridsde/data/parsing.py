"""Cells of a table: where they stand, and the numbers and times in them."""

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
LARGEST, SMALLEST = 1e17, 1e-15
"""What values may be, and how little they may change: squares must fit into single precision."""
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
    endless = np.flatnonzero(np.abs(numbers) > LARGEST)
    if endless.size:
        raise InputError(
            f"{place(frame, endless[0])}, column {name!r}: {str(cells.iloc[endless[0]])[:40]} is "
            f"infinite, or beyond {LARGEST:g}. Correct it, leave the cell empty, or choose other "
            "units."
        )
    return numbers
