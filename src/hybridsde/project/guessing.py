"""What an unknown table seems to hold: how it is written, its time, states, inputs, and doubts."""

import csv
import io
import itertools
import json
import keyword
import math
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from hybridsde._errors import InputError, notice
from hybridsde._files import read_text
from hybridsde.data import Columns, find_files, raw_table
from hybridsde.data.dates import TIME_OF_DAY, are_compact_dates, is_timestamp, timestamps
from hybridsde.data.files import without_comments
from hybridsde.data.parsing import LARGEST, UNITS, Reading, as_numbers, source_of
from hybridsde.physics.expression import CONSTANTS, FUNCTIONS

TIMES = (
    "t", "time", "day", "days", "date", "datetime", "timestamp", "hour", "hours", "minutes", "year",
    "seconds", "ds",
)  # fmt: skip
IDS = (
    "id", "run", "experiment", "trajectory", "series", "subject", "trial", "batch", "unit",
    "unique_id",
)  # fmt: skip
LONG_FRAME = ("unique_id", "ds", "y")
"""Columns of a table as forecasting libraries write it; others drive the system."""
INPUTS = ("u", "input", "control", "dose", "command", "setpoint", "inflow")

PARTS_OF_A_DATE = ("year", "month", "day", "date", "hour", "time", "minute")
DOSES = ("dose", "dosis", "amt", "amount", "bolus")
"""In names of columns that hold what was given."""

SEPARATORS = (",", ";", "\t", "|", " ")
LOOKED_AT = 60
"""Lines from which the separator is guessed, and cells from which a column of moments is."""
MOSTLY_ALIKE = 0.9
"""Of the lines have as many words as the first where spaces separate columns."""
STEADY = 0.4
"""A column that changes in fewer rows than this share is taken for an input."""
MANY_GAPS = 5
"""A unit of time holds so many rows at most: quarters of an hour are counted in hours."""
MOSTLY = 0.5
"""Of the cells of a column: fewer are not what was measured."""
RARELY = 0.34
"""Of the rows: amounts in fewer of them, and nothing between, may have been given at once."""
MOST_QUANTITIES = 12
"""A column with more different words does not name quantities."""
MOST_WORDS = 30
"""More different words in a column are no words for a missing value."""


ANGLES = frozenset(
    ("angle", "theta", "phi", "psi", "heading", "yaw", "pitch", "roll", "azimuth", "bearing")
)
"""Words in the names of angles."""
RADIANS, DEGREES = 4 * math.pi, 720.0
"""Two turns either way: what goes beyond in radians is no angle that comes back."""


@dataclass(frozen=True)
class Guess:
    """A table as it seems to be meant. Columns go by their names in the table."""

    separator: str
    decimal: str
    time: str
    id: str | None
    unit: str | None
    """For timestamps, one that suits the gaps between rows."""
    states: tuple[str, ...]
    inputs: tuple[str, ...]
    doses: tuple[str, ...]
    """Columns that may be inputs, or amounts that were given at once: nobody but the user knows."""
    quantity: str | None
    value: str | None
    missing: tuple[str, ...]
    left_out: dict[str, str]
    """Other columns, and why they are not used."""
    notes: tuple[str, ...]
    """What was guessed about how the table is written, a sentence each."""
    angles: tuple[str, ...] = ()
    """States and inputs that look like angles in radians, by name and range."""

    @cached_property
    def names(self) -> dict[str, str]:
        """A name for each state and input that can stand in an equation."""
        return equation_names((*self.states, *self.inputs, *self.doses))

    @property
    def columns(self) -> dict[str, str]:
        """Those of them that have another name in the table."""
        return {name: source for source, name in self.names.items() if name != source}


def guess_table(table: Path) -> Guess:
    """Guess from names and values; an `InputError` where there is no time, or nothing changes."""
    table = find_files(table)[0]
    stored = table.suffix in (".parquet", ".pq")
    separator = "," if stored else guess_separator(table)
    frame = raw_table(table, separator)
    return _Table(table, frame, separator, "." if stored else guess_decimal(frame, separator)).guess


def guess_separator(table: Path) -> str:
    """The one by which the first lines have the most cells, as many as their header."""
    text, skipped = without_comments(read_text(table, links=True))
    head = "\n".join(line for line in text.splitlines()[:LOOKED_AT] if line.strip())
    rows = {separator: _split(head, separator) for separator in SEPARATORS}

    def fit(separator: str) -> tuple[bool, bool, float, int]:
        header, *others = rows[separator] or [[]]
        alike = float(np.mean([len(row) == len(header) for row in others])) if others else 1.0
        named = len(header) > 1 and (separator != " " or alike > MOSTLY_ALIKE)
        return named, not any('"' in cell for cell in header), alike, len(header)

    found = max(SEPARATORS, key=fit)
    if not fit(found)[0]:  # names of columns may stand further below
        for separator in SEPARATORS[:-1]:
            sizes = [len(row) for row in rows[separator]]
            usual = max(set(sizes), key=sizes.count, default=1)
            if usual > 1 and sizes.count(usual) > MOSTLY * len(sizes):
                raise InputError(
                    f"{table}: line {skipped + 1}, {head.splitlines()[0].strip()[:40]!r}, does not "
                    "name the columns below. Remove the lines above the names of the "
                    "columns, or begin them with #."
                )
    return found


def _split(text: str, separator: str) -> list[list[str]]:
    try:
        return list(csv.reader(io.StringIO(text), delimiter=separator, skipinitialspace=True))
    except csv.Error:
        return []


def guess_decimal(frame: pd.DataFrame, separator: str) -> str:
    """A comma where more cells can only be read with one than only with a point."""
    cells = pd.Series(frame.to_numpy(dtype=object).ravel()).dropna().astype(str).str.strip()
    grouped = cells.str.fullmatch(r"[+-]?[1-9]\d{0,2}([.,]\d{3})+")
    commas = cells.str.fullmatch(r"[+-]?(\d+|[1-9]\d{0,2}(\.\d{3})+),\d+([eE][+-]?\d+)?")
    points = cells.str.fullmatch(r"[+-]?(\d+|[1-9]\d{0,2}(,\d{3})+)\.\d+([eE][+-]?\d+)?")
    clear = int((commas & ~grouped).sum()), int((points & ~grouped).sum())
    if clear == (0, 0) and separator == ";":  # such a table is written where commas are decimal
        return "," if commas.any() and not points.any() else "."
    return "," if clear[0] > clear[1] else "."


@dataclass(frozen=True)
class _Table:
    """A table under inspection."""

    path: Path
    frame: pd.DataFrame
    separator: str
    decimal: str

    @cached_property
    def reading(self) -> Reading:
        return Reading(self.decimal)

    @cached_property
    def numbers(self) -> dict[str, np.ndarray]:
        """Every column as numbers; NaN where a cell is none, or is beyond all bounds."""
        found = {name: as_numbers(self.frame, name, self.reading) for name in self.frame.columns}
        with np.errstate(invalid="ignore"):
            return {
                str(name): np.where(np.abs(one) <= LARGEST, one, np.nan)
                for name, one in found.items()
            }

    @cached_property
    def words(self) -> dict[str, list[str]]:
        """The different cells of every column that hold something else than numbers."""
        found = {}
        for name, numbers in self.numbers.items():
            told = self.reading.filled(pd.Series(self.frame[name])) & np.isnan(numbers)
            found[name] = [str(one).strip() for one in pd.unique(self.frame.loc[told, name])]
        return found

    @cached_property
    def numeric(self) -> list[str]:
        """Columns of numbers, with a few words among them at most."""
        found = []
        for name, numbers in self.numbers.items():
            known = int(np.isfinite(numbers).sum())
            filled = int(self.reading.filled(pd.Series(self.frame[name])).sum())
            few = len(self.words[name]) <= MOST_WORDS
            if name and known > filled - known and few:
                found.append(name)
        return found

    @cached_property
    def lower(self) -> dict[str, str]:
        """Names by their small letters; small ones first where they differ in nothing else."""
        return {name.lower(): name for name in sorted(map(str, self.frame.columns))}

    @cached_property
    def moments(self) -> list[str]:
        """Columns of timestamps."""
        found = []
        for name in map(str, self.frame.columns):
            cells = pd.Series(pd.Series(self.frame[name]).dropna())
            if pd.api.types.is_datetime64_any_dtype(cells) or are_compact_dates(cells):
                found.append(name)
                continue
            shown = cells.astype(str).str.strip()[:LOOKED_AT]
            if len(shown) and np.mean([is_timestamp(one) for one in shown]) > 0.8:
                found.append(name)
        return found

    @cached_property
    def blocks(self) -> np.ndarray:
        """Whether a row follows one of the same recording, as far as names of columns tell."""
        every = np.ones(max(len(self.frame) - 1, 0), bool)
        if not self._named_ids:
            return every
        labels = self.frame[self._named_ids[0]].astype(str).to_numpy()
        same = labels[1:] == labels[:-1]
        return same if same.mean() > MOSTLY else every

    @cached_property
    def _named_ids(self) -> list[str]:
        """Columns that name recordings by their name; one that differs in every row does not."""
        named = [self.lower[one] for one in IDS if one in self.lower]
        return [one for one in named if len(self.frame[one].unique()) < len(self.frame)]

    def _repeats(self, name: str) -> bool:
        """Whether a recording has one time twice, if this column is the time."""
        return bool(self.frame.duplicated([*self._named_ids[:1], name]).any())

    def rises(self, name: str) -> bool:
        """Whether a column of numbers or moments hardly ever falls in a recording."""
        if name in self.moments:
            stamps = _stamps(self.frame, name)
            if stamps is None:
                return False
            steps = stamps.diff().dt.total_seconds().to_numpy()[1:]
        else:
            steps = np.diff(self.numbers[name])
        steps = steps[self.blocks & np.isfinite(steps)]
        known = len(steps) > 0.8 * self.blocks.sum()
        return bool(known and len(steps) and (steps >= 0).mean() > 0.8 and (steps > 0).any())

    @cached_property
    def time(self) -> str:
        """By name and values; a capital T may be a temperature, so it comes last."""
        clocks = [name for name in map(str, self.frame.columns) if self._may_be_time(name)]
        named = [name for name in clocks if name.lower() in TIMES and name != "T"]
        named.sort(key=lambda name: (not self.rises(name), TIMES.index(name.lower())))
        if named and self.rises(named[0]) and not self._repeats(named[0]):
            return named[0]
        rising = [name for name in clocks if name != "T" and self.rises(name)]
        rising.sort(key=lambda name: (name not in self.moments, counts(self.numbers[name])))
        self._check_parts(clocks)
        if named:
            # The times of a long table rise and repeat; a value that rises is not the time.
            others = self.moments if self.rises(named[0]) else rising
            single = (one for one in rising if one in others and not self._repeats(one))
            return next((one for one in single if not counts(self.numbers[one])), named[0])
        if "T" in clocks and self.rises("T"):
            steps = np.diff(self.numbers["T"])[self.blocks]
            equal = bool(np.allclose(steps, np.median(steps), rtol=1e-6))
            if not rising or (equal and all(counts(self.numbers[one]) for one in rising)):
                return "T"
        increasing = [
            name for name in rising if name in self.moments or increases(self.numbers[name])
        ]
        if increasing or self.moments:
            return [*increasing, *self.moments][0]
        raise InputError(
            f"{self.path}: no column looks like a time, which rises from row to row. Name the one "
            "that is t or time."
        )

    def _check_parts(self, clocks: Sequence[str]) -> None:
        """An `InputError` where only several columns together tell a moment from the next."""
        parts = [self.lower[one] for one in PARTS_OF_A_DATE if self.lower.get(one) in clocks]
        hours = [one for one in parts if self.frame[one].astype(str).str.match(TIME_OF_DAY).all()]
        if len(parts) > 1 and (hours or all(self._repeats(one) for one in parts)):
            raise InputError(
                f"{self.path}: the time seems to stand in several columns, "
                f"{' and '.join(map(repr, parts))}. Write it in one, as 2026-03-01 14:30."
            )

    def _may_be_time(self, name: str) -> bool:
        known = np.isfinite(self.numbers[name]).mean() > 0.8
        return bool(name and (known or name in self.moments))

    @cached_property
    def identity(self) -> str | None:
        named = [one for one in self._named_ids if one != self.time]
        return named[0] if named else self._block_names()

    def _block_names(self) -> str | None:
        """A column of words that stays the same while times rise: it tells trajectories apart.

        Only where several columns of numbers stand beside it; with one, it may name quantities.
        """
        frame, others = self.frame, [name for name in self.numeric if name != self.time]
        if not frame.duplicated([self.time]).any() or len(others) < 2:
            return None
        for name in map(str, frame.columns):
            if name == self.time or name in self.numeric:
                continue
            labels = np.array([str(one) for one in frame[name]])
            stretches = 1 + int((labels[1:] != labels[:-1]).sum())
            once = stretches == len(set(labels)) < len(labels) / 2
            if once and not frame.duplicated([name, self.time]).any():
                return name
        return None

    @cached_property
    def long(self) -> tuple[str, str, list[str]] | None:
        """The columns of a long table: which names the quantity, which holds it, and quantities.

        A column of a few words where times repeat, beside a single one of numbers that change.
        """
        frame, keys = self.frame, [name for name in (self.identity, self.time) if name]
        if not frame.duplicated(keys).any():
            return None
        for name in map(str, frame.columns):
            words = [str(one) for one in frame[name].dropna().unique()[: MOST_QUANTITIES + 1]]
            told = name not in (*keys, *self.numeric, *self.moments)
            if told and 1 < len(words) <= MOST_QUANTITIES:
                value = self._value([one for one in self.numeric if one not in keys])
                if value is not None and not frame.duplicated([*keys, name]).any():
                    return name, value, words
        return None

    def _value(self, numeric: list[str]) -> str | None:
        """The column that holds the values of a long table; None where several may.

        It changes in a recording, and most of its cells are filled: a dose has one, a weight is the
        same.
        """
        labels = self.frame[self.identity] if self.identity else pd.Series(0, self.frame.index)
        changing = []
        for one in (name for name in numeric if name.lower() not in IDS):
            filled = self.frame[one].notna()
            cells = pd.DataFrame({"label": labels[filled], "cell": self.frame.loc[filled, one]})
            constant = len(cells.drop_duplicates()) == cells["label"].nunique()
            if not constant and int(np.sum(filled)) > MOSTLY * len(self.frame):
                changing.append(one)
        return changing[0] if len(changing) == 1 else None

    @cached_property
    def _labels(self) -> list[str]:
        """The recording of every row."""
        return list(map(str, self.frame[self.identity]))

    def useless(self, name: str) -> str | None:
        """Why a column is neither state nor input; None where it may be."""
        numbers, words = self.numbers[name], self.words[name]
        if not name or not self.reading.filled(pd.Series(self.frame[name])).any():
            return "empty"
        if name in self.moments:
            return "moments, and another column is the time"
        if name not in self.numeric:
            few = len(words) == 2 and not np.isfinite(numbers).any()
            remedy = "; write 0 and 1 to use it as an input" if few else ""
            return f"words such as {', '.join(map(quoted, words[:2]))}{remedy}"
        if self.identity and list(map(str, self.frame[name])) == self._labels:
            return f"the same as {self.identity}"
        if counts(numbers):
            return "numbers the rows"
        values = np.unique(numbers[np.isfinite(numbers)])
        if len(values) < 2 and not self._is_dose(name):
            return f"always {values[0]:g}"
        return None

    def _is_dose(self, name: str) -> bool:
        return are_doses(self.frame, name, self.reading, self.identity, self._measured(name))

    def _measured(self, name: str) -> list[str]:
        """Columns that something was measured in, as far as that can be said of one beside it."""
        return [one for one in self.numeric if one not in (name, self.time, self.identity)]

    @cached_property
    def guess(self) -> Guess:
        """Everything together."""
        identity, long = self.identity, self.long
        keys = {self.time, identity, *(long[:2] if long else ())}
        rest = [name for name in map(str, self.frame.columns) if name not in keys]
        left_out = {name: why for name in rest if (why := self.useless(name)) is not None}
        usable = [name for name in rest if name not in left_out]
        doses = [name for name in usable if self._is_dose(name)]
        changing = [name for name in usable if name not in doses]
        named = [name for name in changing if name.lower() in INPUTS and "v" not in self.lower]
        inputs = [name for name in changing if name in named or jumps(self.numbers[name])]
        states = [name for name in changing if name not in inputs]
        if not states:
            states, inputs, doses = (inputs, [], doses) if inputs else (doses, [], [])
        if all(name in self.lower for name in LONG_FRAME):
            states = [self.lower["y"]]
            inputs = [name for name in usable if name not in states]
            doses = []
        if long is not None:
            states = long[2]
            inputs = [name for name in changing if jumps(self.numbers[name]) or name in named]
        self._check(states, left_out)
        told = [long[1]] if long else states
        words = [one for name in (*told, *inputs, *doses) for one in self.words[name]]
        return Guess(
            self.separator,
            self.decimal,
            self.time,
            identity,
            usual_unit(self.frame, self.time) if self.time in self.moments else None,
            tuple(states),
            tuple(inputs),
            tuple(doses),
            long[0] if long else None,
            long[1] if long else None,
            tuple(dict.fromkeys(words)),
            {name: why for name, why in left_out.items() if name and "Unnamed:" not in name},
            (*self._notes(words, left_out), *self._angle_notes((*states, *inputs))),
            tuple(name for name in (*states, *inputs) if self._is_angle(name, RADIANS)),
        )

    def _is_angle(self, name: str, within: float) -> bool:
        """Whether a column is called like an angle and stays in so many radians or degrees."""
        called = any(word in ANGLES for word in re.findall(r"[a-z]+", name.lower()))
        numbers = self.numbers.get(name)  # of a long table a state is no column
        if not called or numbers is None:
            return False
        return bool(0 < np.nanmax(np.abs(numbers), initial=0.0) <= within)

    def _angle_notes(self, names: Sequence[str]) -> list[str]:
        """What looks like an angle, in radians or in degrees."""
        found = []
        for name in names:
            if self._is_angle(name, RADIANS):
                found.append(f"Guessed: {name} is an angle in radians, so it has sine and cosine.")
            elif self._is_angle(name, DEGREES):
                found.append(
                    f"{name} may be an angle in degrees: sines need radians. Multiply it by pi/180 "
                    "and name it in `angles`."
                )
        return found

    def _check(self, states: Sequence[str], left_out: Mapping[str, str]) -> None:
        other = Reading("." if self.decimal == "," else ",")
        for name in left_out:
            cells = pd.Series(self.frame[name])
            wrong = name not in self.moments and name not in self.numeric and self.words[name]
            if wrong and np.isfinite(other.numbers(cells)).mean() > MOSTLY:
                marks = ("comma", "point") if other.decimal == "," else ("point", "comma")
                raise InputError(
                    f"{self.path}: numbers of column {name!r} have a {marks[0]}, as in "
                    f"{quoted(self.words[name][0])}, those of other columns a decimal {marks[1]}. "
                    "Write all alike, and without separators of thousands."
                )
        if not states:
            named = [
                f"{name!r} is {why}" for name, why in left_out.items() if "Unnamed" not in name
            ]
            because = f": {'; '.join(named[:4])}" if named else ""
            raise InputError(
                f"{self.path}: no column holds numbers that change in time{self._only()}{because}. "
                "A state needs a column of its own."
            )

    def _only(self) -> str:
        """What the table holds instead."""
        keys = [name for name in (self.time, self.identity) if name]
        return f" beside {' and '.join(map(repr, keys))}" if keys else ""

    def _notes(self, words: Sequence[str], left_out: Mapping[str, str]) -> tuple[str, ...]:
        shown = (one for one in left_out.items() if one[1] != "empty" and "Unnamed" not in one[0])
        told = [f"{name} ({why})" for name, why in shown]
        found = [f"Not used: {', '.join(told)}."] if told else []
        if self.time.lower() not in TIMES and self.time not in self.moments:
            found.append(f"Guessed: {self.time} is the time, because it rises from row to row.")
        if self.separator != "," or self.decimal != ".":
            names = {"\t": "tabs", " ": "spaces", ";": "semicolons", ",": "commas", "|": "bars"}
            mark = "comma" if self.decimal == "," else "point"
            found.append(
                f"Guessed: columns are separated by {names[self.separator]}, and numbers have a "
                f"decimal {mark}."
            )
        if words:
            found.append(say_missing(words))
        limits = [one for one in words if one[:1] in "<>"]
        if limits:
            found.append(
                f"{quoted(limits[0])} says more than nothing: write the limit itself, and name it "
                "in `saturates`, so that it is read as there or beyond."
            )
        return tuple(found)


def say_missing(words: Sequence[str]) -> str:
    """Which cells are read as missing."""
    shown = " or ".join(map(quoted, dict.fromkeys(words)))
    return f"Cells that say {shown} are read as missing: `missing` lists them."


def are_doses(
    frame: pd.DataFrame,
    name: str,
    reading: Reading,
    identity: str | None,
    measured: Sequence[str],
) -> bool:
    """Whether a column may hold amounts that were given at once, as doses are.

    Nothing or zero in most rows and something positive in a few that do not follow each other; or
    something positive in rows where nothing was measured, and nothing where something was.
    """
    numbers = reading.numbers(pd.Series(frame[name]))
    known, given = np.isfinite(numbers), np.isfinite(numbers) & (numbers > 0)
    if not given.any() or given.all() or (numbers[known] < 0).any():
        return False
    labels = np.zeros(len(frame)) if identity is None else frame[identity].astype(str).to_numpy()
    together = given[1:] & given[:-1] & (labels[1:] == labels[:-1])
    called = any(word in name.lower() for word in DOSES)
    # A column that is empty elsewhere may be measured rarely; its values then hardly repeat.
    repeated = len(np.unique(numbers[given])) <= max(1, MOSTLY * given.sum())
    zeros = (known & ~given).sum() > MOSTLY * (~given).sum()
    if given.mean() < RARELY and together.sum() <= 0.2 * given.sum():
        return bool(called or zeros or repeated)
    others = [np.isfinite(as_numbers(frame, one, reading)) for one in measured if one in frame]
    return called and any(seen.any() and not (seen & given).any() for seen in others)


def say_doses(frame: pd.DataFrame, columns: Columns, inputs: Sequence[str]) -> None:
    """A notice about inputs that are held and look like amounts that were given at once."""
    identity = None if columns.id is None else columns.source(columns.id)
    measured = [columns.value] if columns.value else [columns.source(one) for one in columns.states]
    for name in inputs:
        source = columns.source(name)
        if source in frame and are_doses(
            frame,
            source,
            columns.reading,
            identity if identity in frame else None,
            [one for one in measured if one],
        ):
            empty = not columns.reading.filled(pd.Series(frame[source])).all()
            rest = ", and an empty cell keeps the amount before it" if empty else ""
            notice(
                f"{source_of(frame)}: {looks_like_doses(source)} The input {name!r} is held from "
                f"each row to the next{rest}. {CHOICES}"
            )


def looks_like_doses(name: str) -> str:
    """What such a column looks like."""
    return f"column {name!r} is positive in some rows and zero or empty in others, as doses are."


CHOICES = (
    "For an amount given at the first row of each recording, take it out of `inputs` and name it "
    "in [start]; for a rate, write 0 in the row where it ends."
)
"""What to do about it."""


def equation_names(sources: Sequence[str], others: Iterable[str] = ()) -> dict[str, str]:
    """A different name for each column that can stand in an equation, beside `others`."""
    taken = {*FUNCTIONS, *CONSTANTS, "t", "dt", *others}
    found: dict[str, str] = {}
    plain = [one for one in sources if is_name(one) and one not in taken]
    for source in [*plain, *(one for one in sources if one not in plain)]:
        whole = source if source in plain else _plain_name(source)
        name = whole if whole not in taken else f"{whole}_"
        number = itertools.count(2)
        while name in found.values() or name in taken or keyword.iskeyword(name):
            name = f"{whole}_{next(number)}"
        found[source] = name
    return {source: found[source] for source in sources}


def is_name(text: str) -> bool:
    """Whether a word can stand in an equation."""
    return text.isidentifier() and not keyword.iskeyword(text)


def _plain_name(source: str) -> str:
    """Letters and digits of a name, without a unit in brackets at its end."""
    without = re.sub(r"\s*[\[(][^\])]*[\])]\s*$", "", source)
    words = re.findall(r"\w+", without) or re.findall(r"\w+", source)
    name = "_".join(words).strip("_") or "x"
    return name if name.isidentifier() else f"x_{name}"


def quoted(text: str) -> str:
    """As TOML and JSON write it."""
    return json.dumps(text, ensure_ascii=False)


def counts(numbers: np.ndarray) -> bool:
    """Whether a column only numbers the rows."""
    return bool(np.isfinite(numbers).all() and len(numbers) > 2 and (np.diff(numbers) == 1).all())


def jumps(numbers: np.ndarray) -> bool:
    """Whether a column stays where it is for most rows and then jumps, or is only on and off."""
    told = numbers[np.isfinite(numbers)]
    moves = np.diff(told) != 0
    return bool(len(np.unique(told)) == 2 or (len(told) > 10 and 0 < moves.mean() < STEADY))


def increases(numbers: np.ndarray) -> bool:
    """Whether a column mostly rises; a few cells may be spoiled."""
    told = numbers[np.isfinite(numbers)]
    return bool(len(told) > 0.9 * len(numbers) and (np.diff(told) > 0).mean() > 0.8)


def _stamps(frame: pd.DataFrame, name: str) -> pd.Series | None:
    """The moments of a column, where it has some; None where they cannot be read."""
    frame = frame.reset_index(drop=True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return timestamps(frame.loc[frame[name].notna()], name).reindex(frame.index)
    except InputError:
        return None


def usual_unit(frame: pd.DataFrame, time: str) -> str:
    """The longest unit of time that is not much longer than what lies between two rows."""
    stamps = _stamps(frame, time)
    if stamps is None:
        return "h"
    gaps = stamps.dropna().drop_duplicates().sort_values().diff().dt.total_seconds()
    usual = float(gaps.median()) if gaps.notna().any() else UNITS["h"]
    fitting = [name for name, seconds in UNITS.items() if seconds <= MANY_GAPS * usual]
    return fitting[-1] if fitting else "s"


def are_words(frame: pd.DataFrame, name: str, columns: Columns) -> np.ndarray:
    """Which cells of a column hold something that is no number."""
    cells = pd.Series(frame[name])
    return np.isnan(columns.reading.numbers(cells)) & columns.reading.filled(cells)
