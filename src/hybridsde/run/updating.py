"""What further recordings make of a run: its posterior is their prior."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from hybridsde._errors import FitFailed, InputError
from hybridsde._types import PRNGKeyArray
from hybridsde.data import Trajectories
from hybridsde.fit import Callback, Training
from hybridsde.forecast import AbstractForecaster, ModelSpec
from hybridsde.hybrid import HybridSDE, SDEForecaster
from hybridsde.hybrid.update import update_library, update_networks
from hybridsde.model import BayesianMLP, MixtureMLP
from hybridsde.model.library import BayesianLibrary
from hybridsde.run.windows import training_batch
from hybridsde.store.metadata import RunMetadata

RATE = 2e-3
"""Of learning: weights begin where they are good already."""
EPOCHS = 60


@dataclass(frozen=True)
class Updated:
    """A run's forecaster after further recordings, and what is to be remembered of it."""

    forecaster: SDEForecaster
    history: pd.DataFrame
    diverged: bool
    metadata: RunMetadata


def update(
    spec: ModelSpec,
    forecaster: AbstractForecaster,
    metadata: RunMetadata,
    data: Trajectories,
    training: Training | None = None,
    callbacks: tuple[Callback, ...] = (),
    *,
    key: PRNGKeyArray,
) -> Updated:
    """By Bayes' rule for a library, by variational Bayes for networks."""
    if not (isinstance(spec, HybridSDE) and isinstance(forecaster, SDEForecaster)):
        raise InputError(f"{spec.name} has no posterior that could be updated. Fit it again.")
    spec.check(data)
    _require_new(metadata, data)
    batch = training_batch(spec, data, training)
    model, solver = forecaster.model, forecaster.solver
    if isinstance(model.network, BayesianLibrary):
        found = update_library(model, solver, batch)
        moved, diverged, kept = found.model, False, None
        losses = -np.array(found.log_likelihoods) / batch.count
        history = pd.DataFrame({"loss": losses}).rename_axis("epoch")
    elif isinstance(model.network, BayesianMLP | MixtureMLP):
        chosen = training or Training(epochs=EPOCHS, learning_rate=RATE)
        fitted = update_networks(model, solver, batch, chosen, callbacks, key=key)
        moved, diverged, kept = fitted.model, bool(fitted.diverged), int(fitted.kept)
        history = pd.DataFrame(fitted.history).rename_axis("epoch")
    else:
        raise InputError("This run has no posterior of weights that could be updated.")
    if not np.isfinite(history["loss"]).any():
        raise FitFailed("The new recordings have no finite likelihood under the run.")
    known = replace(
        metadata,
        used=metadata.used.add(train=data.named(unused_names(data, metadata.used.ids))),
        kept_epoch=kept,
        reference=None,
        test_scores=None,
        leaves=None,
        choice=_told(metadata.choice, data),
    )
    return Updated(replace(forecaster, model=moved), history, diverged, known)


def _require_new(metadata: RunMetadata, data: Trajectories) -> None:
    """An `InputError` where a recording had a part in the run: it would count twice."""
    twice = np.flatnonzero(metadata.used.any_of(data))
    if twice.size:
        raise InputError(
            f"{data.ids[twice[0]]!r} was used before: taken in again it would count twice. Give "
            "new recordings only."
        )


def unused_names(recordings: Trajectories, taken: Iterable[str]) -> tuple[str, ...]:
    """Names of recordings, with a number behind those that others have already."""
    used = set(taken)
    found: list[str] = []
    for name in recordings.ids:
        own, number = name, 2
        while own in used:
            own, number = f"{name} ({number})", number + 1
        used.add(own)
        found.append(own)
    return tuple(found)


def _told(choice: str | None, data: Trajectories) -> str:
    plural = "" if len(data) == 1 else "s"
    more = f"Updated with {len(data)} further recording{plural}."
    return more if choice is None else f"{choice} {more}"
