"""Which files a job was begun with."""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from hybridsde._files import read_whole
from hybridsde.data import find_files
from hybridsde.project.parquet_folder import is_folder

HASHED = 2**28
"""Files up to this many bytes are told apart by what they hold, larger ones by their size."""


def files_mark(paths: Sequence[Path]) -> list[list[str]]:
    """Names of files with hashes, or with sizes where they are large or parts of a folder."""
    if is_folder(paths):
        inside = sorted(path for path in paths[0].rglob("*") if path.is_file())
        return [[os.path.relpath(path, paths[0]), str(path.stat().st_size)] for path in inside]
    return [[path.name, _content(path)] for path in find_files(paths)]


def _content(path: Path) -> str:
    size = path.stat().st_size
    if size > HASHED:
        return str(size)
    return hashlib.sha256(read_whole(path, links=True)).hexdigest()
