"""Which recordings a command uses with a run: those of a file, or those that its folder keeps."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from hybridsde._errors import InputError
from hybridsde._types import LossName, Reading
from hybridsde.certify import Certificate, ConformalBand
from hybridsde.data import Trajectories, read_table
from hybridsde.data.dates import Calendar
from hybridsde.forecast import Forecast, StateEstimate
from hybridsde.forecast.export import future_of
from hybridsde.forecast.inputs import kept_on
from hybridsde.project.project import (
    DATA,
    forecast_settings,
    judged_by,
    plain_scores,
    scaled_by_lead,
    split_of,
)
from hybridsde.project.settings import ForecastSettings
from hybridsde.project.settings_file import check_settings
from hybridsde.run import Run
from hybridsde.run.windows import forecast_windows
from hybridsde.store.certificates import keep_certificate
from hybridsde.store.metadata import Scores


def open_run(folder: Path, data: str | None, *, trust: bool) -> tuple[Run, Trajectories]:
    """A run, and recordings to use it on: those of a file, or those that it was not fitted to."""
    run = Run.load(folder, trust=trust)
    if run.metadata.settings is None:
        raise InputError(f"{folder} was saved from Python, without settings. Use it from Python.")
    if data is not None:
        settings = check_settings(dict(run.metadata.settings), str(folder))
        columns = replace(settings.columns, epoch=run.metadata.epoch)
        separator = settings.data.separator
        return run, read_table(data, columns, separator=separator, strict=False)
    kept = split_of(folder, run).test
    if kept is None:
        raise InputError(f"{folder} kept no recordings for a test. Name a file: --data.")
    return run, kept


def score_run(
    folder: Path, data: str | None, draws: int | None, *, trust: bool
) -> tuple[Scores, int]:
    """Scores of forecasts as the settings of a run ask for them, and of how many trajectories."""
    run, recordings = open_run(folder, data, trust=trust)
    if np.any(recordings.lengths < 2):
        raise InputError("A trajectory of one row has nothing to score. Remove it.")
    settings = forecast_settings(run)
    recordings = settings.cut(recordings, run.spec.context)
    table = run.score(recordings, draws=draws or settings.draws)
    return plain_scores(table, *_judged(folder, run, recordings)), len(recordings)


def _judged(folder: Path, run: Run, recordings: Trajectories) -> tuple[np.ndarray, np.ndarray]:
    """Spreads of what the run was fitted to, or of these recordings where it keeps none."""
    kept = (folder / DATA).exists()
    return judged_by(split_of(folder, run).train if kept else recordings, recordings)


def backtest_run(
    folder: Path,
    data: str | None,
    origins: int,
    horizon: int | None,
    draws: int | None,
    *,
    trust: bool,
) -> pd.DataFrame:
    """Scores by lead time of forecasts from rolling origins, all rows before them given."""
    run, recordings = open_run(folder, data, trust=trust)
    settings = forecast_settings(run)
    rows = horizon_of(settings, horizon)
    table = run.backtest(recordings, horizon=rows, origins=origins, draws=draws or settings.draws)
    return scaled_by_lead(table, *_judged(folder, run, recordings))


def horizon_of(settings: ForecastSettings, asked: int | None) -> int:
    """How many rows ahead a backtest looks: as asked for, or as the settings say."""
    rows = asked or settings.horizon
    if rows is None:
        raise InputError("Say how many rows ahead are scored: --horizon.")
    return rows


def states_run(
    folder: Path,
    data: str | None,
    draws: int | None,
    *,
    smooth: bool,
    estimator: Reading = "auto",
    trust: bool,
) -> tuple[StateEstimate, Calendar | None]:
    """Every state at every row of recordings, given all of them or those up to it."""
    run, recordings = open_run(folder, data, trust=trust)
    count = draws or forecast_settings(run).draws
    estimate = run.smooth if smooth else run.filter
    return estimate(recordings, estimator=estimator, draws=count), calendar_of(run)


def calendar_of(run: Run) -> Calendar | None:
    """What the times of a run stand for; None where they are numbers."""
    unit = (run.metadata.settings or {}).get("data", {}).get("unit")
    epoch = run.metadata.epoch
    return None if unit is None or epoch is None else Calendar(unit, epoch)


FIRST, LAST = "first", "last"


def forecast_run(
    folder: Path,
    data: str | None,
    steps: int | None,
    times: Path | None,
    draws: int | None,
    *,
    begin: str = LAST,
    estimator: Reading = "extended",
    hold_inputs: bool = False,
    trust: bool,
) -> tuple[Forecast, Calendar | None]:
    """Forecasts after the last measured row of recordings, or after their first rows.

    Inputs are those that the table holds; rows without values at its end are times to forecast.
    Where it ends before the forecast does, the last ones are kept if `hold_inputs` says so.
    """
    if begin not in (FIRST, LAST):
        raise InputError(f"A forecast begins at the {FIRST} or the {LAST} row, not {begin!r}.")
    run, recordings = open_run(folder, data, trust=trust)
    settings, context = forecast_settings(run), run.spec.context
    given = np.full(len(recordings), context) if begin == FIRST else recordings.told_rows
    if np.any(given < context) or np.any(recordings.lengths < given):
        raise InputError(f"A trajectory has fewer than {context} measured rows. Remove it.")
    interval = recordings.interval or split_of(folder, run).train.interval or 1.0
    clock = future_of(recordings, given - 1, steps, times, interval=interval)
    inputs = kept_on(recordings, clock) if hold_inputs else recordings
    count, shared = draws or settings.draws, settings.paths_per_weight
    found = run.forecast(
        recordings.cut([(n, 0, int(rows)) for n, rows in enumerate(given)]).named(recordings.ids),
        clock,
        inputs=inputs,
        draws=count,
        paths_per_weight=None if count % shared else shared,
        estimator=estimator,
    )
    return found, calendar_of(run)


@dataclass(frozen=True)
class Certification:
    """A run, trajectories to certify it on, and others to settle constants on."""

    folder: Path
    run: Run
    data: Trajectories
    reference: Trajectories | None

    @classmethod
    def open(
        cls, folder: Path, data: str | None, bound: str, windows: int | None, *, trust: bool
    ) -> "Certification":
        """Recordings of a file, or all of the run folder that a certificate may use.

        Where the settings name a horizon, the first so many rows of each count, unless they are
        cut into `windows` of so many rows ahead.
        """
        if data is None:
            run = Run.load(folder, trust=trust)
            recordings = run.certifiable(split_of(folder, run).whole, bound)
        else:
            run, recordings = open_run(folder, data, trust=trust)
        if np.any(recordings.lengths <= run.spec.context):
            raise InputError(
                "A trajectory ends with its start, so nothing can be forecast. Remove it."
            )
        settings, context = forecast_settings(run), run.spec.context
        if windows is None:
            recordings = settings.start(recordings, context)
        else:
            recordings = forecast_windows(recordings, windows, context)
        if run.metadata.reference is not None:
            return cls(folder, run, recordings, None)
        reference = None
        if (folder / DATA).exists():
            reference = settings.start(split_of(folder, run).train, context)
        return cls(folder, run, recordings, reference)

    def certify(self, *, loss: LossName, bound: str, **settings) -> tuple[Certificate, Path]:
        """A certificate, and where it is kept."""
        found = self.run.certify(
            self.data, loss=loss, bound=bound, reference=self.reference, **settings
        )
        name = bound if bound == "paper" else f"{loss}-{bound}"
        return found, keep_certificate(self.folder, name, found)

    def conformal(
        self, *, alpha: float, confidence: float | None, seed: int | None
    ) -> tuple[ConformalBand, Path]:
        """A band, and where it is kept; `confidence` is that over calibration sets."""
        delta = None if confidence is None else 1 - confidence
        found = self.run.conformal(self.data, alpha=alpha, delta=delta, seed=seed)
        return found, keep_certificate(self.folder, "conformal", found)
