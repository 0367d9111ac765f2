"""The folder of a job: one file for each finished task, there in full or not at all."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from hybridsde._errors import InputError
from hybridsde._files import make_folder, own_folder, read_text, remove_partial, write_json
from hybridsde.engine.task import AbstractJob, Outcome, Task, as_json, digest
from hybridsde.store.lock import is_unused, locked

JOB, TASKS = "job.json", "tasks"
FORMAT = 2
MOST_BYTES = 2**28
"""Of the file of a task."""


@dataclass(frozen=True)
class Ledger:
    """What of a job is done. Whoever sees the folder can go on with it.

    A task is written by the process that did it, under its id. One that was done twice, because a
    machine seemed lost, is there once: both found the same.
    """

    folder: Path
    mark: str
    """Of the job; see `mark_of`."""

    @classmethod
    def join(cls, folder: Path, mark: str) -> "Ledger":
        """The ledger of a job that somebody else began; an `InputError` where it is not to be seen.

        Workers call it: the folder must lie on storage that all machines see.
        """
        content = _read(folder / JOB) if (folder / JOB).exists() else {}
        if content.get("mark") != mark:
            raise InputError(
                f"A worker does not see the job in {folder}. Choose a folder on storage that all "
                "machines share."
            )
        return cls(folder, mark)

    def __contains__(self, task: Task) -> bool:
        return self._path(task).exists()

    def keep(self, task: Task, outcome: Outcome) -> None:
        """Write what a task has found."""
        path = self._path(task)
        own_folder(own_folder(path.parent.parent) / path.parent.name)
        rows = [dict(row) for row in outcome.rows]
        content = {"kind": task.kind, "payload": dict(task.payload)}
        write_json(path, {**content, "rows": rows, "seconds": outcome.seconds})

    def outcome(self, task: Task) -> Outcome:
        """What a finished task has found."""
        content = _read(self._path(task))
        try:
            return Outcome(tuple(dict(row) for row in content["rows"]), float(content["seconds"]))
        except (KeyError, TypeError, ValueError):
            raise _damaged(self._path(task)) from None

    def _path(self, task: Task) -> Path:
        return self.folder / TASKS / task.id[:2] / f"{task.id}.json"


@contextmanager
def held(folder: Path, job: AbstractJob, devices: int) -> Iterator[Ledger]:
    """The ledger of a job in a folder that is held meanwhile: a new one, or one to go on with."""
    check_job(folder, job)
    make_folder(folder)
    with locked(folder):
        check_job(folder, job)  # somebody may have used it a moment ago
        mark = mark_of(job)
        if not (folder / JOB).exists():
            about = {"about": as_json(dict(job.about)), "devices": devices}
            write_json(folder / JOB, {"format": FORMAT, "mark": mark, **about})
        _tidy(folder)
        yield Ledger(folder, mark)
        _tidy(folder)


def check_job(folder: Path, job: AbstractJob) -> None:
    """An `InputError` unless a job may begin or go on in this folder."""
    path = folder / JOB
    if path.exists():
        if _read(path).get("mark") != mark_of(job):
            raise InputError(
                f"{folder} was begun with other settings or data, or by another version. Choose "
                "another folder."
            )
    elif folder.exists() and (not folder.is_dir() or not is_unused(folder)):
        raise InputError(f"{folder} exists and is not an empty folder. Choose another.")


def devices_of(folder: Path) -> int | None:
    """With how many devices the job of a folder was begun; None where there is none.

    A group of fits is spread over them, and the last digits depend on how many share one.
    """
    if not (folder / JOB).exists():
        return None
    found = _read(folder / JOB).get("devices")
    return found if isinstance(found, int) and found > 0 else None


def mark_of(job: AbstractJob) -> str:
    """A hash of everything that the results of a job depend on, and of the version."""
    return digest([FORMAT, version("hybridsde"), dict(job.about)])


def _read(path: Path) -> Mapping[str, Any]:
    try:
        content = json.loads(read_text(path, most=MOST_BYTES))
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, Mapping):
        raise _damaged(path)
    return content


def _damaged(path: Path) -> InputError:
    return InputError(f"{path} is damaged. Remove it and repeat the command.")


def _tidy(folder: Path) -> None:
    """Remove what killed workers left half written."""
    for inner in (folder, *(folder / TASKS).glob("??")):
        remove_partial(inner)
