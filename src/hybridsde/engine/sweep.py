"""Trials of a sweep: the same recordings under other settings, scored on validation alone."""

import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hybridsde._errors import FitFailed
from hybridsde.engine.judging import Fold, blocks_in, folds_of, row_losses, units_of
from hybridsde.engine.search import AbstractSearch, search_of
from hybridsde.engine.space import AbstractAxis, axes_of
from hybridsde.engine.task import FAILURE, AbstractJob, Outcome, Perform, Task
from hybridsde.hybrid import HybridSDE
from hybridsde.hybrid.known_check import check_known
from hybridsde.project.fingerprint import files_mark
from hybridsde.project.overrides import with_overrides
from hybridsde.project.project import Project, settled_by
from hybridsde.project.settings import Settings
from hybridsde.project.settings_file import settings_bytes, settings_of
from hybridsde.project.split import Split
from hybridsde.run import Run, fit, fit_many
from hybridsde.run.choice import spread_of
from hybridsde.run.windows import forecast_windows
from hybridsde.store.spec_io import write_spec

TRIAL = "trial"
SHOWN = ("rmse", "nll", "coverage90")
"""Scores beside the one that decides."""


@dataclass(frozen=True)
class SweepJob(AbstractJob):
    """A settings file, what is tried for some of them, and how."""

    text: bytes
    source: Path
    trials: int | None = None
    search: str = "random"
    seeds: int = 1
    rungs: int = 3

    @classmethod
    def read(cls, source: Path, **options: Any) -> "SweepJob":
        """From a settings file with a table [sweep]."""
        found = cls(settings_bytes(source), source.resolve(), **options)
        for axis in found.axes:  # a name or a value that no setting takes is said at once
            for value in (axis.at(0.0), axis.at(0.999)):
                with_overrides(found.settings, {axis.name: value}, f"{source}, [sweep]")
        return found

    @property
    def settings(self) -> Settings:
        """What the file says, without the sweep."""
        whole = settings_of(self.text, self.source)
        return whole.model_copy(update={"sweep": {}})

    @property
    def axes(self) -> tuple[AbstractAxis, ...]:
        """What is tried."""
        return axes_of(settings_of(self.text, self.source).sweep, str(self.source))

    def new_search(self) -> AbstractSearch:
        """At its beginning."""
        return search_of(self.search, self.axes, self.trials, self.settings.train.seed)

    @property
    def about(self) -> Mapping[str, Any]:
        """Settings, files and search."""
        return {
            "kind": "sweep",
            "settings": settings_of(self.text, self.source).model_dump(mode="json"),
            "data": files_mark(self.settings.paths(self.source.parent)),
            "trials": self.trials,
            "search": self.search,
            "seeds": self.seeds,
            "rungs": self.rungs,
        }

    def task(self, changes: Mapping[str, Any], share: float) -> Task:
        """One trial, trained for a share of its epochs on every fold, all seeds as one program."""
        return Task(TRIAL, {"settings": dict(changes), "share": share, "seeds": self.seeds})

    def open(self) -> Perform:
        """The recordings are read and divided once; what was kept for the test is let go."""
        settings = self.settings
        data = settings.read_data(self.source.parent)
        return _Worker(self, settings, folds_of(settings, data)).perform


class _Worker:
    """Does trials, and remembers models that others share."""

    def __init__(self, job: SweepJob, settings: Settings, folds: Sequence[Fold]):
        self._job, self._settings, self._folds = job, settings, folds
        self._spread = spread_of([fold.scored for fold in folds])
        self._settled: dict[str, HybridSDE] = {}

    def perform(self, task: Task) -> Outcome:
        """One trial: a row per fold and seed, or one that says why there is none."""
        changes, share = task.payload["settings"], float(task.payload["share"])
        seeds = int(task.payload["seeds"])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                settings = with_overrides(self._settings, changes, "[sweep]")
                rows = [self._scored(settings, n, share, seeds) for n in range(len(self._folds))]
                return Outcome([row for fold in rows for row in fold])
            except (FitFailed, ValueError) as error:
                return Outcome([{FAILURE: str(error)}])

    def _project(self, settings: Settings, number: int) -> Project:
        """A fold of the trial as a project that knows no test recordings."""
        job, fold = self._job, self._folds[number]
        model = settings.build_model(job.source.parent, trust=True)
        key = json.dumps([number, write_spec(model), settings.train.substeps], sort_keys=True)
        if key not in self._settled:
            model.check_training(fold.train)
            check_known(model, fold.train)
            self._settled[key] = settled_by(settings, model, fold.train)
        split = Split(fold.train, fold.validation, None)
        return Project(settings, job.source, job.text, self._settled[key], fold.train, split)

    def _scored(
        self, settings: Settings, number: int, share: float, seeds: int
    ) -> list[dict[str, Any]]:
        project = self._project(settings, number)
        closed = project.objective is None and (project.model.undecided or project.model.scored)
        runs = _fits(project, 1.0 if closed else share, seeds)
        horizon, context = settings.forecast.horizon, project.model.context
        windows = forecast_windows(self._folds[number].scored, horizon, context)
        blocks = blocks_in(self._folds)
        rows = []
        for run in runs:
            table, crps = run.score_values(windows, draws=settings.forecast.draws)
            losses = row_losses(crps, windows.observed[:, context:], self._spread)
            units = units_of(losses, windows.origins, number, blocks)
            finite = bool(np.isfinite(list(units.values())).all())
            rows.append(
                {
                    FAILURE: None if finite else "its forecasts are not numbers",
                    "fold": number,
                    "seed": run.seed,
                    "whole": closed or share == 1,
                    "units": units if finite else {},
                    **{name: _plain(table.loc["overall", name]) for name in SHOWN},
                    "epochs": len(run.history),
                    "diverged": run.diverged,
                }
            )
        return rows


def _fits(project: Project, share: float, seeds: int) -> list[Run]:
    """From several seeds: as one program where it is decided what is learned."""
    train = project.settings.train
    numbers = [train.seed + number for number in range(seeds)]
    training = project.training
    shorter = replace(training, epochs=max(1, round(share * training.epochs)))
    same: dict[str, Any] = {
        "objective": project.objective,
        "training": shorter,
        "validation": project.split.validation,
        "horizon": project.settings.forecast.horizon,
    }
    if project.model.undecided or train.langevin is not None:
        more = {**same, "langevin": train.langevin}
        return [
            fit(project.model, project.data, seed=seed, progress=False, **more) for seed in numbers
        ]
    return fit_many(project.model, project.data, seeds=numbers, **same)


def _plain(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None
