"""What columns of an unknown table look like: a clock, a setting that jumps, a spoiled cell."""

import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from hybridsde._errors import InputError
from hybridsde.data.parsing import UNITS, as_numbers

STEADY = 0.4
"""A column that changes in fewer rows than this share is taken for an input."""
MANY_GAPS = 5
"""A unit of time holds so many rows at most: quarters of an hour are counted in hours."""


def counts(numbers: np.ndarray) -> bool:
    """Whether a column only numbers the rows."""
    return bool(np.isfinite(numbers).all() and len(numbers) > 2 and (np.diff(numbers) == 1).all())


def jumps(numbers: np.ndarray) -> bool:
    """Whether a column stays where it is for most rows and then jumps, as a setting does."""
    told = numbers[np.isfinite(numbers)]
    moves = np.diff(told) != 0
    return bool(len(told) > 10 and 0 < moves.mean() < STEADY)


def increases(numbers: np.ndarray) -> bool:
    """Whether a column mostly rises; a few cells may be spoiled."""
    told = numbers[np.isfinite(numbers)]
    return bool(len(told) > 0.9 * len(numbers) and (np.diff(told) > 0).mean() > 0.8)


def varies(numbers: np.ndarray) -> bool:
    """Whether a column holds more than two numbers."""
    return len(np.unique(numbers[np.isfinite(numbers)])) > 2


def usual_unit(frame: pd.DataFrame, time: str) -> str:
    """The longest unit of time that is not much longer than what lies between two rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pandas warns where it must guess a format
        stamps = pd.to_datetime(pd.Series(frame[time].astype(str)), errors="coerce", utc=True)
    gaps = stamps.dropna().drop_duplicates().sort_values().diff().dt.total_seconds()
    usual = float(gaps.median()) if gaps.notna().any() else UNITS["h"]
    fitting = [name for name, seconds in UNITS.items() if seconds <= MANY_GAPS * usual]
    return fitting[-1] if fitting else "s"


def are_words(frame: pd.DataFrame, name: str) -> np.ndarray:
    """Which cells of a column hold something that is no number."""
    cells = frame[name]
    filled = cells.notna() & (cells.astype(str).str.strip() != "")
    return np.isnan(as_numbers(frame, name)) & filled.to_numpy()


def check_cells(table: Path, frame: pd.DataFrame, numbers: dict[str, np.ndarray]) -> None:
    """An `InputError` names the first cell that is no number in a column that else holds some."""
    for name, column in numbers.items():
        wrong = np.flatnonzero(are_words(frame, name))
        if 0 < wrong.size < np.isfinite(column).sum():
            cell = str(frame[name].iloc[wrong[0]])[:40]
            raise InputError(
                f"{table}, row {frame.index[wrong[0]] + 1} below the header, column {name!r}: "
                f"{cell!r} is not a number. Correct it, or leave the cell empty where a value is "
                "missing."
            )
