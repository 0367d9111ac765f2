"""Files of recordings: CSV and Parquet."""

import csv
import glob
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from hybridsde._errors import InputError, notice, suggest
from hybridsde._files import read_text, read_whole
from hybridsde.data.parsing import FILE, LINE, SOURCE
from hybridsde.data.table import Columns, from_frame
from hybridsde.data.trajectories import Trajectories

MOST_COLUMNS = 4096
LONGEST_NAME = 200
MOSTLY_NUMBERS = 0.9
"""A column below a unit holds words in fewer cells than the rest."""


def read_table(
    files: str | Path | Sequence[str | Path],
    columns: Columns,
    *,
    separator: str = ",",
    strict: bool = True,
) -> Trajectories:
    """Recordings from CSV or Parquet files; a name may hold the wildcards * and ?."""
    return from_frame(*read_frame(files, columns, separator=separator), strict=strict)


def read_frame(
    files: str | Path | Sequence[str | Path], columns: Columns, *, separator: str = ","
) -> tuple[pd.DataFrame, Columns]:
    """The rows of all files as they stand, and what their columns mean."""
    frames = [_read(path, separator) for path in find_files(files)]
    many = len(frames) > 1
    if many and columns.id is None:
        names = [f"{frame[SOURCE].iloc[0]}" for frame in frames]
        frames = [f.assign(**{FILE: n}) for f, n in zip(frames, names, strict=True)]
        columns = replace(columns, id=FILE)
    return pd.concat(frames, ignore_index=True), columns


def read_csv(
    files: str | Path | Sequence[str | Path],
    *,
    states: Sequence[str],
    time: str = "t",
    id: str | None = None,
    inputs: Sequence[str] = (),
    unit: str | None = None,
    separator: str = ",",
    columns: Mapping[str, str] | None = None,
    decimal: str = ".",
    missing: Sequence[str] = (),
) -> Trajectories:
    """Recordings from CSV files, one row per time and trajectory, in any order.

    - `id`: the column that names the trajectory; without it a file is one trajectory.
    - `time`: numbers, or timestamps together with `unit` (s, min, h, day, week, year).
    - `states`, `inputs`: columns of numbers. An empty cell of a state is a missing value.
    - `columns`: those that have another name in the file, as {"T": "TI-101.PV"}.
    - `decimal`: "," where numbers are written as 0,5.
    - `missing`: words that mean a missing value, as ["Bad Input", "-"].
    """
    meaning = Columns(
        tuple(states),
        time,
        id,
        tuple(inputs),
        unit,
        columns=columns or {},
        decimal=decimal,
        missing=missing,
    )
    return read_table(files, meaning, separator=separator)


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
    """The cells of a file as they stand, for a first look; rows are named by their lines."""
    return _read(find_files(path)[0], separator).set_index(LINE).drop(columns=[SOURCE])


def _read(path: Path, separator: str) -> pd.DataFrame:
    if path.suffix in (".parquet", ".pq"):
        return _read_parquet(path)
    whole = read_text(path, links=True).replace("\r\n", "\n").replace("\r", "\n")
    text, comments = without_comments(whole)
    if not text.strip():
        raise InputError(f"{path} is empty. It needs a line of column names and a row per time.")
    _check_separator(path, text.split("\n", 1)[0], separator)
    lines = _check_rows(path, text, comments, separator)
    try:
        frame = pd.read_csv(
            io.StringIO(text),
            sep=separator,
            dtype=str,
            skipinitialspace=True,
            skip_blank_lines=False,
        )
    except (pd.errors.ParserError, pd.errors.EmptyDataError, ValueError) as error:
        raise InputError(f"{path} is not a table: {str(error).strip()}") from None
    frame.columns = [str(name).strip() for name in frame.columns]
    frame[LINE] = lines if len(lines) == len(frame) else np.arange(len(frame)) + comments + 2
    frame[SOURCE] = str(path)
    frame = frame.dropna(how="all", subset=[c for c in frame.columns if c not in (LINE, SOURCE)])
    return _without_units(frame)


_NUMBER = r"^[+-]?[.,]?\d|\d:\d\d|\b\d{4}\b"
"""How numbers and moments look at a glance."""


def _without_units(frame: pd.DataFrame) -> pd.DataFrame:
    """Without a row of units below the header, which is said.

    Its cells hold no numbers, and there are numbers below all that are filled in a column of them.
    """
    cells = frame.drop(columns=[LINE, SOURCE])
    if len(cells) < 3 or cells.iloc[0].astype(str).str.contains(_NUMBER).any():
        return frame
    below = cells.iloc[1:]
    units = []
    for name, first in cells.iloc[0].dropna().items():
        filled = below[name].dropna().astype(str)
        if not len(filled) or first in set(filled):
            return frame
        if filled.str.contains(_NUMBER).mean() > MOSTLY_NUMBERS:
            units.append(str(first))
    if not units or not any(below[name].astype(str).str.contains(_NUMBER).all() for name in below):
        return frame
    notice(
        f"{frame[SOURCE].iloc[0]}, line {frame[LINE].iloc[0]}: read as a row of units "
        f"({', '.join(units)[:60]}), and left out."
    )
    return frame.iloc[1:]


def _read_parquet(path: Path) -> pd.DataFrame:
    try:
        frame = pd.read_parquet(io.BytesIO(read_whole(path, links=True)))
    except ImportError:
        raise InputError(
            f"{path}: reading Parquet needs pyarrow. Install it with: pip install "
            "'hybridsde[parquet]'"
        ) from None
    except InputError:
        raise
    except (OSError, ValueError, NotImplementedError) as error:
        raise InputError(f"{path} is not a Parquet file: {str(error).splitlines()[0]}") from None
    _check_header(path, [str(name) for name in frame.columns])
    return frame.assign(**{LINE: np.arange(len(frame)) + 1, SOURCE: str(path)})


def without_comments(text: str) -> tuple[str, int]:
    """The text from the column names on, and how many lines stand above.

    These begin with #, or are the one by which Excel knows the separator.
    """
    place = count = 0
    while text.startswith("#", place) or (place == 0 and re.match(r"(?i)sep=.\r?\n", text)):
        end = text.find("\n", place)
        place, count = (len(text) if end < 0 else end + 1), count + 1
    return text[place:], count


def _check_rows(path: Path, text: str, skipped: int, separator: str) -> list[int]:
    """The line on which each row begins.

    No row has more cells than the header, no two columns have one name, no cell is a book.
    """
    rows = csv.reader(io.StringIO(text), delimiter=separator, skipinitialspace=True)
    begins = []
    try:
        header = [name.strip() for name in next(rows)]
        _check_header(path, header)
        before = rows.line_num
        for row in rows:
            if len(row) > len(header):
                raise InputError(
                    f"{path}, line {skipped + before + 1}: {len(row)} cells, but the header names "
                    f"{len(header)} columns. Remove a cell or name its column.{_hint(separator)}"
                )
            begins.append(skipped + before + 1)
            before = rows.line_num
    except csv.Error as error:
        where = skipped + rows.line_num
        raise InputError(f"{path}, line {where}: this is not a row of a table: {error}.") from None
    return begins


def _hint(separator: str) -> str:
    if separator != ",":
        return ""
    return " Where numbers are written as 0,5, separate columns by semicolons."


def _check_header(path: Path, header: list[str]) -> None:
    if len(header) > MOST_COLUMNS:
        raise InputError(
            f"{path} has {len(header)} columns, more than {MOST_COLUMNS}. Leave out what is not "
            "needed."
        )
    seen: set[str] = set()
    for name in header:
        if name and name in seen:
            raise InputError(f"{path} has two columns called {name[:60]!r}. Rename one.")
        if not name.isprintable() or len(name) > LONGEST_NAME:
            raise InputError(
                f"{path}: a column is called {name[:40]!r}, which cannot be printed or is longer "
                f"than {LONGEST_NAME} characters. Rename it."
            )
        seen.add(name)


def _check_separator(path: Path, header: str, separator: str) -> None:
    others = [s for s in (",", ";", "\t", "|") if s != separator and header.count(s) > 0]
    if separator not in header and others:
        raise InputError(
            f"{path} has a single column, {header.strip()!r}. Its separator seems to be "
            f"{others[0]!r}: say separator = {others[0]!r}."
        )
