"""What further recordings make of a run: its posterior is their prior."""

from dataclasses import dataclass, replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jax.flatten_util import ravel_pytree

from hybridsde._errors import FitFailed, InputError
from hybridsde._parameters import trainable
from hybridsde._types import Float, PRNGKeyArray
from hybridsde.data import Trajectories
from hybridsde.fit import Callback, Training
from hybridsde.forecast import AbstractForecaster, ModelSpec
from hybridsde.hybrid import HybridSDE, SDEForecaster
from hybridsde.hybrid.parameters import parameters_of
from hybridsde.hybrid.update import update_library, update_networks
from hybridsde.model import BayesianMLP, BayesianSDE, MixtureMLP
from hybridsde.model.library import BayesianLibrary
from hybridsde.run.windows import training_windows
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
    batch = spec.batch(training_windows(spec, data, training))
    model, solver = forecaster.model, forecaster.solver
    parameters = metadata.parameters
    if isinstance(model.network, BayesianLibrary):
        found = update_library(model, solver, batch, _raw_errors(model, metadata))
        moved, diverged = found.model, False
        losses = -np.array(found.log_likelihoods) / batch.count
        history = pd.DataFrame({"loss": losses}).rename_axis("epoch")
        parameters = _values(moved, found.physical_sd, metadata)
    elif isinstance(model.network, BayesianMLP | MixtureMLP):
        chosen = training or Training(epochs=EPOCHS, learning_rate=RATE)
        fitted = update_networks(model, solver, batch, chosen, callbacks, key=key)
        moved, diverged = fitted.model, bool(fitted.diverged)
        history = pd.DataFrame(fitted.history).rename_axis("epoch")
    else:
        raise InputError("This run has no posterior of weights that could be updated.")
    if not np.isfinite(history["loss"].iloc[-1]):
        raise FitFailed("The new recordings have no finite likelihood under the run.")
    known = replace(
        metadata,
        used=metadata.used.add(train=data),
        parameters=parameters,
        reference=None,
        test_scores=None,
        choice=_told(metadata.choice, data),
    )
    return Updated(replace(forecaster, model=moved), history, diverged, known)


def _require_new(metadata: RunMetadata, data: Trajectories) -> None:
    """An `InputError` where a recording is one of the fit: it would count twice."""
    twice = np.flatnonzero(metadata.used.which(data, "train"))
    if twice.size:
        raise InputError(
            f"{data.ids[twice[0]]!r} was used before: taken in again it would count twice. Give "
            "new recordings only."
        )


def _told(choice: str | None, data: Trajectories) -> str:
    plural = "" if len(data) == 1 else "s"
    more = f"Updated with {len(data)} further recording{plural}."
    return more if choice is None else f"{choice} {more}"


def _slopes(model: BayesianSDE) -> tuple[tuple[str, ...], Float[np.ndarray, "name raw"]]:
    """Named physical parameters, and how they move with the numbers that the model keeps."""
    physics = model.known.physics
    moved, held = eqx.partition(physics, trainable(physics))
    flat, unflatten = ravel_pytree(moved)
    names = tuple(parameters_of(physics))

    def values(flat: jax.Array) -> jax.Array:
        found = parameters_of(eqx.combine(unflatten(flat), held))
        return jnp.stack([jnp.sum(found[name].value) for name in names])

    slopes = np.asarray(jax.jacfwd(values)(flat), float) if names else np.zeros((0, flat.size))
    return names, slopes


def _raw_errors(model: BayesianSDE, metadata: RunMetadata) -> Float[np.ndarray, " raw"]:
    """Standard errors of physical parameters as the model keeps them; NaN where unknown."""
    names, slopes = _slopes(model)
    found = np.full(slopes.shape[1], np.nan)
    for name, slope in zip(names, slopes, strict=True):
        own = np.flatnonzero(slope)
        error = (metadata.parameters or {}).get(name, {}).get("error")
        if len(own) == 1 and error:
            found[own[0]] = error / abs(slope[own[0]])
    return found


def _values(
    model: BayesianSDE, raw_sd: Float[np.ndarray, " raw"], metadata: RunMetadata
) -> dict[str, dict[str, float | None]] | None:
    """Values and errors after the update, of those that were there before."""
    if not metadata.parameters:
        return None
    names, slopes = _slopes(model)
    found = parameters_of(model.known.physics)
    errors = {
        name: float(np.nansum(np.abs(slope) * raw_sd))
        for name, slope in zip(names, slopes, strict=True)
    }
    return {
        name: {"value": float(found[name].value), "error": errors[name] or None}
        for name in metadata.parameters
    }
