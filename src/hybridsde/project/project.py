"""Settings, recordings and a declared model, ready to be fitted."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from hybridsde._errors import FitFailed, InputError
from hybridsde._files import make_folder, remove_partial, write_whole
from hybridsde._memory import check_memory
from hybridsde._types import Bool, Float
from hybridsde.data import Batch, Trajectories
from hybridsde.fit import Callback, Training
from hybridsde.hybrid import HybridSDE
from hybridsde.hybrid.known_check import check_known
from hybridsde.objective import AbstractSDEObjective
from hybridsde.project.floor import BRIEFLY, floor_loss, floor_model
from hybridsde.project.settings import ForecastSettings, Settings, part_of
from hybridsde.project.settings_file import settings_bytes, settings_of
from hybridsde.project.split import Split, read_split
from hybridsde.run import Run, certified, fit
from hybridsde.run.choice import measured_in, scaled, spread_of
from hybridsde.run.windows import training_windows
from hybridsde.store.folder import (
    CHECKPOINT,
    RUN,
    TRIAL_CHECKPOINT,
    UNFINISHED,
    kept_file,
    save_run,
)
from hybridsde.store.lock import is_unused, locked
from hybridsde.store.metadata import SCALED, SCALED_SCORES, Scores
from hybridsde.store.spec_io import PHYSICS_FILE, physics_source, write_spec

DATA, SETTINGS = "data.csv", "settings.toml"
CERTIFIED_SPLIT = 104_729
"""Added to the seed for the division of the training recordings, so that it repeats no other."""


@dataclass(frozen=True)
class Project:
    """What a settings file describes, after everything in it was checked."""

    settings: Settings
    source: Path
    text: bytes
    """The settings file as it was read."""
    model: HybridSDE
    data: Trajectories
    split: Split

    @classmethod
    def open(cls, source: str | Path) -> "Project":
        """Read settings and data, and check them against each other."""
        source = Path(source)
        text = settings_bytes(source)
        settings = settings_of(text, source)
        parts = (part_of(settings.data.test) or 0, part_of(settings.data.validation))
        try:
            data = settings.read_data(source.parent)
            model = settings.build_model(source.parent, trust=True)
            model.check_training(data)
            choice = not model.complete
            split = Split.of(data, *parts, seed=settings.train.seed, chooses=choice)
            model.check_training(split.train)
            check_known(model, split.train)
            _check_scorable(split.test)
            model = settled_by(settings, model, split.train)
            write_spec(model)  # what cannot be saved is said before a fit
            if settings.floor is not None:
                floor_model(settings.floor, model)  # mistakes are told before a fit
        except InputError:
            raise
        except ValueError as error:
            raise InputError(f"{source}: {error}") from None
        project = cls(settings, source, text, model, data, split)
        project._check_room()
        return project

    @cached_property
    def prior_and_bound(self) -> tuple[Trajectories, Trajectories | None]:
        """The training recordings, and those of them that are set apart for a certificate."""
        fraction, data = self.settings.train.prior_fraction, self.split.train
        if fraction is None:
            return data, None
        if len(data) < 4:
            raise InputError(
                f"train.prior_fraction divides the training trajectories, but there are only "
                f"{len(data)}. Give more recordings, or leave it out."
            )
        return data.split(fraction, seed=self.settings.train.seed + CERTIFIED_SPLIT)

    @cached_property
    def pieces(self) -> Batch:
        """The training recordings as they are trained on."""
        longest = Training(longest=self.settings.train.piece)
        return self.model.batch(training_windows(self.model, self.prior_and_bound[0], longest))

    @cached_property
    def training(self) -> Training:
        """How long and how fast."""
        return self.settings.build_training(self.pieces.count)

    @cached_property
    def objective(self) -> AbstractSDEObjective | None:
        """The loss, with its scheme; None where it is left to the fit."""
        return self.settings.build_objective(self.model)

    @cached_property
    def test(self) -> Trajectories | None:
        """The held-out recordings, cut into windows of the horizon that is asked for."""
        kept = self.split.test
        return None if kept is None else self.settings.forecast.cut(kept)

    @cached_property
    def kept_files(self) -> dict[str, bytes]:
        """What a run folder holds of the project: the settings, and the recordings in parts."""
        return {SETTINGS: self.text, DATA: self.split.to_frame().to_csv(index=False).encode()}

    def _check_room(self) -> None:
        """An `InputError` where the settings ask for more memory than there is."""
        train, model, columns = self.settings.train, self.model, len(self.model.states)
        if model.networks and not model.undecided:
            series = min(train.batch_size, self.pieces.count) * (train.samples or model.samples)
            widths = sum(model.hidden or ()) + columns
            check_memory(
                float(series) * self.pieces.solver_steps(1) * widths,
                "A gradient step",
                "Ask for smaller networks, fewer samples, a smaller batch or shorter pieces.",
            )
        if self.test is not None:
            check_memory(
                float(self.settings.forecast.draws) * self.test.times.size * columns,
                f"Scores of {self.settings.forecast.draws} draws",
                "Ask for fewer: forecast.draws.",
            )

    def fit(self, checkpoint: Path | None = None, callbacks: Iterable[Callback] = ()) -> Run:
        """Train, or go on where a checkpoint stands."""
        first, second = self.prior_and_bound
        run = fit(
            self.model,
            first,
            objective=self.objective,
            training=self.training,
            langevin=self.settings.train.langevin,
            validation=self.split.validation,
            horizon=self.settings.forecast.horizon,
            callbacks=callbacks,
            checkpoint=checkpoint,
            progress=False,
            seed=self.settings.train.seed,
        )
        if second is not None:
            start = self.settings.forecast.start
            run = certified(run, start(first), start(second), whole=second, callbacks=callbacks)
        settings = self.settings.model_dump()
        return replace(run, metadata=replace(run.metadata, settings=settings))

    def fit_into(
        self, out: Path, *, resume: bool = False, callbacks: Iterable[Callback] = ()
    ) -> Run:
        """Train into a folder: settings, data, checkpoints on the way, and the finished run.

        The folder is held meanwhile. A fit that was killed after its run was complete is only
        tidied up.
        """
        check_target(out, resume=resume)
        make_folder(out)
        with locked(out):
            check_target(out, resume=resume)  # somebody may have used it a moment ago
            remove_partial(out)
            if (out / RUN).exists():
                self._check_own(out)
                run = Run.load(out, trust=True)
            else:
                mark = "This fit is under way, or was stopped: see --resume.\n"
                write_whole(out / UNFINISHED, mark)
                try:
                    run = self._scored(self.fit(out / CHECKPOINT, callbacks))
                except FitFailed:  # nothing to go on from: the folder is free for another fit
                    _tidy(out)
                    raise
                save_run(out, run.stored, self.kept_files)
            _tidy(out)
        return run

    def fit_beside(self) -> None:
        """Take part in a fit that another process writes down; see `join_processes`."""
        self._scored(self.fit())

    def _check_own(self, out: Path) -> None:
        """An `InputError` unless the finished run of a folder is that of this project."""
        source = physics_source(self.model)
        kept = dict(self.kept_files)
        if source is not None or (out / PHYSICS_FILE).exists():
            kept[PHYSICS_FILE] = b"" if source is None else source.read_bytes()
        if any(kept_file(out, name) != content for name, content in kept.items()):
            raise InputError(f"{out} holds a run of other settings or data. Choose another folder.")

    def _scored(self, run: Run) -> Run:
        if self.test is None:
            return run
        table = run.score(self.test, draws=self.settings.forecast.draws)
        scores = plain_scores(table, *judged_by(self.split.train, self.test))
        known = replace(run.metadata, test_scores=scores, floor=self._floor())
        return replace(run, metadata=known)

    def _floor(self) -> Scores | None:
        """What the true equations score, where the settings of simulated data name them."""
        truth = self.settings.floor
        if truth is None or self.test is None:
            return None
        model = floor_model(truth, self.model)
        seed = self.settings.train.seed
        loss = floor_loss(model)
        run = fit(
            model, self.split.train, objective=loss, training=BRIEFLY, progress=False, seed=seed
        )
        table = run.score(self.test, draws=self.settings.forecast.draws)
        return plain_scores(table, *judged_by(self.split.train, self.test))


def _tidy(out: Path) -> None:
    """Remove what is there only while a fit is under way."""
    for name in (CHECKPOINT, f"{CHECKPOINT}{TRIAL_CHECKPOINT}", UNFINISHED):
        (out / name).unlink(missing_ok=True)


def settled_by(settings: Settings, model: HybridSDE, train: Trajectories) -> HybridSDE:
    """The model with the steps that settings ask for; those of the published method follow rows."""
    return model if settings.published else settled(model, train, settings.train.substeps)


def settled(model: HybridSDE, train: Trajectories, substeps: int | None) -> HybridSDE:
    """The model with steps that suit the data, unless their number in an interval is given."""
    if substeps is not None:
        step = (train.told().interval or 1.0) / substeps
        model = replace(model, numerics=replace(model.numerics, step=step, why="train.substeps"))
    return model.settled(train)


def check_target(out: Path, *, resume: bool) -> None:
    """An `InputError` unless a fit may write into this folder."""
    begun = (out / UNFINISHED).exists()
    if (out / RUN).exists() and not (begun and resume):
        raise InputError(f"{out} holds a finished run. Choose another folder, or remove it.")
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file. Choose another name for the folder.")
    if begun and not resume:
        raise InputError(
            f"{out} holds a fit that was not finished. Say --resume to go on, or choose another "
            "folder."
        )
    if not begun and not is_unused(out):
        raise InputError(f"{out} exists and is not empty. Choose another folder.")


def _check_scorable(test: Trajectories | None) -> None:
    if test is not None and not test.observed[:, 1:].any():
        raise InputError(
            f"The held-out trajectories ({', '.join(test.ids[:6])}) hold no value after their "
            "first row, so there is nothing to score. Hold out others: data.test."
        )


def scores_in_spreads(
    scores: pd.DataFrame,
    spread: Float[np.ndarray, " obs"],
    measured: Bool[np.ndarray, " obs"],
) -> dict[str, float]:
    """Overall errors in spreads of the data, each observation counting alike; where there are
    several.
    """
    each = scores.drop(index="overall")
    if len(each) == 1:
        return {}
    return {
        f"{name}{SCALED}": scaled(each[name].to_numpy(float), spread, measured)
        for name in ("rmse", "crps")
    }


def plain_scores(
    scores: pd.DataFrame,
    spread: Float[np.ndarray, " obs"],
    measured: Bool[np.ndarray, " obs"],
) -> Scores:
    """Scores as a run remembers them."""
    rows = {
        str(name): {
            str(column): float(value) if np.isfinite(value) else None
            for column, value in row.items()
        }
        for name, row in scores.iterrows()
    }
    common = scores_in_spreads(scores, spread, measured)
    overall = rows.pop("overall") | {n: x if np.isfinite(x) else None for n, x in common.items()}
    return Scores(overall, rows)


def scaled_by_lead(
    table: pd.DataFrame,
    spread: Float[np.ndarray, " obs"],
    measured: Bool[np.ndarray, " obs"],
) -> pd.DataFrame:
    """Scores by lead time, with the errors of all observations together in spreads too."""
    if len(spread) == 1:
        return table
    together = {
        lead: scores_in_spreads(rows.set_index("obs"), spread, measured)
        for lead, rows in table.groupby("lead")
    }
    rows = list(zip(table["lead"], table["obs"], strict=True))
    found = {
        score: [together[lead][score] if name == "overall" else np.nan for lead, name in rows]
        for score in SCALED_SCORES
    }
    return table.assign(**found)


def judged_by(train: Trajectories, test: Trajectories) -> tuple[np.ndarray, np.ndarray]:
    """The spread of every observation, and which of them have values to score."""
    return spread_of([train]), measured_in(test)


def forecast_settings(run: Run) -> ForecastSettings:
    """How a run was asked to forecast, by its settings or by default."""
    return ForecastSettings.model_validate((run.metadata.settings or {}).get("forecast", {}))


def split_of(folder: Path, run: Run) -> Split:
    """The recordings that a run folder keeps, in their parts."""
    path = folder / DATA
    if not path.exists():
        raise InputError(f"{folder} keeps no recordings ({DATA} is missing). Name a file: --data.")
    content = kept_file(folder, DATA)
    return read_split(content, path, run.spec.observations, tuple(run.spec.inputs))
