"""A comparison whose systems are tasks: each with all its seeds, as one program."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from hybridsde._errors import InputError, InputNotice, notice
from hybridsde._files import write_whole
from hybridsde.engine.executor import AbstractExecutor, Report, execute
from hybridsde.engine.ledger import held
from hybridsde.engine.member_folder import keep_member
from hybridsde.engine.task import AbstractJob, Outcome, Perform, Task
from hybridsde.project.compare import Candidate, others, parts_of, repeat, variants
from hybridsde.project.comparison_folder import SCORES_FILE, comparing, run_folder
from hybridsde.project.fingerprint import files_mark
from hybridsde.project.project import Project
from hybridsde.project.settings_file import settings_of

SYSTEM, FOLDER = "system", "engine"
"""The kind of a task, and the folder of the ledger inside that of the comparison."""


@dataclass(frozen=True)
class ComparisonJob(AbstractJob):
    """A settings file, the systems to compare, and from how many seeds."""

    text: bytes
    source: Path
    out: Path
    seeds: int
    methods: str

    @classmethod
    def of(cls, project: Project, out: Path, seeds: int, methods: str) -> "ComparisonJob":
        """Of a project that was opened."""
        return cls(project.text, project.source.resolve(), out.resolve(), seeds, methods)

    @property
    def about(self) -> Mapping[str, Any]:
        """Settings, files and seeds; systems can be added later."""
        settings = settings_of(self.text, self.source)
        return {
            "kind": "comparison",
            "settings": settings.model_dump(mode="json"),
            "data": files_mark(settings.paths(self.source.parent)),
            "seeds": self.seeds,
        }

    def open(self) -> Perform:
        """The project is opened once."""
        project = Project.open(self.source)
        if project.text != self.text:
            raise InputError(f"{self.source} was changed meanwhile. Repeat the command.")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            candidates = [*variants(project), *others(project, self.methods)]
        known = {(one.method, one.objective): one for one in candidates}

        def perform(task: Task) -> Outcome:
            part = task.payload["method"], task.payload["objective"]
            return self._scored(project, known[part])

        return perform

    def _scored(self, project: Project, candidate: Candidate) -> Outcome:
        """Fit from all seeds, keep every run, and hand on scores and what was said."""
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found = repeat(project, candidate, self.seeds)
        for run in found.runs:
            folder = run_folder(self.out, candidate.name, run.seed)
            keep_member(folder, run, project.kept_files)
        told = [str(one.message) for one in said if issubclass(one.category, InputNotice)]
        rows = found.scores.to_dict("records")
        return Outcome([{**{str(k): v for k, v in row.items()}, "said": told} for row in rows])


def compare_through(
    job: ComparisonJob,
    project: Project,
    candidates: Sequence[Candidate],
    executor: AbstractExecutor,
    devices: int,
    report: Report,
    *,
    resume: bool,
) -> pd.DataFrame:
    """`compare_into` with an engine: the same folder in the end."""
    with comparing(job.out, project, job.seeds, resume=resume) as scores:
        there = parts_of(scores)
        parts = [(one.method, one.objective) for one in candidates]
        tasks = [
            Task(SYSTEM, {"method": method, "objective": objective})
            for method, objective in parts
            if (method, objective) not in there
        ]
        with held(job.out / FOLDER, job, devices) as ledger:
            lost = execute(executor, job, tasks, ledger, report)
            rows = [row for task in tasks if task in ledger for row in ledger.outcome(task).rows]
        for line in dict.fromkeys(line for row in rows for line in row["said"]):
            notice(line)
        new = pd.DataFrame([{k: v for k, v in row.items() if k != "said"} for row in rows])
        parts = [one for one in (scores, new) if len(one)]
        table = pd.concat(parts, ignore_index=True) if parts else scores
        if len(table):
            write_whole(job.out / SCORES_FILE, table.to_csv(index=False))
    if lost:
        raise InputError(
            f"{len(lost)} systems could not be fitted. Repeat the command with --resume."
        )
    return table
