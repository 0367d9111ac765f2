"""Settings, recordings and a declared model, ready to be fitted."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hybridsde._errors import InputError
from hybridsde._files import make_folder, write_whole
from hybridsde.data import Trajectories
from hybridsde.fit import Callback, Training
from hybridsde.model import HybridSDE
from hybridsde.objective import AbstractObjective
from hybridsde.run.calibrate import calibrate
from hybridsde.run.division import Division, read_division
from hybridsde.run.fit_certified import certified
from hybridsde.run.fitting import fit
from hybridsde.run.folder import CHECKPOINT, RUN, UNFINISHED
from hybridsde.run.run import Run
from hybridsde.run.settings import ForecastSettings, Settings
from hybridsde.run.settings_file import read_settings
from hybridsde.simulate import Heun

DATA, SETTINGS = "data.csv", "settings.toml"
CERTIFIED_SPLIT = 104_729
"""Added to the seed for the division of the training recordings, so that it repeats no other."""


@dataclass(frozen=True)
class Project:
    """What a settings file describes, after everything in it was checked."""

    settings: Settings
    source: Path
    model: HybridSDE
    data: Trajectories
    division: Division

    @classmethod
    def open(cls, source: Path) -> "Project":
        """Read settings and data, and check them against each other."""
        settings = read_settings(source)
        shares = (settings.data.test, settings.data.validation)
        try:
            data = settings.read_data(source.parent)
            model = settings.build_model(source.parent, trust=True)
            model.check_training(data)
            division = Division.of(data, *shares, seed=settings.train.seed)
            model.check_training(division.train)
        except InputError:
            raise
        except ValueError as error:
            raise InputError(f"{source}: {error}") from None
        return cls(settings, source, model, data, division)

    @cached_property
    def prior_and_bound(self) -> tuple[Trajectories, Trajectories | None]:
        """The training recordings, and those of them that are set apart for a certificate."""
        fraction, data = self.settings.train.prior_fraction, self.division.train
        if fraction is None:
            return data, None
        if len(data) < 4:
            raise InputError(
                f"train.prior_fraction divides the training trajectories, but there are only "
                f"{len(data)}. Give more recordings, or leave it out."
            )
        return data.split(fraction, seed=self.settings.train.seed + CERTIFIED_SPLIT)

    @cached_property
    def pieces(self) -> Trajectories:
        """The training recordings as they are trained on."""
        return self.prior_and_bound[0].pieces(self.settings.train.piece)

    @cached_property
    def solver(self) -> Heun:
        """The scheme, with steps as short as the data ask for."""
        return self.settings.train.build_solver(self.model.batch(self.pieces))

    @cached_property
    def training(self) -> Training:
        """How long and how fast."""
        return self.settings.train.build_training(len(self.pieces))

    @property
    def objective(self) -> AbstractObjective:
        """The loss."""
        return self.settings.train.build_objective()

    @cached_property
    def validation(self) -> Trajectories | None:
        """The recordings that choose the epoch, cut like those for training."""
        kept = self.division.validation
        return None if kept is None else kept.pieces(self.settings.train.piece)

    @cached_property
    def test(self) -> Trajectories | None:
        """The held-out recordings, cut into pieces of the horizon that is asked for."""
        kept = self.division.test
        return None if kept is None else self.settings.forecast.cut(kept)

    def fit(self, checkpoint: Path | None = None, callbacks: Iterable[Callback] = ()) -> Run:
        """Train, or go on where a checkpoint stands."""
        run = fit(
            self.model,
            self.pieces,
            objective=self.objective,
            solver=self.solver,
            training=self.training,
            validation=self.validation,
            callbacks=callbacks,
            checkpoint=checkpoint,
            seed=self.settings.train.seed,
        )
        run = replace(run, facts={**run.facts, "settings": self.settings.model_dump()})
        run = run if self.held_out is None else calibrate(run, self.held_out)
        first, second = self.prior_and_bound
        if second is None:
            return run
        head = self.settings.forecast.head
        return certified(run, head(first), head(second), whole=second, callbacks=callbacks)

    @cached_property
    def held_out(self) -> Trajectories | None:
        """The recordings that spreads are calibrated on; None where none is learned."""
        kept = self.division.validation
        learned = "learn" in (self.settings.model.diffusion, self.settings.model.noise)
        return self.settings.forecast.cut(kept) if kept is not None and learned else None

    def fit_into(
        self, out: Path, *, resume: bool = False, callbacks: Iterable[Callback] = ()
    ) -> Run:
        """Train into a folder: settings, data, checkpoints on the way, and the finished run."""
        check_target(out, resume=resume)
        make_folder(out)
        write_whole(out / UNFINISHED, "This fit is under way, or was stopped: see --resume.\n")
        run = self.fit(out / CHECKPOINT, callbacks)
        write_whole(out / SETTINGS, self.source.read_bytes())
        write_whole(out / DATA, self.division.to_frame().to_csv(index=False))
        if self.test is not None:
            scores = run.score(self.test, draws=self.settings.forecast.draws)
            run = replace(run, facts={**run.facts, "test_scores": plain_scores(scores)})
        run.save(out)
        for name in (CHECKPOINT, UNFINISHED):
            (out / name).unlink(missing_ok=True)
        return run


def check_target(out: Path, *, resume: bool) -> None:
    """An `InputError` unless a fit may write into this folder."""
    if (out / RUN).exists():
        raise InputError(f"{out} holds a finished run. Choose another folder, or remove it.")
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file. Choose another name for the folder.")
    begun = (out / UNFINISHED).exists()
    if begun and not resume:
        raise InputError(
            f"{out} holds a fit that was not finished. Say --resume to go on, or choose another "
            "folder."
        )
    if out.is_dir() and not begun and any(out.iterdir()):
        raise InputError(f"{out} exists and is not empty. Choose another folder.")


def division_of(folder: Path, run: Run) -> Division:
    """The recordings that a run folder keeps, in their parts."""
    path = folder / DATA
    if not path.exists():
        raise InputError(f"{folder} keeps no recordings ({DATA} is missing). Name a file: --data.")
    observed = run.declared.observed
    names = tuple(run.declared.states if observed is None else observed)
    return read_division(path, names, tuple(run.declared.inputs))


def as_scored(run: Run, data: Trajectories) -> Trajectories:
    """Recordings cut into the horizon that the settings of a run ask for."""
    given = run.facts.get("settings", {}).get("forecast", {})
    return ForecastSettings.model_validate(given).cut(data)


def as_certified(run: Run, data: Trajectories) -> Trajectories:
    """The first rows of recordings, as many as the settings of a run forecast."""
    given = run.facts.get("settings", {}).get("forecast", {})
    return ForecastSettings.model_validate(given).head(data)


def plain_scores(scores: pd.DataFrame) -> dict[str, Any]:
    """Scores as JSON: overall, and per state."""
    rows = {
        str(name): {
            column: float(value) if np.isfinite(value) else None for column, value in row.items()
        }
        for name, row in scores.iterrows()
    }
    return {"overall": rows.pop("overall"), "states": rows}
