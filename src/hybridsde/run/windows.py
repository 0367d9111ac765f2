"""Recordings in the windows that they are trained on, or forecast."""

from hybridsde.data import Trajectories
from hybridsde.fit import Training
from hybridsde.forecast import ModelSpec
from hybridsde.hybrid import HybridSDE

LONGEST_OF_ENSEMBLES = 2000
"""Rows of the windows that an ensemble is fitted to."""


def training_windows(
    model: ModelSpec, data: Trajectories, training: Training | None
) -> Trajectories:
    """Recordings as they are trained on: long ones in windows that follow each other.

    An ensemble takes much longer ones: what is not measured is then known from all rows before,
    and not anew at the beginning of every window.
    """
    chosen = training or Training()
    if not model.requirements.regular:
        data = data.told(model.clock.interpolation)
    if model.requirements.whole or chosen.windows is not None or chosen.longest is None:
        return data
    ensemble = isinstance(model, HybridSDE) and model.ensemble
    longest = LONGEST_OF_ENSEMBLES if ensemble else chosen.longest
    return data.windows(longest, longest - 1, least=model.context + 1)


def forecast_windows(data: Trajectories, horizon: int | None, context: int = 1) -> Trajectories:
    """Recordings as they are forecast: windows of so many rows after the given ones, or whole."""
    if horizon is None:
        return data
    return data.windows(context + horizon, horizon, least=context + 1)
