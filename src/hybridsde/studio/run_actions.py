"""What can be done with a run; each action takes and gives plain data."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from hybridsde._errors import InputError
from hybridsde.fit import Training
from hybridsde.project.settings_file import check_settings
from hybridsde.report.page import write_page
from hybridsde.run.windows import training_windows
from hybridsde.studio import results
from hybridsde.studio.actions import Action, Asked, ProjectActions, table_of, text_of
from hybridsde.studio.opened import OpenRun, OpenRuns
from hybridsde.studio.python_text import python_text
from hybridsde.studio.sliders import forecasts_along
from hybridsde.studio.workspace import Workspace

SETTINGS, FOLDER, REPORT, PYTHON = "settings.toml", "run.zip", "report.html", "fit.py"
"""What can be taken away."""


class RunActions:
    """From a run to decisions."""

    def __init__(
        self, workspace: Workspace, projects: ProjectActions, computing: AbstractContextManager
    ):
        self._workspace, self._projects, self._computing = workspace, projects, computing
        self._opened = OpenRuns()
        self._reports: dict[Path, str] = {}

    def actions(self) -> dict[str, Action]:
        """By the name that the page calls them."""
        return {
            "run": self.run,
            "model": self.model,
            "forecast": self.forecast,
            "discover": self.discover,
            "take-over": self.take_over,
            "certify": self.certify,
            "report": self.report,
        }

    def run(self, asked: Asked) -> dict[str, Any]:
        """What the files of a run say, and how far its fit is."""
        folder = self._projects.folder(text_of(asked, "name"))
        return {**results.stored_facts(folder), "job": self._projects.job_of(folder)}

    def model(self, asked: Asked) -> dict[str, Any]:
        """Equations, recordings and sliders."""
        with self._computing:
            return results.model_facts(self._open(asked))

    def forecast(self, asked: Asked) -> dict[str, Any]:
        """Forecasts of one recording, with inputs and parameters as the sliders stand."""
        with self._computing:
            return forecasts_along(
                self._open(asked), text_of(asked, "series"), table_of(asked, "changes")
            )

    def discover(self, asked: Asked) -> dict[str, Any]:
        """What was learned as equations."""
        with self._computing:
            return results.discover(self._open(asked))

    def take_over(self, asked: Asked) -> dict[str, str]:
        """Settings in which these equations are known."""
        with self._computing:
            return {"project": self._workspace.name_of(results.take_over(self._open(asked)))}

    def certify(self, asked: Asked) -> list[dict[str, Any]]:
        """One more certificate."""
        folder = self._workspace.run_path(text_of(asked, "name"))
        delta = asked.get("delta", 0.05)
        if not isinstance(delta, float) or not 0 < delta < 1:
            raise InputError(f"delta must lie between 0 and 1, but is {str(delta)[:30]!r}.")
        with self._computing:
            return results.certify(folder, text_of(asked, "loss"), text_of(asked, "bound"), delta)

    def report(self, asked: Asked) -> dict[str, bool]:
        """Write the report of a run, as the command does, and keep it to be shown."""
        folder = self._workspace.run_path(text_of(asked, "name"))
        with self._computing:
            self._reports[folder] = write_page(folder).read_text(encoding="utf-8")
        return {"ready": True}

    def report_text(self, name: str) -> str:
        """A report that this studio wrote: one that came with a folder is not shown."""
        folder = self._workspace.run_path(name)
        if folder not in self._reports:
            self.report({"name": name})
        return self._reports[folder]

    def export(self, name: str, what: str) -> bytes:
        """A file to take away."""
        folder = self._workspace.run_path(name)
        if what == FOLDER:
            return results.zipped(folder)
        if what == REPORT:
            return self.report_text(name).encode()
        if what == SETTINGS:
            return results.stored_facts(folder)["settings"].encode()
        if what == PYTHON:
            return self._script(self._opened(folder)).encode()
        raise InputError(f"There is no {what[:60]!r} to take away.")

    def _script(self, opened: OpenRun) -> str:
        found = opened.run.metadata.settings
        if found is None:
            raise InputError("This run was saved from Python, without settings.")
        settings = check_settings(dict(found), opened.folder.name)
        longest = Training(longest=settings.train.piece)
        pieces = training_windows(opened.run.spec, opened.split.train, longest)
        training = settings.build_training(len(pieces))
        return python_text(settings, opened.folder.name, training)

    def _open(self, asked: Asked) -> OpenRun:
        return self._opened(self._workspace.run_path(text_of(asked, "name")))
