"""Tables in and out: one row per time and trajectory."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

from hybridsde._errors import InputError, InputNotice, notice, suggest
from hybridsde.data.dates import is_timestamp, times_of
from hybridsde.data.parsing import (
    FILE,
    LINE,
    SMALLEST,
    SOURCE,
    Reading,
    numbers_of,
    place,
    source_of,
)
from hybridsde.data.trajectories import Trajectories

ID, TIME = "\0id", "\0time"
"""Columns that no table can have."""


@dataclass(frozen=True)
class Columns:
    """What the columns of a table mean."""

    states: Sequence[str]
    time: str = "t"
    id: str | None = None
    """The column that names the trajectory of a row; None: one trajectory per file."""
    inputs: Sequence[str] = ()
    unit: str | None = None
    """What one unit of time is. Needed where times are timestamps; else a label."""
    quantity: str | None = None
    """In a long table: the column that names what was measured in a row."""
    value: str | None = None
    """In a long table: the column that holds its value."""
    epoch: str | None = None
    """The moment that timestamps count from; the first one of the table by default."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Columns that have another name in the table, by the name that stands above and in equations:
    {"T": "TI-101.PV"}. In a long table also quantities."""
    decimal: str = "."
    """The decimal mark of numbers: "." or ","."""
    missing: Sequence[str] = ()
    """What a cell says where a value is missing, beside nothing at all: "Bad Input"."""

    def __post_init__(self):
        names = self.wanted
        for position, name in enumerate(names):
            if name in names[:position]:
                raise InputError(
                    f"Column {name!r} is named twice among id, time, states and inputs. A column "
                    "has one meaning."
                )
        if not self.states:
            raise InputError("`states` is empty. Name at least one column that changes in time.")
        if (self.quantity is None) != (self.value is None):
            raise InputError("A long table needs both `quantity` and `value`.")
        if self.decimal not in (".", ","):
            raise InputError(f"`decimal` must be '.' or ',', but is {self.decimal!r}.")
        if isinstance(self.missing, str):
            raise InputError(f"`missing` must be a list of words: [{self.missing!r}].")
        sources = list(self.columns.values())
        for position, source in enumerate(sources):
            if source in sources[:position]:
                raise InputError(f"`columns` gives column {source!r} two names. Keep one.")

    @property
    def reading(self) -> Reading:
        """How cells become numbers."""
        return Reading(self.decimal, tuple(self.missing))

    @property
    def wanted(self) -> list[str]:
        """All names: of recordings, times, states and inputs."""
        return [*([self.id] if self.id else []), self.time, *self.states, *self.inputs]

    def source(self, name: str) -> str:
        """What the table calls the column of this name."""
        return self.columns.get(name, name)


def from_frame(frame: pd.DataFrame, columns: Columns, *, strict: bool = True) -> Trajectories:
    """Recordings from a data frame with one row per time and trajectory, in any order.

    `strict` refuses what cannot be learned from: trajectories of one row, and states that are
    constant or never observed.
    """
    named = columns.id is None or {columns.id, columns.source(columns.id)} & set(frame.columns)
    if not strict and not named:
        columns = replace(columns, id=None)  # one trajectory needs no name
    frame, clean, epoch = _cleaned(frame, columns, strict=strict)
    times = clean[TIME].to_numpy()
    if strict:
        _check_constant(frame, clean, columns)
        if 0 < np.ptp(times) < SMALLEST:
            raise InputError(
                f"{source_of(frame)}: the times in column {columns.time!r} span "
                f"{np.ptp(times):.1g} only. Choose another unit of time."
            )
    order = clean.sort_values([ID, TIME], kind="stable").index
    _check_pairs(frame, clean.loc[order], columns)
    _say_sorted(frame, clean)
    clean = clean.loc[order]
    groups = [group for _, group in clean.groupby(ID, sort=False)]
    if strict:
        _check_lengths(frame, groups)
    inputs = [_filled(frame, group, columns) for group in groups]
    found = Trajectories.from_arrays(
        [group[TIME].to_numpy() for group in groups],
        [np.nan_to_num(group[list(columns.states)].to_numpy()) for group in groups],
        states=tuple(columns.states),
        observed=[group[list(columns.states)].notna().to_numpy() for group in groups],
        inputs=inputs if columns.inputs else None,
        input_names=tuple(columns.inputs) if columns.inputs else None,
        ids=[str(group[ID].iloc[0]) for group in groups],
    )
    return replace(found, epoch=epoch)


def _cleaned(
    frame: pd.DataFrame, columns: Columns, *, strict: bool
) -> tuple[pd.DataFrame, pd.DataFrame, str | None]:
    """The rows of a table under the names of equations, the numbers in them, and the epoch."""
    frame = frame.reset_index(drop=True)
    if len(frame) == 0:
        raise InputError(f"{source_of(frame)} holds no rows. Give at least two times.")
    frame = _widened(_renamed(frame, columns, strict=strict), columns)
    _check_present(frame, columns, columns.wanted)
    times, epoch = times_of(frame, columns.time, columns.unit, columns.epoch, columns.reading)
    clean = pd.DataFrame({TIME: times})
    clean[ID] = _ids(frame, columns)
    for name in (*columns.states, *columns.inputs):
        clean[name] = numbers_of(frame, name, columns.reading, columns.source(name))
    return frame, clean, epoch


def lines_of(
    frame: pd.DataFrame, columns: Columns, state: str, rows: Sequence[tuple[str, float]]
) -> list[int]:
    """The lines of a table that hold a state in these recordings at these times."""
    if columns.quantity is not None and columns.value is not None:
        words = frame[columns.quantity].astype(str).str.strip()
        frame = frame.loc[words == columns.source(state)]
        columns = replace(columns, states=(columns.value,), quantity=None, value=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputNotice)
        frame, clean, _ = _cleaned(frame, replace(columns, inputs=()), strict=False)
    lines = frame[LINE] if LINE in frame.columns else pd.Series(np.arange(len(frame)))
    wanted = set(rows)
    near = np.flatnonzero(clean[TIME].isin([time for _, time in rows]))
    return sorted(
        int(lines.iloc[row])
        for row in near
        if (clean[ID].iloc[row], clean[TIME].iloc[row]) in wanted
    )


def _renamed(frame: pd.DataFrame, columns: Columns, *, strict: bool) -> pd.DataFrame:
    """Columns under the names that `columns` gives them.

    A column that is not renamed and has the name of one that is makes way. A table that is not
    learned from may hold the names of equations already.
    """
    wide = columns.quantity is None
    keys = [name for name in (columns.id, columns.time, columns.quantity, columns.value) if name]
    names = [name for name in (columns.wanted if wide else keys) if name in columns.columns]
    if not strict:
        names = [name for name in names if columns.source(name) in frame.columns]
    _check_present(frame, columns, [columns.source(name) for name in names])
    sources = {columns.source(name): name for name in names}
    kept = [one for one in frame.columns if one in sources or one not in sources.values()]
    return pd.DataFrame(frame[kept]).rename(columns=sources)


MOST_SHOWN = 20
"""Columns that a message lists."""


def _check_present(frame: pd.DataFrame, columns: Columns, names: Sequence[str]) -> None:
    shown = [str(c) for c in frame.columns if c not in (LINE, SOURCE, FILE)]
    meant = {source: name for name, source in columns.columns.items()}
    for name in names:
        if name not in frame.columns:
            which = f" (for {meant[name]!r} in `columns`)" if name in meant else ""
            more = f" and {len(shown) - MOST_SHOWN} more" if len(shown) > MOST_SHOWN else ""
            raise InputError(
                f"{source_of(frame)} has no column {name!r}{which}; its columns are "
                f"{', '.join(shown[:MOST_SHOWN])}{more}.{suggest(name, shown)}"
            )


def to_frame(data: Trajectories, *, id: str = "id", time: str = "t") -> pd.DataFrame:
    """One row per time and trajectory; the inverse of `from_frame`."""
    parts = []
    for row, name in enumerate(data.ids):
        length = int(data.lengths[row])
        seen = np.where(data.observed[row, :length], data.values[row, :length], np.nan)
        part = pd.DataFrame({id: name, time: data.times[row, :length]})
        part[list(data.states)] = seen
        if data.input_names:
            part[list(data.input_names)] = data.inputs[row, :length]
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def from_xarray(
    dataset: xr.Dataset,
    *,
    time: str = "time",
    id: str | None = None,
    states: Sequence[str] | None = None,
    inputs: Sequence[str] = (),
    unit: str | None = None,
) -> Trajectories:
    """Recordings from the variables of a dataset with a time axis and, perhaps, one of series."""
    names = states or [str(name) for name in dataset.data_vars if name not in inputs]
    axes = [axis for axis in (id, time) if axis]
    frame = dataset[[*names, *inputs]].to_dataframe(dim_order=axes).reset_index()
    frame = frame.dropna(how="all", subset=list(names))
    return from_frame(frame, Columns(tuple(names), time, id, tuple(inputs), unit))


def to_xarray(data: Trajectories) -> xr.Dataset:
    """Labelled arrays over series and the union of all times; NaN where nothing was recorded."""
    frame = to_frame(data, id="series", time="time")
    return frame.set_index(["series", "time"]).to_xarray()


def _widened(frame: pd.DataFrame, columns: Columns) -> pd.DataFrame:
    """A long table, with a row for each quantity, as one with a column for each."""
    if columns.quantity is None or columns.value is None:
        return frame
    keys = [*([columns.id] if columns.id else []), columns.time]
    _check_present(frame, columns, [columns.quantity, columns.value, *keys])
    meant = {source: name for name, source in columns.columns.items()}
    words = [str(name).strip() for name in frame[columns.quantity]]
    names = [meant.get(word, word) for word in words]
    unknown = [name for name in columns.states if name not in names]
    if unknown:
        there, source = ", ".join(sorted(set(words))[:8]), columns.source(unknown[0])
        raise InputError(
            f"{source_of(frame)}: column {columns.quantity!r} never names {source!r}; it names "
            f"{there}.{suggest(source, set(words))}"
        )
    told = frame.loc[[name in columns.states for name in names]]
    numbers_of(told, columns.value, columns.reading)  # names the line of a cell that is none
    moments = list(zip(*(frame[key].astype(str) for key in keys), strict=True))
    cells: dict[tuple[tuple[str, ...], str], object] = {}
    for row, (moment, name, cell) in enumerate(
        zip(moments, names, frame[columns.value], strict=True)
    ):
        if name in columns.states and (moment, name) in cells:
            raise InputError(f"{place(frame, row)}: {name!r} has two values at time {moment[-1]}.")
        cells[moment, name] = cell
    first = {moment: row for row, moment in reversed(list(enumerate(moments)))}
    rows = sorted(first.values())
    wide = frame.iloc[rows].drop(columns=[columns.quantity, columns.value])
    for name in columns.states:
        wide = wide.assign(**{name: [cells.get((moments[row], name)) for row in rows]})
    return wide.reset_index(drop=True)


def _ids(frame: pd.DataFrame, columns: Columns) -> pd.Series:
    if columns.id is None:
        sources = frame[SOURCE].unique() if SOURCE in frame.columns else []
        return pd.Series(Path(sources[0]).stem if len(sources) == 1 else "0", frame.index)
    missing = np.flatnonzero(frame[columns.id].isna())
    if missing.size:
        raise InputError(
            f"{place(frame, missing[0])}: column {columns.id!r} is empty. Name the trajectory of "
            "every row."
        )
    found = pd.Series([str(name) for name in frame[columns.id]], frame.index)
    unprintable = np.flatnonzero(~found.map(str.isprintable))
    if unprintable.size:
        raise InputError(
            f"{place(frame, unprintable[0])}, column {columns.id!r}: "
            f"{found.iloc[unprintable[0]][:40]!r} holds a character that cannot be printed."
        )
    return found


def _check_constant(frame: pd.DataFrame, clean: pd.DataFrame, columns: Columns) -> None:
    for name in columns.states:
        values = clean[name].to_numpy(float)
        values = values[~np.isnan(values)]
        if values.size == 0:
            raise InputError(
                f"{source_of(frame)}: state {name!r} has no values at all. Leave it out, or name "
                "it in `hidden_states` if it exists but is never measured."
            )
        if np.ptp(values) == 0:
            raise InputError(
                f"{source_of(frame)}: state {name!r} is constant ({values[0]:g}). "
                "There is nothing to learn; leave it out."
            )
        if np.ptp(values) < SMALLEST:
            raise InputError(
                f"{source_of(frame)}: state {name!r} changes by {np.ptp(values):.1g} only. Choose "
                "other units, so that it changes by something like one."
            )


def _check_pairs(frame: pd.DataFrame, clean: pd.DataFrame, columns: Columns) -> None:
    twice = np.flatnonzero(clean.duplicated([ID, TIME]))
    if twice.size:
        row = int(clean.index[twice[0]])
        one = clean.loc[row]
        whose = "" if columns.id is None else f" of {one[ID]!r}"
        apart = ", or name the column that tells trajectories apart as `id`"
        cell = frame[columns.time].iloc[row]
        if _is_set_back(cell):
            raise InputError(
                f"{place(frame, row)}: time {cell}{whose} is there twice. Clocks that are set back "
                "in autumn show an hour twice: write times with their zone, as 2026-10-25 "
                f"02:30+02:00, or in UTC. Else merge the rows{apart if columns.id is None else ''}."
            )
        raise InputError(
            f"{place(frame, row)}: time {str(cell)[:40]}{whose} is there twice. Merge the rows"
            f"{apart if columns.id is None else ''}. Where a column names what a row measures, "
            "say so: `quantity`, and `value` for the column that holds it."
        )


def _is_set_back(cell: object) -> bool:
    """Whether a time without a zone lies in a night in which clocks may be set back."""
    if not is_timestamp(str(cell)):
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pandas warns where it must guess a format
        moment = pd.to_datetime(str(cell), errors="coerce", dayfirst="." in str(cell))
    return bool(
        not pd.isna(moment)
        and moment.tzinfo is None
        and moment.month in (3, 4, 9, 10, 11)
        and moment.weekday() == 6
        and moment.hour < 4
    )


def _say_sorted(frame: pd.DataFrame, clean: pd.DataFrame) -> None:
    for name, group in clean.groupby(ID, sort=False):
        if np.any(np.diff(group[TIME].to_numpy(float)) < 0):
            notice(f"{source_of(frame)}: times of {name!r} are not in order; they were sorted.")
            return


def _check_lengths(frame: pd.DataFrame, groups: list[pd.DataFrame]) -> None:
    for group in groups:
        if len(group) == 1:
            raise InputError(
                f"{place(frame, int(group.index[0]))}: trajectory {group[ID].iloc[0]!r} has "
                "one row, so there is nothing to predict after its start. Remove it."
            )


def _filled(frame: pd.DataFrame, group: pd.DataFrame, columns: Columns) -> np.ndarray:
    """Inputs; a missing one keeps the value before it."""
    given = group[list(columns.inputs)]
    values = given.ffill()
    first = np.argwhere(values.isna().to_numpy())
    missing = int(given.isna().to_numpy().sum())
    if missing and not first.size:
        notice(
            f"{source_of(frame)}: {missing} missing inputs of {group[ID].iloc[0]!r} keep the value "
            "before them."
        )
    if first.size:
        row, column = first[0]
        raise InputError(
            f"{place(frame, int(group.index[row]))}: input {columns.inputs[column]!r} has no "
            f"value at the start of trajectory {group[ID].iloc[0]!r}. Fill it in."
        )
    return values.to_numpy(float)
