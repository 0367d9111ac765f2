"""Run folders of a fleet: each is there in full or not at all."""

import os
import re
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path

from hybridsde._errors import InputError
from hybridsde._files import PARTIAL, own_folder
from hybridsde.engine.task import digest
from hybridsde.run import Run
from hybridsde.store.folder import RUN

MEMBERS = "members"
LONGEST = 80
"""Letters of a name that its folder keeps."""


def member_folder(out: Path, name: str) -> Path:
    """Where the run of a member lies: under its name, where that can be the name of a folder."""
    word = re.sub(r"[^\w.-]+", "-", name).strip(".-")[:LONGEST]
    return out / MEMBERS / (word if word == name else f"{word}-{digest(name)[:8]}")


def keep_member(folder: Path, run: Run, files: Mapping[str, bytes]) -> Path:
    """Save a run beside its place and move it there at once.

    One that is there already was left by a worker that died after it, and holds the same.
    """
    above = own_folder(folder.parent)
    if (folder / RUN).is_file() and not folder.is_symlink():
        return folder
    partial = above / f".{folder.name}.{secrets.token_hex(8)}{PARTIAL}"
    try:
        run.save(partial, files)
        os.rename(partial, folder)
    except OSError as error:
        shutil.rmtree(partial, ignore_errors=True)
        if not (folder / RUN).is_file():
            raise InputError(f"{folder} cannot be written: {error.strerror}.") from None
    return folder


def remove_partial_folders(out: Path) -> None:
    """Remove what killed workers left half written."""
    for path in (out / MEMBERS).glob(f".*{PARTIAL}"):
        shutil.rmtree(path, ignore_errors=True)
