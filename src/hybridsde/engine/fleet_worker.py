"""Members of a fleet, fitted in groups, scored, and kept."""

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from hybridsde._errors import FitFailed
from hybridsde._parameters import Fixed
from hybridsde.data import Trajectories
from hybridsde.engine.member_folder import keep_member, member_folder
from hybridsde.engine.task import FAILURE, Outcome, Task
from hybridsde.hybrid import HybridSDE
from hybridsde.hybrid.declaration import LIBRARY
from hybridsde.hybrid.known_check import check_known
from hybridsde.hybrid.numerics import Numerics
from hybridsde.hybrid.parameters import parameters_of
from hybridsde.project.members import Recordings
from hybridsde.project.overrides import with_overrides
from hybridsde.project.project import Project, judged_by, plain_scores, settled_by
from hybridsde.project.settings import Settings, part_of
from hybridsde.project.split import Split
from hybridsde.run import Run, fit_each

START, MEMBERS = "start", "members"
"""Kinds of tasks: what all members share, and a group of them."""
SHOWN = ("rmse", "nll", "crps", "coverage90")


@dataclass(frozen=True)
class FleetWorker:
    """Does tasks of a fleet, and remembers the declaration that all of them share."""

    settings: Settings
    recordings: Recordings
    source: Path
    text: bytes
    out: Path
    common: bool
    models: dict[str, HybridSDE] = field(default_factory=dict)

    def perform(self, task: Task) -> Outcome:
        """A start, or a group of members."""
        if task.kind == START:
            return Outcome([self._start(task.payload["members"])])
        start, members = task.payload["start"], task.payload["members"]
        data = self.recordings.of([name for names in members.values() for name in names])
        model = self._model(start)
        found: dict[str, Project | dict[str, Any]] = {}
        for member, names in members.items():
            places = [data.ids.index(name) for name in names]
            found[member] = self._project(member, model, data.take(np.array(places)))
        return Outcome(list(_rows(self.out, found).values()))

    def _start(self, members: Mapping[str, Sequence[str]]) -> dict[str, Any]:
        """Steps of time and first parameters, by the first members together."""
        data = self.recordings.of([name for names in members.values() for name in names])
        model, split = self._declared(self.settings), _split(self.settings, data)
        model.check_training(split.train)
        check_known(model, split.train)
        model = settled_by(self.settings, model, split.train)
        parameters = _learned(model)
        if self.common:
            run = self._as_project(model, data, split).fit()
            found = run.metadata.parameters or {}
            parameters = {name: finite(one["value"]) for name, one in found.items()}
        numerics = {**asdict(model.numerics), "origin": None}
        return {"numerics": numerics, "parameters": parameters}

    def _as_project(self, model: HybridSDE, data: Trajectories, split: Split) -> Project:
        return Project(self.settings, self.source, self.text, model, data, split)

    def _declared(self, settings: Settings) -> HybridSDE:
        """One kind of model for all members, so that they can be compared."""
        model = settings.build_model(self.source.parent, trust=True)
        return replace(model, learned=LIBRARY) if model.undecided else model

    def _model(self, start: Mapping[str, Any]) -> HybridSDE:
        """The declaration that all members begin with: one object, so one compiled program."""
        key = repr(start)
        if key not in self.models:
            named = {f"physics.parameters.{n}.value": v for n, v in start["parameters"].items()}
            model = self._declared(with_overrides(self.settings, named, str(self.source)))
            self.models[key] = replace(model, numerics=Numerics.of(start["numerics"]))
        return self.models[key]

    def _project(
        self, member: str, model: HybridSDE, data: Trajectories
    ) -> Project | dict[str, Any]:
        """The member as a project of its own, or a row that says why it is none."""
        try:
            split = _split(self.settings, data)
            model.check_training(split.train)
            return self._as_project(model, data, split)
        except ValueError as error:
            return {"member": member, FAILURE: str(error)}


def _learned(model: HybridSDE) -> dict[str, float]:
    """Where learned physical parameters begin."""
    found = parameters_of(model.physics)
    return {n: float(one.value) for n, one in found.items() if not isinstance(one, Fixed)}


def _split(settings: Settings, data: Trajectories) -> Split:
    parts = (part_of(settings.data.test), part_of(settings.data.validation))
    return Split.of(data, parts[0] or 0, parts[1], seed=settings.train.seed)


def _rows(out: Path, found: Mapping[str, Project | dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Fit what can be fitted, keep every run, and say in a row what came of each member."""
    projects = {name: one for name, one in found.items() if isinstance(one, Project)}
    rows = {name: one for name, one in found.items() if isinstance(one, dict)}
    groups: dict[Any, list[str]] = {}
    for name, project in projects.items():
        groups.setdefault(project.training, []).append(name)
    for names in groups.values():
        for name, run in _fitted({name: projects[name] for name in names}).items():
            if isinstance(run, Run):
                rows[name] = _kept(out, name, projects[name], run)
            else:
                rows[name] = {"member": name, FAILURE: run}
    return {name: rows[name] for name in found}


def _fitted(projects: Mapping[str, Project]) -> dict[str, Run | str]:
    """All at once; where that fails one by one, so that none takes others with it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return dict(zip(projects, _together(list(projects.values())), strict=True))
        except (FitFailed, ValueError) as error:
            if len(projects) == 1:
                return dict.fromkeys(projects, str(error))
    found: dict[str, Run | str] = {}
    for name, project in projects.items():
        found |= _fitted({name: project})
    return found


def _together(projects: list[Project]) -> list[Run]:
    first = projects[0]
    return fit_each(
        first.model,
        [project.split.train for project in projects],
        seeds=[first.settings.train.seed] * len(projects),
        objective=first.objective,
        training=first.training,
        validations=[project.split.validation for project in projects],
        horizon=first.settings.forecast.horizon,
    )


def _kept(out: Path, name: str, project: Project, run: Run) -> dict[str, Any]:
    """Score a run on the held-out part of its member, save it, and sum it up in a row."""
    settings = project.settings.model_dump()
    run = replace(run, metadata=replace(run.metadata, settings=settings))
    if project.test is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            table = run.score(project.test, draws=project.settings.forecast.draws)
        scores = plain_scores(table, *judged_by(project.split.train, project.test))
        run = replace(run, metadata=replace(run.metadata, test_scores=scores))
    folder = keep_member(member_folder(out, name), run, project.kept_files)
    scores = {} if run.metadata.test_scores is None else run.metadata.test_scores.overall
    return {
        "member": name,
        FAILURE: None,
        "trajectories": len(project.data),
        "rows": int(project.data.lengths.sum()),
        **{score: scores.get(score) for score in SHOWN},
        "parameters": run.metadata.parameters or {},
        "terms": _terms(run, project.split.train),
        "diverged": run.diverged,
        "folder": str(folder.relative_to(out)),
    }


def _terms(run: Run, train: Trajectories) -> str | None:
    """The equations of a library, as text."""
    spec = run.spec
    if not (isinstance(spec, HybridSDE) and spec.linear and not run.diverged):
        return None
    return "; ".join(run.equations(train).equations())


def finite(value: Any) -> float:
    """A number of a row; NaN where there is none."""
    return math.nan if value is None else float(value)
