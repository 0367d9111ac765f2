"""Members of a fleet: which trajectories belong to each, and their recordings when asked for."""

import csv
import io
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from hybridsde._errors import InputError, suggest
from hybridsde._files import read_text
from hybridsde.data import Trajectories, find_files, from_frame
from hybridsde.data.files import without_comments
from hybridsde.project.parquet_folder import is_folder, names_in, read_folder
from hybridsde.project.settings import Settings

PART = 100_000
"""Rows of a table whose names are looked at at a time."""


@dataclass(frozen=True)
class Recordings:
    """What the settings name as data, read in part where they are a folder of Parquet files."""

    settings: Settings
    folder: Path
    """Where paths are taken from."""

    def of(self, names: Sequence[str]) -> Trajectories:
        """The trajectories with these names, in this order."""
        found = self._folder_part(names) if self._partitioned else self._whole
        places = {name: place for place, name in enumerate(found.ids)}
        absent = [name for name in names if name not in places]
        if absent:
            raise InputError(f"There is no trajectory {absent[0]!r}.{suggest(absent[0], places)}")
        return found.take(np.array([places[name] for name in names]))

    def members(self, by: str | None = None) -> dict[str, tuple[str, ...]]:
        """Trajectories of every member, by a column that names it, or each a member of its own."""
        identity = self.settings.data.id
        if identity is None:
            if by is not None:
                raise InputError(f"--by {by} needs the column that names trajectories: data.id.")
            return {name: (name,) for name in self._file_names}
        source = self.settings.columns.source
        wanted = list(dict.fromkeys([source(identity), source(identity if by is None else by)]))
        owner: dict[str, str] = {}
        with closing(self._names(wanted)) as parts:
            for part in parts:
                for row in part.drop_duplicates().itertuples(index=False):
                    _own(owner, str(row[0]), str(row[-1]), by)
        found: dict[str, list[str]] = {}
        for name in sorted(owner):
            found.setdefault(owner[name], []).append(name)
        return {name: tuple(found[name]) for name in sorted(found)}

    @property
    def _partitioned(self) -> bool:
        return is_folder(self.settings.paths(self.folder))

    @cached_property
    def _whole(self) -> Trajectories:
        """Tables of text are read as a whole, once for each process."""
        return self.settings.read_data(self.folder)

    def _folder_part(self, names: Sequence[str]) -> Trajectories:
        columns = self.settings.columns
        frame = read_folder(self.settings.paths(self.folder)[0], columns, names)
        return from_frame(frame, columns)

    @property
    def _file_names(self) -> tuple[str, ...]:
        files = find_files(self.settings.paths(self.folder))
        return tuple(map(str, files)) if len(files) > 1 else (files[0].stem,)

    def _names(self, columns: list[str]) -> Generator[pd.DataFrame, None, None]:
        paths = self.settings.paths(self.folder)
        if self._partitioned:
            yield from names_in(paths[0], columns)
            return
        for path in find_files(paths):
            if path.suffix in (".parquet", ".pq"):
                yield pd.read_parquet(path, columns=columns).astype(str)
            else:
                yield from _names_of_text(path, columns, self.settings.data.separator)


def _names_of_text(path: Path, columns: list[str], separator: str) -> Iterator[pd.DataFrame]:
    """Some columns of a CSV file, part by part."""
    text, comments = without_comments(read_text(path, links=True))
    header = next(csv.reader(io.StringIO(text), delimiter=separator, skipinitialspace=True), [])
    header = [name.strip() for name in header]
    del text
    for name in columns:
        if name not in header:
            raise InputError(f"{path} has no column {name!r}.{suggest(name, header)}")
    with pd.read_csv(
        path,
        sep=separator,
        skiprows=comments,
        usecols=lambda name: str(name).strip() in columns,
        dtype=str,
        skipinitialspace=True,
        chunksize=PART,
    ) as parts:
        for part in parts:
            part.columns = [str(name).strip() for name in part.columns]
            yield part.dropna(how="all").reindex(columns=columns)


def _own(owner: dict[str, str], name: str, member: str, by: str | None) -> None:
    """Note whose trajectory this is; one of two members is an `InputError`."""
    before = owner.setdefault(name, member)
    if before != member:
        raise InputError(
            f"Trajectory {name!r} belongs to {before!r} and to {member!r} of column {by!r}. Give "
            "every trajectory a name of its own."
        )


def in_groups(names: Sequence[str], size: int) -> Iterator[tuple[str, ...]]:
    """Members in the order of their names, so many at a time."""
    for first in range(0, len(names), size):
        yield tuple(names[first : first + size])


def listed(members: Mapping[str, Sequence[str]], names: Sequence[str]) -> dict[str, list[str]]:
    """The trajectories of some members, as JSON has them."""
    return {name: list(members[name]) for name in names}
