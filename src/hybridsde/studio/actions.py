"""What can be done with projects and fits; each action takes and gives plain data."""

import io
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pandas as pd

from hybridsde._errors import InputError
from hybridsde._files import read_text, write_whole
from hybridsde.studio.cells import empty_cells
from hybridsde.studio.draft import (
    check_draft,
    merged,
    open_project,
    read_draft,
    save_draft,
    shortened,
    show_table,
)
from hybridsde.studio.equations import read_equations
from hybridsde.studio.glimpse import Glimpse
from hybridsde.studio.jobs import Job, Jobs
from hybridsde.studio.workspace import MARK, SNAPSHOT, Workspace, about_run

Asked = Mapping[str, Any]
Action = Callable[[Asked], Any]
PARQUET = b"PAR1"
"""How such a file begins and ends."""


class ProjectActions:
    """From a table to a fit."""

    def __init__(self, workspace: Workspace, jobs: Jobs, computing: AbstractContextManager):
        self._workspace, self._jobs, self._computing = workspace, jobs, computing
        self._glimpses: dict[Path, Glimpse] = {}

    def actions(self) -> dict[str, Action]:
        """By the name that the page calls them."""
        return {
            "state": self.state,
            "example": self.example,
            "project": self.project,
            "save": self.save,
            "blank": self.blank,
            "equations": self.equations,
            "fit": self.fit,
            "stop": self.stop,
            "resume": self.resume,
            "glimpse": self.glimpse,
        }

    def state(self, asked: Asked) -> dict[str, Any]:
        """Everything in the folder, and the queue."""
        del asked
        found = self._workspace
        return {
            "folder": found.root.name or str(found.root),
            "projects": found.settings(),
            "runs": [{"name": one, **about_run(found.root / one)} for one in found.runs()],
            "queue": [self._told(job) for job in self._jobs.active()],
        }

    def upload(self, label: str, content: bytes) -> dict[str, str]:
        """Keep a table that was dropped on the page."""
        if content[:4] == PARQUET:
            content = _parquet_as_csv(content)
        return {"project": self._workspace.add_table(label, content)}

    def example(self, asked: Asked) -> dict[str, str]:
        """Write the built-in example."""
        del asked
        return {"project": self._workspace.add_example()}

    def project(self, asked: Asked) -> dict[str, Any]:
        """Settings, columns and recordings of a project."""
        return show_table(self._workspace.settings_path(text_of(asked, "name")))

    def save(self, asked: Asked) -> dict[str, Any]:
        """Write the settings as they stand on the page, and say what a fit would do."""
        path = self._workspace.settings_path(text_of(asked, "name"))
        stored, _ = read_draft(path)
        settings = merged(
            stored.model_dump(exclude_defaults=True), table_of(asked, "settings"), path.name
        )
        saved = path if settings == stored else save_draft(path, settings)
        answer = {"project": self._workspace.name_of(saved)}
        with self._computing:
            try:
                return {**answer, **check_draft(saved)}
            except InputError as error:
                return {**answer, "error": shortened(error, saved)}

    def blank(self, asked: Asked) -> dict[str, int]:
        """Empty cells that a sensor was at fault in, in the studio's own copy of a table."""
        path = self._workspace.settings_path(text_of(asked, "name"))
        lines = asked.get("lines")
        if not isinstance(lines, list) or not all(isinstance(one, int) for one in lines):
            raise InputError("The request lacks 'lines'. Reload the page.")
        settings, _ = read_draft(path)
        return {"emptied": empty_cells(path, settings, text_of(asked, "state"), lines)}

    def equations(self, asked: Asked) -> dict[str, Any]:
        """Read equations while they are typed."""
        return read_equations(*(words_of(asked, name) for name in ("lines", "states", "inputs")))

    def fit(self, asked: Asked) -> dict[str, Any]:
        """Queue a fit of a project as its settings are now; they are kept beside the run."""
        path = self._workspace.settings_path(text_of(asked, "name"))
        read_draft(path)
        out = self._workspace.next_run(path)
        kept = out.with_suffix(".toml")
        write_whole(kept, SNAPSHOT + read_text(path).removeprefix(MARK))
        return self._told(self._jobs.add(kept, out))

    def resume(self, asked: Asked) -> dict[str, Any]:
        """Go on with a fit that was stopped or killed."""
        out = self.folder(text_of(asked, "name"))
        kept = out.with_suffix(".toml")
        if not kept.exists():
            raise InputError(
                f"The settings of {out.name} are not in {kept.name}. Go on where it was begun: "
                f"hybridsde fit SETTINGS --out {out.name} --resume"
            )
        return self._told(self._jobs.add(kept, out, resume=True))

    def stop(self, asked: Asked) -> dict[str, Any]:
        """End a fit; it can go on later."""
        job = self._jobs.of(self.folder(text_of(asked, "name")))
        if job is None:
            raise InputError("The studio did not begin this fit, so it cannot stop it.")
        self._jobs.stop(job.number)
        return self._told(job)

    def glimpse(self, asked: Asked) -> dict[str, Any]:
        """Parameters and a forecast of a fit under way; nothing where it cannot be seen yet."""
        out = self.folder(text_of(asked, "name"))
        kept = out.with_suffix(".toml")
        if not kept.exists():
            return {"seen": None}
        with self._computing:
            if kept not in self._glimpses:
                self._glimpses = {kept: Glimpse(open_project(kept))}
            return {"seen": self._glimpses[kept](out)}

    def folder(self, name: str) -> Path:
        """That of a run, or of one that waits for its turn."""
        waiting = {self._workspace.name_of(job.out): job.out for job in self._jobs.active()}
        return waiting.get(name) or self._workspace.run_path(name)

    def job_of(self, folder: Path) -> dict[str, Any] | None:
        """How far the fit of a folder is, where this studio began it."""
        job = self._jobs.of(folder)
        return None if job is None else self._told(job)

    def _told(self, job: Job) -> dict[str, Any]:
        return {"run": self._workspace.name_of(job.out), **job.to_dict()}


def _parquet_as_csv(content: bytes) -> bytes:
    """As text, which is what is kept."""
    try:
        frame = pd.read_parquet(io.BytesIO(content))
    except ImportError:
        raise InputError(
            "Reading Parquet needs pyarrow. Install it with: pip install 'hybridsde[parquet]'"
        ) from None
    except Exception as error:
        raise InputError(f"This is no Parquet file that can be read: {str(error)[:200]}") from None
    return frame.to_csv(index=False).encode()


def text_of(asked: Asked, name: str) -> str:
    """A word of a request."""
    found = asked.get(name)
    if not isinstance(found, str):
        raise InputError(f"The request lacks {name!r}. Reload the page.")
    return found


def table_of(asked: Asked, name: str) -> dict[str, Any]:
    """A table of a request."""
    found = asked.get(name)
    if not isinstance(found, dict):
        raise InputError(f"The request lacks {name!r}. Reload the page.")
    return found


def words_of(asked: Asked, name: str) -> list[str]:
    """A list of words of a request."""
    found = asked.get(name)
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise InputError(f"The request lacks {name!r}. Reload the page.")
    return found
