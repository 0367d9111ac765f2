"""Cells of a table: where they stand, and the numbers and times in them."""

import json
import re
from dataclasses import dataclass

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


@dataclass(frozen=True)
class Reading:
    """How cells of text become numbers.

    - `decimal`: what stands before the digits after the point; the other of "." and "," may group
      thousands, as in 1.234,5, and so may spaces and apostrophes.
    - `missing`: what a cell says where a value is missing, beside nothing at all.

    A cell such as 1,234 is 1234 only where another cell of its column shows that commas group
    thousands. Else it is not read, because in other countries it is 1.234.
    """

    decimal: str = "."
    missing: tuple[str, ...] = ()

    def filled(self, cells: pd.Series) -> np.ndarray:
        """Which cells say something."""
        texts = cells.astype(str).str.strip()
        empty = cells.isna() | (texts == "") | texts.isin([one.strip() for one in self.missing])
        return ~np.asarray(empty | self._sentinel(cells), bool)

    def numbers(self, cells: pd.Series) -> np.ndarray:
        """NaN where a cell says nothing, or nothing that is a number."""
        if pd.api.types.is_datetime64_any_dtype(cells):
            return np.full(len(cells), np.nan)
        if pd.api.types.is_numeric_dtype(cells):
            found = _to_numbers(cells)
        else:
            texts = cells.astype(str).str.strip().str.replace("\u2212", "-", regex=False)
            found = _numbers_of_texts(texts, self.decimal)
        return np.where(self.filled(cells), found, np.nan)

    def _sentinel(self, cells: pd.Series) -> pd.Series | bool:
        """Numbers that mean missing, such as -999, in columns that hold numbers already."""
        if not pd.api.types.is_numeric_dtype(cells) or not self.missing:
            return False
        return cells.isin(list(_to_numbers(pd.Series(self.missing))))

    def remedy(self, cell: str, *, needed: bool = False) -> str:
        """What to do about a cell that is not a number."""
        other = _other(self.decimal)
        if re.fullmatch(rf"[+-]?[1-9]\d{{0,2}}\{other}\d{{3}}", cell):
            return (
                f"It may be {cell.replace(other, '')} or {cell.replace(other, '.')}. Write it "
                f"without a thousands separator, or say decimal = {_quote(other)}."
            )
        if np.isfinite(_numbers_of_texts(pd.Series([cell]), other)[0]):
            mark = "comma" if other == "," else "point"
            return f"Where numbers have a decimal {mark}, say decimal = {_quote(other)}."
        if needed:
            return "Correct it, or leave out the row."
        return (
            "Correct it, leave the cell empty where a value is missing, or list what means that: "
            f"missing = [{_quote(cell)}]."
        )


PLAIN = Reading()
EXPONENT = r"(?:[eE][+-]?\d+)?"


def _other(decimal: str) -> str:
    return "," if decimal == "." else "."


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _to_numbers(cells: pd.Series) -> np.ndarray:
    return np.array(pd.to_numeric(cells, errors="coerce"), float)


def _numbers_of_texts(texts: pd.Series, decimal: str) -> np.ndarray:
    """Numbers as they are written with this decimal mark; NaN for everything else."""
    if decimal == ".":
        found = _to_numbers(texts)
        if not np.isnan(found).any():
            return found
    else:
        found = np.full(len(texts), np.nan)
        plain = texts.str.fullmatch(rf"[+-]?(?:\d+,?\d*|,\d+){EXPONENT}").to_numpy(bool)
        found[plain] = _to_numbers(pd.Series(texts[plain]).str.replace(",", ".", regex=False))
        endless = texts.str.fullmatch(r"(?i)[+-]?inf(?:inity)?").to_numpy(bool)
        found[endless] = _to_numbers(pd.Series(texts[endless]))
    for mark in (_other(decimal), " ", "\u00a0", "\u202f", "'", "\u2019"):
        grouped = rf"[+-]?[1-9]\d{{0,2}}(?:{re.escape(mark)}\d{{3}})+"
        rest = rf"(?:{re.escape(decimal)}\d*)?{EXPONENT}"
        many = texts.str.fullmatch(grouped + rest).to_numpy(bool) & np.isnan(found)
        if not many.any() or (mark in ".," and not _groups(texts, grouped, decimal)):
            continue
        written = pd.Series(texts[many]).str.replace(mark, "", regex=False)
        found[many] = _to_numbers(written.str.replace(decimal, ".", regex=False))
    return found


def _groups(texts: pd.Series, grouped: str, decimal: str) -> bool:
    """Whether a column shows which of point and comma groups thousands."""
    twice = texts.str.fullmatch(grouped.removesuffix("+") + "{2,}")
    both = texts.str.fullmatch(grouped + rf"{re.escape(decimal)}\d+")
    marked = texts.str.fullmatch(rf"[+-]?\d*{re.escape(decimal)}\d+")
    return bool(twice.any() or both.any() or marked.any())


def as_numbers(frame: pd.DataFrame, name: str, reading: Reading = PLAIN) -> np.ndarray:
    """A column as numbers; NaN where a cell is not one."""
    return reading.numbers(pd.Series(frame[name]))


def numbers_of(
    frame: pd.DataFrame,
    name: str,
    reading: Reading = PLAIN,
    called: str | None = None,
    *,
    needed: bool = False,
) -> np.ndarray:
    """A column as finite numbers, NaN where it is empty; an `InputError` names any other cell.

    `called` is what the table calls the column. Where it is `needed`, no cell may be missing.
    """
    called = called or name
    numbers = as_numbers(frame, name, reading)
    cells = pd.Series(frame[name])
    wrong = np.flatnonzero(np.isnan(numbers) & reading.filled(cells))
    if wrong.size:
        row = wrong[0]
        cell = str(cells.iloc[row]).strip()[:40]
        raise InputError(
            f"{place(frame, row)}, column {called!r}: {cell!r} is not a number. "
            f"{reading.remedy(cell, needed=needed)}"
        )
    endless = np.flatnonzero(np.abs(numbers) > LARGEST)
    if endless.size:
        raise InputError(
            f"{place(frame, endless[0])}, column {called!r}: {str(cells.iloc[endless[0]])[:40]} is "
            f"infinite, or beyond {LARGEST:g}. Correct it, leave the cell empty, or choose other "
            "units."
        )
    return numbers
