"""One process at a time writes into a folder."""

import errno
import json
import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hybridsde._errors import InputError
from hybridsde._files import is_partial

if os.name == "nt":
    import msvcrt

    def _hold(handle: int) -> None:
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _hold(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


LOCK = ".lock"


def is_unused(folder: Path) -> bool:
    """Whether a folder holds nothing but what a process leaves that is killed at its first step."""
    if not folder.is_dir():
        return True
    return all(path.name == LOCK or is_partial(path) for path in folder.iterdir())


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder while the work inside lasts; an `InputError` names who else holds it.

    The system ends the hold with the process, however that ends, so that nothing has to be cleaned
    up after a crash. The file says whose it is.
    """
    path = folder / LOCK
    handle = _held(path)
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink()  # still held: whoever opened it meanwhile sees that it is gone
        os.close(handle)


def _held(path: Path) -> int:
    """An open, locked file that is the one at this path."""
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    while True:
        try:
            handle = os.open(path, flags, 0o666)
        except OSError as error:
            raise InputError(f"{path} cannot be written: {error.strerror}.") from None
        try:
            _hold(handle)
            if _same(handle, path):
                os.ftruncate(handle, 0)
                os.write(handle, json.dumps(_identity()).encode())
                return handle
            os.close(handle)  # it was removed between opening and locking
        except OSError as error:
            held = error.errno in (errno.EAGAIN, errno.EACCES, errno.EDEADLK)
            owner = _owner(handle) if held else ""
            os.close(handle)
            if held:
                raise InputError(
                    f"{path.parent} is in use{owner}. Wait for it, or choose another folder."
                ) from None
            raise InputError(f"{path} cannot be locked: {error.strerror}.") from None


def _same(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path, follow_symlinks=False))
    except OSError:
        return False


def _identity() -> dict[str, object]:
    since = time.strftime("%Y-%m-%d %H:%M:%S")
    return {"process": os.getpid(), "host": platform.node(), "since": since}


def _owner(handle: int) -> str:
    try:
        found = json.loads(os.read(handle, 1000))
        return (
            f" by process {int(found['process'])} on {str(found['host'])[:60]!r} since "
            f"{str(found['since'])[:19]}"
        )
    except (OSError, ValueError, KeyError, TypeError):
        return " by another process"
