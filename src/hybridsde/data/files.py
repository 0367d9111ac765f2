"""Files of recordings: CSV and Parquet."""

import csv
import glob
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from hybridsde._errors import InputError, suggest
from hybridsde.data.parsing import FILE, LINE, SOURCE
from hybridsde.data.table import Columns, from_frame
from hybridsde.data.trajectories import Trajectories


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
        frames = [f.assign(**{FILE: n}) for f, n in zip(frames, names, strict=True)]
        columns = Columns(columns.states, columns.time, FILE, columns.inputs, columns.unit)
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
    if not patterns:
        raise InputError("No file is named. Give at least one.")
    found: list[Path] = []
    for pattern in map(str, patterns):
        wild = any(character in pattern for character in "*?") and not Path(pattern).exists()
        escaped = pattern.replace("[", "[[]")
        paths = sorted(map(Path, glob.glob(escaped))) if wild else [Path(pattern)]
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
    _check_width(path, lines[comments:], comments, separator)
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
    except (pd.errors.ParserError, pd.errors.EmptyDataError, ValueError) as error:
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


def _check_width(path: Path, lines: list[str], skipped: int, separator: str) -> None:
    """No row has more cells than the header, and no two columns one name."""
    rows = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    header = [name.strip() for name in next(rows)]
    for position, name in enumerate(header):
        if name and name in header[:position]:
            raise InputError(f"{path} has two columns called {name!r}. Rename one.")
    for row in rows:
        if len(row) > len(header):
            raise InputError(
                f"{path}, line {skipped + rows.line_num}: {len(row)} cells, but the header names "
                f"{len(header)} columns. Remove a cell or name its column."
            )


def _check_separator(path: Path, header: str, separator: str) -> None:
    others = [s for s in (",", ";", "\t", "|") if s != separator and header.count(s) > 0]
    if separator not in header and others:
        raise InputError(
            f"{path} has a single column, {header.strip()!r}. Its separator seems to be "
            f"{others[0]!r}: say separator = {others[0]!r}."
        )
