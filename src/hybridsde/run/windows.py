"""Recordings in the windows that they are trained on, or forecast."""

from dataclasses import replace

import numpy as np

from hybridsde._types import Bool
from hybridsde.data import Batch, Trajectories
from hybridsde.fit import Training
from hybridsde.forecast import ModelSpec
from hybridsde.hybrid import HybridSDE

LONGEST_OF_ENSEMBLES = 2000
"""Rows of the windows that an ensemble is fitted to."""
MARKED = 0.5
"""Rows that are set apart are marked by one, others by zero."""


def training_windows(
    model: ModelSpec, data: Trajectories, training: Training | None
) -> Trajectories:
    """Recordings as they are trained on: long ones in windows that follow each other.

    An ensemble takes much longer ones, and a library whole recordings where states are not
    measured: what is not measured is then known from all rows before, and not anew at the beginning
    of every window.
    """
    data, longest = _uncut(model, data, training)
    return data if longest is None else data.cut(_cuts(model, data, longest))


def training_batch(
    model: ModelSpec,
    data: Trajectories,
    training: Training | None,
    apart: Bool[np.ndarray, "series time"] | None = None,
) -> Batch:
    """The same as a program sees them, with what was recorded before each window.

    That are as many rows as a window has. Networks that are trained through a filter begin where
    these rows have led; see `Batch.entry`. Rows that are set `apart` have no values, in arrays of
    the same shapes, so that the same program can be trained on all rows afterwards.
    """
    batch = _with_past(model, *_uncut(model, data, training))
    if apart is None:
        return batch
    marks = np.broadcast_to(apart[..., None], data.values.shape).astype(float)
    marked = _with_past(model, *_uncut(model, replace(data, values=marks), training), encoded=False)

    def less(batch: Batch, marked: Batch) -> Batch:
        return replace(batch, observed=batch.observed & (marked.values < MARKED))

    found = less(batch, marked)
    if batch.past is None or marked.past is None:
        return found
    return replace(found, past=less(batch.past, marked.past))


def _with_past(
    model: ModelSpec, data: Trajectories, longest: int | None, *, encoded: bool = True
) -> Batch:
    """Recordings in windows, and the rows before each."""

    def batch_of(data: Trajectories) -> Batch:
        return model.batch(data) if encoded else Batch.of(data)

    if longest is None:
        return batch_of(data)
    cuts = _cuts(model, data, longest)
    batch = batch_of(data.cut(cuts))
    entered = isinstance(model, HybridSDE) and model.latent is None and not model.linear
    if not entered or len(cuts) == len(data):
        return batch
    before = [(series, max(0, first + 1 - longest), first + 1) for series, first, _ in cuts]
    return replace(batch, past=batch_of(data.cut(before)))


def _uncut(
    model: ModelSpec, data: Trajectories, training: Training | None
) -> tuple[Trajectories, int | None]:
    """Rows that say something, and how many of them a window has; None for whole recordings."""
    chosen = training or Training()
    if not model.requirements.regular:
        data = data.told(model.clock.interpolation)
    if model.requirements.whole or chosen.windows is not None or chosen.longest is None:
        return data, None
    if isinstance(model, HybridSDE) and model.hidden_states and (model.linear or model.complete):
        return data, None
    ensemble = isinstance(model, HybridSDE) and model.ensemble
    return data, LONGEST_OF_ENSEMBLES if ensemble else chosen.longest


def _cuts(model: ModelSpec, data: Trajectories, longest: int) -> list[tuple[int, int, int]]:
    return data.cuts(longest, longest - 1, least=model.context + 1)


def forecast_windows(data: Trajectories, horizon: int | None, context: int = 1) -> Trajectories:
    """Recordings as they are forecast: windows of so many rows after the given ones, or whole."""
    if horizon is None:
        return data
    return data.windows(context + horizon, horizon, least=context + 1)
