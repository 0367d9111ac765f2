"""What the learned part is made of, where that is left to the data: a library, or networks."""

from dataclasses import replace

import numpy as np

from hybridsde.data import Batch, Trajectories
from hybridsde.forecast.diagnostics import diagnose
from hybridsde.hybrid import HybridSDE, SDEForecaster
from hybridsde.hybrid.sparse import about_fitted, row_innovations
from hybridsde.run.run import Run

DOUBT = 1e-3
"""Errors that would be as little like white noise with a smaller probability are a doubt,"""
RELATED = 0.15
"""where neighbours are correlated more than this."""


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
        if one.white_probability < DOUBT and abs(near) > RELATED:
            return f"its errors in {one.name} hang together ({near:+.2f} from row to row)"
    return None


def better_of(library: Run, network: Run, windows: Trajectories, doubt: str) -> Run:
    """The one with the smaller CRPS on forecasts of recordings that neither was trained on."""
    spread = np.nanstd(np.where(windows.observed, windows.values, np.nan), (0, 1))
    spread = np.where(spread > 0, spread, 1.0)
    scores = [
        float(np.mean(run.score(windows)["crps"].iloc[:-1] / spread)) for run in (library, network)
    ]
    names = ("library", "networks")
    best = int(scores[1] < scores[0])
    return with_choice(
        (library, network)[best],
        f"{names[best]}: since {doubt}, both were fitted, and the {names[best]} forecast the "
        f"validation data better (CRPS {scores[best]:.3g} against {scores[1 - best]:.3g} of the "
        f"{names[1 - best]}, in spreads of the data).",
    )


def with_choice(run: Run, why: str) -> Run:
    """A run that says why its learned part is what it is."""
    return replace(run, metadata=replace(run.metadata, choice=why))
