"""What the learned part is made of, where that is left to the data: a library, or networks."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hybridsde._errors import InputNotice, notice
from hybridsde._types import Bool, Float
from hybridsde.data import Batch, Trajectories
from hybridsde.forecast.diagnostics import diagnose
from hybridsde.hybrid import HybridSDE, SDEForecaster
from hybridsde.hybrid.sparse import about_fitted, row_innovations
from hybridsde.run.run import Run

DOUBT = 1e-3
"""Errors that would be as little like white noise with a smaller probability are a doubt,"""
RELATED = 0.15
"""where neighbours are correlated more than this. Where the one is high and the next low, noise is
taken for motion, which another drift would not mend."""
SHARE = 0.75
"""Of the training data; the rest is set apart to judge on, where there are no validation data."""
LEAST_ROWS = 40
"""A single recording with fewer is not divided."""
CLEARLY = 0.8
"""Forecasts without the known equations are clearly better from this share of the CRPS on."""


def doubt_about(run: Run, batch: Batch) -> str | None:
    """Why a library may not be enough; None where nothing speaks against it."""
    spec, forecaster = run.spec, run.forecaster
    assert isinstance(spec, HybridSDE)
    assert isinstance(forecaster, SDEForecaster)
    if spec.hidden_states:
        return "some states are not measured"
    _, about, _, _ = about_fitted(forecaster.model, forecaster.solver, batch)
    for one in diagnose(row_innovations(about), spec.observations):
        near = float(one.correlation[0])
        if one.white_probability < DOUBT and near > RELATED:
            return f"its errors in {one.name} hang together ({near:+.2f} from row to row)"
    return None


def scaled_crps(run: Run, windows: Trajectories) -> float:
    """The CRPS of forecasts in spreads of the data, averaged over observations; quietly."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputNotice)  # it may not be the one that is kept
        found = run.score(windows)
    return scaled(found["crps"].to_numpy(float)[:-1], spread_of([windows]), measured_in(windows))


def scaled(
    scores: Float[np.ndarray, " obs"],
    spread: Float[np.ndarray, " obs"],
    measured: Bool[np.ndarray, " obs"],
) -> float:
    """The mean over observations in units of their spread; of those that were measured.

    One that was measured and has no score makes the whole no number.
    """
    return float(np.mean((scores / spread)[measured])) if measured.any() else float("nan")


def measured_in(windows: Trajectories) -> Bool[np.ndarray, " obs"]:
    """Which observations have values after the first row."""
    return np.asarray(windows.observed[:, 1:].any((0, 1)))


def spread_of(parts: Sequence[Trajectories]) -> Float[np.ndarray, " obs"]:
    """The standard deviation of every observation over all parts; one where it never moves."""
    values = [
        np.where(one.observed, one.values, np.nan).reshape(-1, len(one.states)) for one in parts
    ]
    found = np.nanstd(np.concatenate(values), 0)
    return np.where(found > 0, found, 1.0)


def say_contradiction(run: Run, without: Run, windows: Trajectories) -> None:
    """A notice where the known equations are a hindrance: forecasts are better without them."""
    scores = scaled_crps(run, windows), scaled_crps(without, windows)
    if not scores[1] < CLEARLY * scores[0]:
        return
    notice(
        "The known equations contradict these data: a library of terms without them forecasts the "
        f"validation recordings better (CRPS {scores[1]:.3g} against {scores[0]:.3g}, in spreads "
        "of the data). Check equations, parameters and units, or leave an equation out."
    )


@dataclass(frozen=True)
class Apart:
    """A part of the training data to judge on."""

    recordings: Trajectories
    rows: Bool[np.ndarray, "series time"]
    """Which rows of the training data they are."""


def set_apart(data: Trajectories, seed: int) -> Apart | None:
    """A part of the training data, where there are no others to judge on; None where too few.

    A quarter of the recordings, or the last quarter of a single one.
    """
    rows = np.zeros(data.times.shape, bool)
    if len(set(data.origins)) > 1:
        judged = data.split(SHARE, seed=seed)[1]
        rows[np.isin(data.origins, judged.origins)] = True
        return Apart(judged, rows)
    count = int(data.lengths[0])
    if len(data) > 1 or count < LEAST_ROWS:
        return None
    at = round(SHARE * count)
    rows[0, at:] = True
    return Apart(data.cut([(0, at, count)]), rows)


def better_of(library: Run, network: Run, windows: Trajectories, doubt: str, which: str) -> Run:
    """The one with the smaller CRPS on forecasts of recordings, many rows ahead.

    `which` says what recordings these are, for the sentence why.
    """
    scores = [scaled_crps(run, windows) for run in (library, network)]
    names = ("library", "networks")
    best = int(np.argmin(np.nan_to_num(scores, nan=np.inf)))  # no number is no forecast
    return with_choice(
        (library, network)[best],
        f"{names[best]}: since {doubt}, both were fitted, and the {names[best]} forecast {which} "
        f"better (CRPS {scores[best]:.3g} against {scores[1 - best]:.3g} of the "
        f"{names[1 - best]}, in spreads of the data).",
    )


def with_choice(run: Run, why: str) -> Run:
    """A run that says why its learned part is what it is."""
    return replace(run, metadata=replace(run.metadata, choice=why))
