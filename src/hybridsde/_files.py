"""Files that are there in full or not at all, and that are what they seem."""

import errno
import json
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

from hybridsde._errors import InputError

PARTIAL = ".part"
"""The end of the name of a file that is being written; see `is_partial`."""
MOST_BYTES = 2**31
"""Larger files are refused: they would not fit into memory several times."""


def write_whole(path: Path, content: bytes | str) -> None:
    """Write a file at once, so that a crash or a full disk leaves the old one as it was.

    The content goes to a new file with a name that nobody can foresee, and takes its place when it
    is on the disk. A link that has the name of the file is replaced; what it points to is not
    touched.
    """
    data = content.encode() if isinstance(content, str) else content
    partial = path.with_name(f".{path.name[:200]}.{secrets.token_hex(8)}{PARTIAL}")
    try:
        with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
        _sync(path.parent)
    except OSError as error:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise InputError(
            f"{path} cannot be written: {error.strerror}. Make room, or choose another folder."
        ) from None


def write_json(path: Path, content: Any) -> None:
    """Write JSON as `write_whole` writes text."""
    write_whole(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def is_partial(path: Path) -> bool:
    """Whether a file is what a killed `write_whole` left."""
    return path.name.startswith(".") and path.name.endswith(PARTIAL)


def read_whole(path: Path, *, links: bool = False, most: int = MOST_BYTES) -> bytes:
    """The content of a plain file: no pipe, no device, nothing larger than `most` bytes.

    Unless `links` is true a link is refused too: what lies in a folder that somebody sent must not
    show files of this machine.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)
    if not links:
        flags |= getattr(os, "O_NOFOLLOW", 0)
    try:
        handle = os.open(path, flags)
    except ValueError as error:  # a zero byte in the name
        raise InputError(f"{str(path)!r} cannot be read: {error}.") from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise InputError(f"{path} is a link. Put the file itself there.") from None
        raise InputError(f"{path} cannot be read: {error.strerror}.") from None
    about = os.fstat(handle)
    if not stat.S_ISREG(about.st_mode):
        os.close(handle)
        kind = "a folder" if stat.S_ISDIR(about.st_mode) else "a pipe or a device"
        raise InputError(f"{path} cannot be read: it is {kind}, not a file.")
    with open(handle, "rb") as file:
        if about.st_size > most:
            raise InputError(
                f"{path} has {about.st_size / 2**20:.0f} MiB, more than {most / 2**20:.0f}. Split "
                "it, or leave out what is not needed."
            )
        try:
            return file.read()
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror}.") from None


def read_text(path: Path, *, links: bool = False, most: int = MOST_BYTES) -> str:
    """The text of a plain file in UTF-8, without a byte-order mark."""
    try:
        return read_whole(path, links=links, most=most).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not text ({error.reason}). Save it in UTF-8.") from None


def make_folder(path: Path) -> None:
    """Make a folder and those above it."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"The folder {path} cannot be made: {error.strerror}.") from None


def own_folder(path: Path) -> Path:
    """A folder inside one of ours, made where it lacks; a link that leads elsewhere is refused."""
    if path.is_symlink():
        raise InputError(f"{path} is a link. Put a folder there.")
    make_folder(path)
    return path


def remove_partial(folder: Path) -> None:
    """Remove what killed processes left half written; call it where nobody else writes."""
    for path in folder.iterdir():
        if is_partial(path):
            with suppress(OSError):
                path.unlink()


def _sync(folder: Path) -> None:
    """Put the names in a folder on the disk, where the system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
