"""Files that are there in full or not at all."""

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from hybridsde._errors import InputError


def write_whole(path: Path, content: bytes | str) -> None:
    """Write a file at once, so that a crash or a full disk leaves the old one as it was."""
    partial = path.with_name(f".{path.name}.part")
    try:
        with partial.open("wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except OSError as error:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise InputError(
            f"{path} cannot be written: {error.strerror}. Make room, or choose another folder."
        ) from None


def write_json(path: Path, content: Any) -> None:
    """Write JSON as `write_whole` writes text."""
    write_whole(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def make_folder(path: Path) -> None:
    """Make a folder and those above it."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"The folder {path} cannot be made: {error.strerror}.") from None
