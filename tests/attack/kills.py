"""Processes that are killed in the middle of a write, of any write."""

import hashlib
import os
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from unittest import mock

from hybridsde import _files
from hybridsde.fit import Checkpoint
from hybridsde.project.project import CHECKPOINT, Project
from hybridsde.store.folder import HISTORY, RUN, UNFINISHED, WEIGHTS
from hybridsde.store.lock import LOCK

SETTINGS = """\
[data]
files = "d.csv"
id = "id"
states = ["x"]
test = 0.25
validation = 0

[model]
learned = "network"
hidden = [2]
members = 1
diffusion = 0.1
noise = 0.1

[train]
epochs = 3
samples = 1

[forecast]
draws = 4
"""


class Killed(BaseException):
    """The process is no more."""


class Reaper:
    """Stands for `os` where files are written, and ends the process at one of its calls."""

    def __init__(self, at: int | None):
        self.calls, self.at, self.dead = 0, at, False

    def __getattr__(self, name: str):
        return getattr(os, name)

    def _pass(self) -> None:
        self.calls += 1
        if self.dead or self.calls - 1 == self.at:
            self.dead = True
            raise Killed

    def open(self, *given, **named):
        """A new file."""
        self._pass()
        return os.open(*given, **named)

    def fsync(self, handle: int) -> None:
        """In the middle of a write: half of the file is there."""
        if not self.dead and self.calls == self.at and os.fstat(handle).st_size:
            os.truncate(handle, os.fstat(handle).st_size // 2)
        self._pass()
        os.fsync(handle)

    def replace(self, *given) -> None:
        """Before and after the new file takes its place."""
        self._pass()
        os.replace(*given)
        self._pass()


@contextmanager
def reaped(at: int | None) -> Iterator[Reaper]:
    """Kill the work inside at this call; a dead process removes nothing."""
    reaper, unlink = Reaper(at), Path.unlink

    def removed(path: Path, *given, **named) -> None:
        if reaper.dead:
            return
        if path.name != LOCK:
            reaper._pass()
        unlink(path, *given, **named)

    often = partial(Checkpoint, every=0.0)
    with (
        mock.patch.object(_files, "os", reaper),
        mock.patch.object(Path, "unlink", removed),
        mock.patch("hybridsde.run.fitting.Checkpoint", often),
    ):
        yield reaper


def write_project(folder: Path) -> Project:
    """A fit that takes no time."""
    folder.mkdir(exist_ok=True)
    rows = [f"{i},{k / 10},{(i + 1) * k % 5 / 3}" for i in range(4) for k in range(5)]
    (folder / "d.csv").write_text("\n".join(["id,t,x", *rows, ""]))
    (folder / "s.toml").write_text(SETTINGS)
    return Project.open(folder / "s.toml")


def fingerprint(out: Path) -> str:
    """What a finished run is, whenever it was finished."""
    found = hashlib.sha256()
    for name in (WEIGHTS, HISTORY, RUN, "data.csv", "settings.toml"):
        found.update((out / name).read_bytes())
    return found.hexdigest()


def kill_and_resume(project: Project, out: Path, at: list[int], expected: str) -> None:
    """Killed at these calls, one after the other, a fit ends as if nothing had been."""
    shutil.rmtree(out, ignore_errors=True)
    for place in at:
        try:
            with reaped(place):
                project.fit_into(out, resume=out.exists())
        except Killed:
            continue
        break
    if not (out / RUN).exists() or (out / UNFINISHED).exists():
        project.fit_into(out, resume=out.exists())
    assert fingerprint(out) == expected, f"killed at {at}: another run than without"
    left = {path.name for path in out.iterdir()} - {
        WEIGHTS, HISTORY, RUN, LOCK, "data.csv", "settings.toml",
    }  # fmt: skip
    assert not left, f"killed at {at}: left {sorted(left)}"
    assert CHECKPOINT not in left


def calls_of(work: Callable[[], object]) -> int:
    """How many places there are to be killed at."""
    with reaped(None) as reaper:
        work()
    return reaper.calls


def attack_by_killing(count: int, room: Path, first: int) -> tuple[Counter, list[str]]:
    """So many fits, each killed once to three times at random places."""
    project, out = write_project(room / "project"), room / "killed"
    calls = calls_of(lambda: project.fit_into(out))
    expected = fingerprint(out)
    ends, wrong = Counter(), []
    for seed in range(first, first + count):
        rng = random.Random(seed)
        at = [rng.randrange(calls) for _ in range(rng.choice((1, 1, 2, 3)))]
        try:
            kill_and_resume(project, out, at, expected)
            ends["the same run"] += 1
        except AssertionError as error:
            ends["wrong"] += 1
            wrong.append(f"kill {seed}: {error}")
        except Exception as error:
            ends["wrong"] += 1
            wrong.append(f"kill {seed} at {at}: {type(error).__name__}: {error}")
    return ends, wrong
