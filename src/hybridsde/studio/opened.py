"""Runs that the studio has read, kept while their folder does not change."""

import threading
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

from hybridsde._errors import InputError
from hybridsde.data import Trajectories
from hybridsde.project.project import split_of
from hybridsde.project.split import Split
from hybridsde.run import Run
from hybridsde.store.folder import RUN

MOST_OPEN = 6


@dataclass(frozen=True, eq=False)
class OpenRun:
    """A run and its recordings in their parts."""

    folder: Path
    run: Run
    split: Split

    @property
    def recordings(self) -> Trajectories:
        """All of them; those that training never saw come first."""
        parts = self.split.parts()
        names = [name for name in ("test", "validation", "train") if name in parts]
        whole = parts[names[0]]
        for name in names[1:]:
            whole = whole.join(parts[name])
        return whole

    def part_of(self, name: str) -> str:
        """Which part a recording belongs to."""
        return next(part for part, data in self.split.parts().items() if name in data.ids)


class OpenRuns:
    """The latest few; a run whose physics is Python is refused, since nothing here runs it."""

    def __init__(self):
        self._kept: OrderedDict[Path, tuple[int, OpenRun]] = OrderedDict()
        self._lock = threading.Lock()

    def __call__(self, folder: Path) -> OpenRun:
        """Read a run folder, unless it was read since it changed."""
        path = folder / RUN
        if not path.exists():
            raise InputError(f"{folder.name} is not finished yet. Resume its fit first.")
        moment = path.stat().st_mtime_ns
        with self._lock:
            kept = self._kept.get(folder)
            if kept is None or kept[0] != moment:
                run = Run.load(folder)
                kept = moment, OpenRun(folder, run, split_of(folder, run))
            self._kept[folder] = kept
            self._kept.move_to_end(folder)
            while len(self._kept) > MOST_OPEN:
                self._kept.popitem(last=False)
            return kept[1]
