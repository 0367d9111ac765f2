"""Losses, scores and evidence of a run's sampled forecasts: compiled, in double precision."""

from typing import TYPE_CHECKING

import equinox as eqx
import jax.random as jr
import numpy as np

from hybridsde._errors import InputError
from hybridsde._types import PRNGKeyArray
from hybridsde.certify.losses import AbstractLoss
from hybridsde.certify.sampling import (
    Evidence,
    Forecaster,
    sample_band_scores,
    sample_evidence,
    sample_losses,
)
from hybridsde.data import Trajectories

if TYPE_CHECKING:
    from hybridsde.run.run import Run

CERTIFICATES = 3
"""Folded into the seed of a run to give the key of its certificates."""


def certificate_key(run: "Run", seed: int | None) -> PRNGKeyArray:
    """Fresh randomness: not that of training, nor of forecasts."""
    return jr.fold_in(jr.key(run.seed if seed is None else seed), CERTIFICATES)


def losses_of(
    run: "Run",
    data: Trajectories,
    losses: tuple[AbstractLoss, ...],
    forecaster: Forecaster,
    draws: int,
    *,
    key: PRNGKeyArray,
) -> np.ndarray:
    """Loss × trajectory × draw; an `InputError` where a loss is none."""
    try:
        found = _sampled(run, data, sample_losses, losses, forecaster, draws, key=key)
    except (TypeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"A loss does not fit the observations: {reason}") from None
    found = np.asarray(found, float)
    for loss, x in zip(losses, found, strict=True):
        allowed = np.isin(x, (0.0, 1.0)) if loss.binary else (x >= 0) & (x <= 1)
        if not allowed.all():
            raise InputError(
                f"The loss {loss.name!r} gave {x[~allowed].flat[0]:g}. Losses lie between 0 and 1, "
                "and are 0 or 1 where they are called binary."
            )
    return found


def band_scores_of(
    run: "Run", data: Trajectories, forecaster: Forecaster, *, key: PRNGKeyArray
) -> np.ndarray:
    """The largest distance of every trajectory from its forecast, in standard deviations."""
    return np.asarray(_sampled(run, data, sample_band_scores, forecaster, key=key), float)


def evidence_of(run: "Run", data: Trajectories, draws: int, *, key: PRNGKeyArray) -> Evidence:
    """Ln z and the path KL of sampled paths."""
    return _sampled(run, data, sample_evidence, draws, key=key)


def _sampled(run: "Run", data: Trajectories, function, *args, key: PRNGKeyArray):
    return _compiled(function, run.model, run.solver, run.declared.batch(data), *args, key=key)


@eqx.filter_jit
def _compiled(function, model, solver, batch, *args, key):
    return function(model, solver, batch, *args, key=key)
