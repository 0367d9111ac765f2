"""One model for every member of a fleet: a task is a group of members."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hybridsde._errors import InputError
from hybridsde.engine.fleet_worker import MEMBERS, START, FleetWorker
from hybridsde.engine.task import AbstractJob, Perform, Task
from hybridsde.project.fingerprint import files_mark
from hybridsde.project.members import Recordings, in_groups, listed
from hybridsde.project.settings import Settings
from hybridsde.project.settings_file import settings_bytes, settings_of

GROUP = 50
"""Members that are fitted together."""
SAMPLE = 8
"""Members that settle what all share: steps of time, and where parameters begin."""
COMMON = 32
"""Members that a common model is fitted to."""


@dataclass(frozen=True)
class FleetJob(AbstractJob):
    """A settings file whose model is fitted to every member for itself."""

    text: bytes
    source: Path
    out: Path
    by: str | None = None
    common: bool = False
    group: int = GROUP

    @classmethod
    def read(cls, source: Path, out: Path, **options: Any) -> "FleetJob":
        """From a settings file."""
        found = cls(settings_bytes(source), source.resolve(), out.resolve(), **options)
        if found.settings.train.prior_fraction is not None:
            raise InputError("train.prior_fraction is for one certified run, not for a fleet.")
        return found

    @property
    def settings(self) -> Settings:
        """What the file says."""
        return settings_of(self.text, self.source)

    @property
    def recordings(self) -> Recordings:
        """Where the members come from."""
        return Recordings(self.settings, self.source.parent)

    @property
    def about(self) -> Mapping[str, Any]:
        """Settings, files and grouping."""
        return {
            "kind": "fleet",
            "settings": self.settings.model_dump(mode="json"),
            "data": files_mark(self.settings.paths(self.source.parent)),
            "by": self.by,
            "common": self.common,
            "group": self.group,
        }

    def start_task(self, members: Mapping[str, Sequence[str]]) -> Task:
        """What is settled before any member: on the first of them."""
        first = list(members)[: COMMON if self.common else SAMPLE]
        return Task(START, {"members": listed(members, first), "common": self.common})

    def member_tasks(
        self, members: Mapping[str, Sequence[str]], start: Mapping[str, Any]
    ) -> list[Task]:
        """All members, in groups that depend on nothing but their names."""
        groups = in_groups(list(members), self.group)
        shared = dict(start)
        return [
            Task(MEMBERS, {"members": listed(members, names), "start": shared}) for names in groups
        ]

    def open(self) -> Perform:
        """Settings are read once; a table of text too, a folder of Parquet files in part."""
        return FleetWorker(
            self.settings, self.recordings, self.source, self.text, self.out, self.common
        ).perform
