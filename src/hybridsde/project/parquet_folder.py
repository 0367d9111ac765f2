"""Folders of Parquet files, also in hive partitions: read in part, by the names of trajectories."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from hybridsde._errors import InputError, suggest
from hybridsde.data import Columns
from hybridsde.data.parsing import LINE, SOURCE


def is_folder(names: Sequence[Path]) -> bool:
    """Whether the files of a project are one folder that is read as a data set."""
    return len(names) == 1 and names[0].is_dir()


def read_folder(folder: Path, columns: Columns, ids: Sequence[str] | None = None) -> pd.DataFrame:
    """The rows of a data set, or those of some trajectories.

    Partitions and row groups that hold none of them are not read.
    """
    dataset = _dataset(folder)
    wanted = [
        columns.source(name)
        for name in (columns.id, columns.time, *columns.states, *columns.inputs)
        if name is not None and columns.source(name) in dataset.schema.names
    ]
    if columns.quantity is not None:  # a long table: all its columns are needed
        wanted = list(dataset.schema.names)
    chosen = None if ids is None else _filter(dataset, columns, ids)
    try:
        frame = dataset.to_table(columns=wanted, filter=chosen).to_pandas()
    except (OSError, ValueError, NotImplementedError) as error:
        raise _unreadable(folder, error) from None
    return frame.assign(**{LINE: range(1, len(frame) + 1), SOURCE: str(folder)})


def names_in(folder: Path, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
    """Some columns as text, part by part: nothing else is held."""
    dataset = _dataset(folder)
    for name in columns:
        if name not in dataset.schema.names:
            near = suggest(name, dataset.schema.names)
            raise InputError(f"{folder} has no column {name!r}.{near}")
    for part in dataset.to_batches(columns=list(columns)):
        yield part.to_pandas().astype(str).drop_duplicates()


def _filter(dataset: Any, columns: Columns, ids: Sequence[str]) -> Any:
    """Rows of these trajectories, whose names have the type of their column."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    if columns.id is None:
        raise InputError("A folder of Parquet files needs the column that names trajectories: id.")
    identity = columns.source(columns.id)
    kind = dataset.schema.field(identity).type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return ds.field(identity).isin(pa.array(list(ids)).cast(kind))


def _dataset(folder: Path) -> Any:
    try:
        import pyarrow.dataset
    except ImportError:
        raise InputError(
            f"{folder}: reading Parquet needs pyarrow. Install it with: pip install "
            "'hybridsde[parquet]'"
        ) from None
    try:
        found = pyarrow.dataset.dataset(folder, format="parquet", partitioning="hive")
    except (OSError, ValueError, NotImplementedError) as error:
        raise _unreadable(folder, error) from None
    if not found.files:
        raise InputError(f"{folder} holds no Parquet files.")
    return found


def _unreadable(folder: Path, error: Exception) -> InputError:
    return InputError(f"{folder} is no folder of Parquet files: {str(error).splitlines()[0][:200]}")
