"""Tables in and out: one row per time and trajectory."""

import glob
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

from hybridsde._errors import InputError, InputNotice, suggest
from hybridsde.data.trajectories import Trajectories

UNITS = {
    "s": 1.0,
    "min": 60.0,
    "h": 3600.0,
    "day": 86400.0,
    "week": 604800.0,
    "year": 31557600.0,
}
"""Units that timestamps can be counted in, in seconds; a year is 365.25 days."""
LINE = "line of the file"
"""Column that remembers where a row was read, for messages."""
SOURCE = "file"


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

    def __post_init__(self):
        names = [*([self.id] if self.id else []), self.time, *self.states, *self.inputs]
        for position, name in enumerate(names):
            if name in names[:position]:
                raise InputError(
                    f"Column {name!r} is named twice among id, time, states and inputs. A column "
                    "has one meaning."
                )
        if not self.states:
            raise InputError("`states` is empty. Name at least one column that changes in time.")


def read_table(
    files: str | Path | Sequence[str | Path],
    columns: Columns,
    *,
    separator: str = ",",
    strict: bool = True,
) -> Trajectories:
    """Recordings from CSV or Parquet files; a name may hold the wildcards * and ?."""
    frames = [_read(path, separator) for path in find_files(files)]
    many = len(frames) > 1
    if many and columns.id is None:
        names = [f"{frame[SOURCE].iloc[0]}" for frame in frames]
        frames = [f.assign(**{"file name": n}) for f, n in zip(frames, names, strict=True)]
        columns = Columns(columns.states, columns.time, "file name", columns.inputs, columns.unit)
    return from_frame(pd.concat(frames, ignore_index=True), columns, strict=strict)


def read_csv(
    files: str | Path | Sequence[str | Path],
    *,
    states: Sequence[str],
    time: str = "t",
    id: str | None = None,
    inputs: Sequence[str] = (),
    unit: str | None = None,
    separator: str = ",",
) -> Trajectories:
    """Recordings from CSV files, one row per time and trajectory, in any order.

    - `id`: the column that names the trajectory; without it a file is one trajectory.
    - `time`: numbers, or timestamps together with `unit` (s, min, h, day, week, year).
    - `states`, `inputs`: columns of numbers. An empty cell of a state is a missing value.
    """
    columns = Columns(tuple(states), time, id, tuple(inputs), unit)
    return read_table(files, columns, separator=separator)


def find_files(files: str | Path | Sequence[str | Path]) -> list[Path]:
    """The files that names with wildcards stand for, sorted."""
    patterns = [files] if isinstance(files, str | Path) else list(files)
    found: list[Path] = []
    for pattern in map(str, patterns):
        wild = any(character in pattern for character in "*?[")
        paths = sorted(map(Path, glob.glob(pattern))) if wild else [Path(pattern)]
        missing = not paths or not all(path.exists() for path in paths)
        if missing:
            folder = Path(pattern).parent
            names = [p.name for p in folder.iterdir()] if folder.is_dir() else []
            raise InputError(
                f"There is no file {pattern}.{suggest(Path(pattern).name, names)} Paths are taken "
                "from the folder of the settings file, or else from where you are."
            )
        found += paths
    return found


def from_frame(frame: pd.DataFrame, columns: Columns, *, strict: bool = True) -> Trajectories:
    """Recordings from a data frame with one row per time and trajectory, in any order.

    `strict` refuses what cannot be learned from: states that are constant or never observed.
    """
    frame = frame.reset_index(drop=True)
    if len(frame) == 0:
        raise InputError(f"{_name(frame)} holds no rows. Give at least two times.")
    for name in _wanted(columns):
        if name not in frame.columns:
            shown = [c for c in frame.columns if c not in (LINE, SOURCE)]
            raise InputError(
                f"{_name(frame)} has no column {name!r}; its columns are "
                f"{', '.join(map(str, shown))}.{suggest(name, map(str, shown))}"
            )
    clean = pd.DataFrame({"time": _times(frame, columns)})
    clean["id"] = _ids(frame, columns)
    for name in (*columns.states, *columns.inputs):
        clean[name] = _numbers(frame, name)
    if strict:
        _check_constant(frame, clean, columns)
    order = clean.sort_values(["id", "time"], kind="stable").index
    _check_pairs(frame, clean.loc[order], columns)
    _say_sorted(frame, clean)
    clean = clean.loc[order]
    groups = [group for _, group in clean.groupby("id", sort=False)]
    _check_lengths(frame, groups)
    inputs = [_filled(frame, group, columns) for group in groups]
    return Trajectories.from_arrays(
        [group["time"].to_numpy() for group in groups],
        [np.nan_to_num(group[list(columns.states)].to_numpy()) for group in groups],
        states=tuple(columns.states),
        observed=[group[list(columns.states)].notna().to_numpy() for group in groups],
        inputs=inputs if columns.inputs else None,
        input_names=tuple(columns.inputs) if columns.inputs else None,
        ids=[str(group["id"].iloc[0]) for group in groups],
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
) -> Trajectories:
    """Recordings from the variables of a dataset with a time axis and, perhaps, one of series."""
    names = states or [str(name) for name in dataset.data_vars if name not in inputs]
    axes = [axis for axis in (id, time) if axis]
    frame = dataset[[*names, *inputs]].to_dataframe(dim_order=axes).reset_index()
    frame = frame.dropna(how="all", subset=list(names))
    return from_frame(frame, Columns(tuple(names), time, id, tuple(inputs)))


def to_xarray(data: Trajectories) -> xr.Dataset:
    """Labelled arrays over series and the union of all times; NaN where nothing was recorded."""
    frame = to_frame(data, id="series", time="time")
    return frame.set_index(["series", "time"]).to_xarray()


def _wanted(columns: Columns) -> list[str]:
    return [*([columns.id] if columns.id else []), columns.time, *columns.states, *columns.inputs]


def raw_table(path: Path, separator: str = ",") -> pd.DataFrame:
    """The cells of a file as they stand, for a first look."""
    return _read(find_files(path)[0], separator).drop(columns=[LINE, SOURCE])


def _read(path: Path, separator: str) -> pd.DataFrame:
    if path.suffix in (".parquet", ".pq"):
        return _read_parquet(path)
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not text ({error.reason}). Save it as CSV in UTF-8.") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from None
    comments = next((n for n, line in enumerate(lines) if not line.startswith("#")), len(lines))
    if not any(line.strip() for line in lines[comments:]):
        raise InputError(f"{path} is empty. It needs a line of column names and a row per time.")
    _check_separator(path, lines[comments], separator)
    try:
        frame = pd.read_csv(
            path,
            sep=separator,
            skiprows=comments,
            dtype=str,
            skipinitialspace=True,
            skip_blank_lines=False,
            encoding="utf-8-sig",
        )
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise InputError(f"{path} is not a table: {str(error).strip()}") from None
    frame.columns = [str(name).strip() for name in frame.columns]
    frame[LINE] = np.arange(len(frame)) + comments + 2
    frame[SOURCE] = str(path)
    return frame.dropna(how="all", subset=[c for c in frame.columns if c not in (LINE, SOURCE)])


def _read_parquet(path: Path) -> pd.DataFrame:
    try:
        frame = pd.read_parquet(path)
    except ImportError:
        raise InputError(
            f"{path}: reading Parquet needs pyarrow. Install it with: pip install "
            "'hybridsde[parquet]'"
        ) from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path} is not a Parquet file: {str(error).splitlines()[0]}") from None
    return frame.assign(**{LINE: np.arange(len(frame)) + 1, SOURCE: str(path)})


def _check_separator(path: Path, header: str, separator: str) -> None:
    others = [s for s in (",", ";", "\t", "|") if s != separator and header.count(s) > 0]
    if separator not in header and others:
        raise InputError(
            f"{path} has a single column, {header.strip()!r}. Its separator seems to be "
            f"{others[0]!r}: say separator = {others[0]!r}."
        )


def _name(frame: pd.DataFrame) -> str:
    """The file a frame came from."""
    if SOURCE in frame.columns and len(frame):
        files = frame[SOURCE].unique()
        return files[0] if len(files) == 1 else f"{files[0]} and {len(files) - 1} more"
    return "The table"


def _place(frame: pd.DataFrame, row: int | np.integer) -> str:
    """Where a row stands."""
    if LINE in frame.columns:
        return f"{frame[SOURCE].iloc[row]}, line {frame[LINE].iloc[row]}"
    return f"row {row}"


def as_numbers(frame: pd.DataFrame, name: str) -> np.ndarray:
    """A column as numbers; NaN where a cell is not one."""
    return np.asarray(pd.to_numeric(frame[name], errors="coerce"), float)


def _ids(frame: pd.DataFrame, columns: Columns) -> pd.Series:
    if columns.id is None:
        return pd.Series("0", frame.index)
    missing = np.flatnonzero(frame[columns.id].isna())
    if missing.size:
        raise InputError(
            f"{_place(frame, missing[0])}: column {columns.id!r} is empty. Name the trajectory of "
            "every row."
        )
    return pd.Series([str(name) for name in frame[columns.id]], frame.index)


def _numbers(frame: pd.DataFrame, name: str) -> np.ndarray:
    numbers = as_numbers(frame, name)
    cells = pd.Series(frame[name])
    filled = cells.notna() & (cells.astype(str).str.strip() != "")
    wrong = np.flatnonzero(np.isnan(numbers) & filled.to_numpy())
    if wrong.size:
        row = wrong[0]
        raise InputError(
            f"{_place(frame, row)}, column {name!r}: {str(cells.iloc[row])[:40]!r} is not a "
            "number. Correct it, or leave the cell empty where a value is missing."
        )
    endless = np.flatnonzero(np.isinf(numbers))
    if endless.size:
        raise InputError(
            f"{_place(frame, endless[0])}, column {name!r}: the value is infinite. Correct it, or "
            "leave the cell empty."
        )
    return numbers


def _times(frame: pd.DataFrame, columns: Columns) -> np.ndarray:
    """Numbers as they are; timestamps in `unit` since the first of all."""
    column = pd.Series(frame[columns.time])
    missing = np.flatnonzero(column.isna())
    if missing.size:
        raise InputError(
            f"{_place(frame, missing[0])}: the time in column {columns.time!r} is missing. Fill it "
            "in or drop the row."
        )
    stamped = pd.api.types.is_datetime64_any_dtype(column)
    if not stamped and np.isfinite(as_numbers(frame, columns.time)).any():
        return _numbers(frame, columns.time)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pandas warns where it must guess a format
        stamps = column if stamped else pd.to_datetime(column, errors="coerce", utc=True)
    wrong = np.flatnonzero(stamps.isna())
    if wrong.size:
        row = wrong[0]
        raise InputError(
            f"{_place(frame, row)}, column {columns.time!r}: {str(column.iloc[row])[:40]!r} is "
            "neither a number nor a timestamp such as 2026-03-01 14:30."
        )
    if columns.unit not in UNITS:
        given = "no unit is given" if columns.unit is None else f"the unit is {columns.unit!r}"
        raise InputError(
            f"{_name(frame)}: the times in column {columns.time!r} are timestamps, but {given}. "
            f"Say what one unit of time is in the equations: unit = one of {', '.join(UNITS)}."
        )
    passed = pd.Series(stamps - stamps.min()).dt.total_seconds()
    return passed.to_numpy() / UNITS[columns.unit]


def _check_constant(frame: pd.DataFrame, clean: pd.DataFrame, columns: Columns) -> None:
    for name in columns.states:
        values = clean[name].to_numpy(float)
        values = values[~np.isnan(values)]
        if values.size == 0:
            raise InputError(
                f"{_name(frame)}: state {name!r} has no values at all. Leave it out, or name it in "
                "`hidden_states` if it exists but is never measured."
            )
        if np.ptp(values) == 0:
            raise InputError(
                f"{_name(frame)}: state {name!r} is constant ({values[0]:g}). "
                "There is nothing to learn; leave it out."
            )


def _check_pairs(frame: pd.DataFrame, clean: pd.DataFrame, columns: Columns) -> None:
    twice = np.flatnonzero(clean.duplicated(["id", "time"]))
    if twice.size:
        row = int(clean.index[twice[0]])
        one = clean.loc[row]
        whose = "" if columns.id is None else f" of {one['id']!r}"
        raise InputError(
            f"{_place(frame, row)}: time {one['time']:g}{whose} is there twice. Merge the rows, "
            f"or name the column that tells trajectories apart as `id`."
        )


def _say_sorted(frame: pd.DataFrame, clean: pd.DataFrame) -> None:
    for name, group in clean.groupby("id", sort=False):
        if np.any(np.diff(group["time"].to_numpy(float)) < 0):
            warnings.warn(
                f"{_name(frame)}: times of {name!r} are not in order; they were sorted.",
                InputNotice,
                stacklevel=4,
            )
            return


def _check_lengths(frame: pd.DataFrame, groups: list[pd.DataFrame]) -> None:
    for group in groups:
        if len(group) == 1:
            raise InputError(
                f"{_place(frame, int(group.index[0]))}: trajectory {group['id'].iloc[0]!r} has "
                "one row, so there is nothing to predict after its start. Remove it."
            )


def _filled(frame: pd.DataFrame, group: pd.DataFrame, columns: Columns) -> np.ndarray:
    """Inputs; a missing one keeps the value before it."""
    values = group[list(columns.inputs)].ffill()
    first = np.argwhere(values.isna().to_numpy())
    if first.size:
        row, column = first[0]
        raise InputError(
            f"{_place(frame, int(group.index[row]))}: input {columns.inputs[column]!r} has no "
            f"value at the start of trajectory {group['id'].iloc[0]!r}. Fill it in."
        )
    return values.to_numpy(float)
