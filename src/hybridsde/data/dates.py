"""Timestamps: read as one format, in one way, or refused."""

import re
import warnings
from dataclasses import dataclass
from datetime import timedelta, timezone

import numpy as np
import pandas as pd

from hybridsde._errors import InputError, notice
from hybridsde.data.parsing import (
    PLAIN,
    UNITS,
    Reading,
    as_numbers,
    numbers_of,
    place,
    source_of,
)

COMPACT = r"(?:18|19|20|21)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])"
"""YYYYMMDD in four centuries."""
_ISO = re.compile(r"^(?:\d{4}-\d\d?-\d\d?(?:[T ].*)?|\d{4}-\d\d|\d{8}T\d{4,6}.*)$")
_YEAR_FIRST = re.compile(r"^(\d{4})([/.])(\d\d?)\2(\d\d?)(?=$|[T ])")
_NUMERIC = re.compile(r"^(\d{1,2})([/.-])(\d{1,2})\2(\d{4})(?:[T ,]+(\S.*))?$")
TIME_OF_DAY = re.compile(r"^\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?(?:\s*[ap]m)?$", re.IGNORECASE)
_SHORT_YEAR = re.compile(r"^\d{1,2}([/.-])\d{1,2}\1(?:\d\d)?(?=$|[T ,])")
_MONTH = r"(?i)\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)"
_CLOCK = r"[T ]\d\d(?::?\d\d){0,2}(?:\.\d+)?"
_OFFSET = re.compile(rf"{_CLOCK}\s*([+-])(\d\d):?(\d\d)?$")
_ZONE = re.compile(rf"{_CLOCK}\s*(?:Z|UTC|[+-]\d\d(?::?\d\d)?)$")


def are_compact_dates(cells: pd.Series, least: int = 2) -> bool:
    """Whether every cell is a date such as 20200131, and there are so many different ones."""
    texts = cells.astype(str).str.strip()
    if texts.nunique() < least or not texts.str.fullmatch(COMPACT).all():
        return False
    return bool(pd.to_datetime(texts, format="%Y%m%d", errors="coerce").notna().all())


def times_of(
    frame: pd.DataFrame,
    column: str,
    unit: str | None,
    epoch: str | None = None,
    reading: Reading = PLAIN,
) -> tuple[np.ndarray, str | None]:
    """Numbers as they are; timestamps in `unit` since `epoch`, or since the first of all.

    Also that moment, as text, in the time zone of the first row; None where times are numbers.
    """
    cells = pd.Series(frame[column])
    missing = np.flatnonzero(cells.isna() | (cells.astype(str).str.strip() == ""))
    if missing.size:
        raise InputError(
            f"{place(frame, missing[0])}: the time in column {column!r} is missing. Fill it "
            "in or drop the row."
        )
    stamped = pd.api.types.is_datetime64_any_dtype(cells)
    numeric = not stamped and bool(np.isfinite(as_numbers(frame, column, reading)).any())
    if numeric and not are_compact_dates(cells, 2 if epoch is None else 1):
        if epoch is not None:
            raise InputError(
                f"{place(frame, 0)}, column {column!r}: {str(cells.iloc[0])[:40]!r} is a number, "
                "but this model was fitted to timestamps. Write times as they were written there."
            )
        return numbers_of(frame, column, reading, needed=True), None
    stamps = timestamps(frame, column)
    if unit not in UNITS:
        given = "no unit is given" if unit is None else f"the unit is {unit!r}"
        raise InputError(
            f"{source_of(frame)}: the times in column {column!r} are timestamps, but {given}. "
            f"Say what one unit of time is in the equations: unit = one of {', '.join(UNITS)}."
        )
    first = pd.Timestamp(epoch) if epoch is not None else _as_written(cells, stamps)
    passed = pd.Series(stamps - first).dt.total_seconds()
    return passed.to_numpy() / UNITS[unit], first.isoformat()


def _as_written(cells: pd.Series, stamps: pd.Series) -> pd.Timestamp:
    """The first moment of all, in the time zone that its cell is written in; else in UTC."""
    row = int(stamps.argmin())
    first, written = stamps.iloc[row], str(cells.iloc[row]).strip()
    offset = _OFFSET.search(written)
    if offset is None:
        return first
    sign, hours, minutes = offset.groups()
    ahead = timedelta(hours=int(hours), minutes=int(minutes or 0))
    return first.tz_convert(timezone(ahead if sign == "+" else -ahead))


@dataclass(frozen=True)
class Calendar:
    """What times stand for that were read from timestamps."""

    unit: str
    epoch: str

    def moments(self, times: np.ndarray) -> np.ndarray:
        """Timestamps as text, to the millisecond; the inverse of `times_of`."""
        passed = pd.to_timedelta(np.round(1e3 * UNITS[self.unit] * times), unit="ms")
        return np.array([one.isoformat() for one in pd.Timestamp(self.epoch) + passed])


def timestamps(frame: pd.DataFrame, column: str) -> pd.Series:
    """The times of a column, in UTC where they have a zone; an `InputError` where one is doubtful.

    All cells have one format: ISO 8601 (2026-03-01 14:30), compact (20260301), day or month first
    (01.03.2026, if only one of the two readings is possible), or with the month in letters.
    """
    cells = pd.Series(frame[column])
    if pd.api.types.is_datetime64_any_dtype(cells):
        return pd.to_datetime(cells, utc=True)
    texts = cells.astype(str).str.strip()
    _check_zones(frame, column, texts)
    if are_compact_dates(cells, 1):
        notice(
            f"{source_of(frame)}: column {column!r} holds numbers such as {texts.iloc[0]}, which "
            "were read as dates."
        )
        return pd.to_datetime(texts, format="%Y%m%d", utc=True)
    if _YEAR_FIRST.match(texts.iloc[0]):
        texts = texts.str.replace(_YEAR_FIRST, r"\1-\3-\4", regex=True)
    if _ISO.fullmatch(texts.iloc[0]):
        found = pd.to_datetime(texts, format="ISO8601", errors="coerce", utc=True)
        return _all_read(frame, column, texts, found.where(texts.str.match(_ISO)))
    if _NUMERIC.fullmatch(texts.iloc[0]):
        return _day_or_month_first(frame, column, texts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pandas warns where it must guess a format
        found = pd.to_datetime(texts, errors="coerce", utc=True)
    lettered = texts.str.contains(_MONTH) & texts.str.contains(r"\b\d{4}\b")
    return _all_read(frame, column, texts, found.where(lettered))


def _all_read(frame: pd.DataFrame, column: str, texts: pd.Series, found: pd.Series) -> pd.Series:
    wrong = np.flatnonzero(found.isna())
    if wrong.size:
        row = wrong[0]
        cell = texts.iloc[row][:40]
        where = f"{place(frame, row)}, column {column!r}: {cell!r}"
        if TIME_OF_DAY.fullmatch(cell):
            raise InputError(
                f"{where} is a time of day without a date, so nobody can tell a day from the next. "
                "Write 2026-03-01 14:30, or the time since the beginning as a number."
            )
        if _SHORT_YEAR.match(cell):
            raise InputError(
                f"{where} has a year of two digits, or none. Write dates as 2026-03-01."
            )
        other = f", and the first row has {texts.iloc[0][:40]!r}" if row else ""
        raise InputError(
            f"{where} is neither a number nor a timestamp such as 2026-03-01 14:30{other}. Write "
            "all times alike."
        )
    return found


def is_timestamp(cell: str) -> bool:
    """Whether a cell looks like a moment, at a glance; `timestamps` reads it, or says why not."""
    shapes = (_ISO, _YEAR_FIRST, _NUMERIC, TIME_OF_DAY, _SHORT_YEAR)
    lettered = re.search(_MONTH, cell) and re.search(r"\b\d{4}\b", cell)
    return bool(lettered) or any(shape.match(cell) for shape in shapes)


def _day_or_month_first(frame: pd.DataFrame, column: str, texts: pd.Series) -> pd.Series:
    """01/02/2020: one of two readings, if the rest of the column rules out the other.

    With points the day is first.
    """
    parts = texts.str.extract(_NUMERIC)
    _all_read(frame, column, texts, parts[0].where(parts[1] == parts[1].iloc[0]))
    clock = parts[4].fillna("").str.strip()
    readings = {}
    for name, (day, month) in {"day": (0, 2), "month": (2, 0)}.items():
        iso = parts[3] + "-" + parts[month].str.zfill(2) + "-" + parts[day].str.zfill(2)
        iso = iso.where(clock == "", iso + " " + clock)
        readings[name] = pd.to_datetime(iso, format="mixed", errors="coerce", utc=True)
    possible = {name: one for name, one in readings.items() if one.notna().all()}
    if not possible:
        worst = min(readings.values(), key=lambda one: int(one.isna().sum()))
        return _all_read(frame, column, texts, worst)
    first = next(iter(possible.values()))
    if all(one.equals(first) for one in possible.values()):
        return first
    if parts[1].iloc[0] == ".":  # nobody writes the month first with points
        return possible["day"]
    if len(possible) > 1:
        row = int(np.flatnonzero(readings["day"] != readings["month"])[0])
        moments = (readings[name].iloc[row] for name in ("day", "month"))
        day, month = (f"{one.day} {one:%B %Y}" for one in moments)
        raise InputError(
            f"{place(frame, row)}, column {column!r}: {texts.iloc[row][:40]!r} may be {day} or "
            f"{month}. Write dates as 2026-03-01."
        )
    return first


def _check_zones(frame: pd.DataFrame, column: str, texts: pd.Series) -> None:
    zoned = texts.str.contains(_ZONE)
    if zoned.any() and not zoned.all():
        row = int(np.flatnonzero(zoned != zoned.iloc[0])[0])
        raise InputError(
            f"{place(frame, row)}, column {column!r}: some times have a time zone and some have "
            f"none ({texts.iloc[0][:40]!r}, {texts.iloc[row][:40]!r}). Write all alike."
        )
