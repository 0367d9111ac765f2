"""Jobs for the tests of engines, importable by the workers that they start."""

import os
import signal
from dataclasses import dataclass
from pathlib import Path

from hybridsde.engine import AbstractJob, Outcome, Task


@dataclass(frozen=True)
class Squares(AbstractJob):
    """x² of the numbers of a task; some numbers bring misfortune."""

    folder: Path
    """Where a task notes that it was begun."""

    @property
    def about(self):
        return {"kind": "squares"}

    def open(self):
        (self.folder / f"opened-{os.getpid()}").touch()
        return self.perform

    def perform(self, task: Task) -> Outcome:
        first = not (self.folder / task.id).exists()
        (self.folder / task.id).touch()
        fate = task.payload.get("fate")
        if fate == "dies" or (fate == "dies once" and first):
            os.kill(os.getpid(), signal.SIGKILL)
        if fate == "raises":
            raise RuntimeError("no luck")
        failure = "too large" if fate == "fails" else None
        return Outcome([{"x": x, "square": x * x, "failure": failure} for x in task.payload["x"]])


def squares(*fates: str | None) -> list[Task]:
    """A task for each fate."""
    return [Task("square", {"x": [n, n + 1], "fate": fate}) for n, fate in enumerate(fates)]
