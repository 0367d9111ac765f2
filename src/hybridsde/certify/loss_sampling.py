"""Losses, band scores and evidence of sampled forecasts: compiled, then checked on the host."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import numpy as np

from hybridsde._errors import InputError
from hybridsde._types import PRNGKeyArray
from hybridsde.certify.losses import AbstractLoss
from hybridsde.certify.sampling import (
    Evidence,
    Hypothesis,
    sample_band_scores,
    sample_evidence,
    sample_losses,
)
from hybridsde.data import Batch
from hybridsde.forecast import AbstractBayesianForecaster, AbstractForecaster


def losses_of(
    forecaster: AbstractForecaster,
    batch: Batch,
    losses: tuple[AbstractLoss, ...],
    hypothesis: Hypothesis,
    draws: int,
    *,
    key: PRNGKeyArray,
) -> np.ndarray:
    """Loss × trajectory × draw; an `InputError` where a loss is none."""
    try:
        found = _compiled(sample_losses, forecaster, batch, losses, hypothesis, draws, key=key)
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
    forecaster: AbstractForecaster, batch: Batch, hypothesis: Hypothesis, *, key: PRNGKeyArray
) -> np.ndarray:
    """The largest distance of every trajectory from its forecast, in standard deviations."""
    return np.asarray(_compiled(sample_band_scores, forecaster, batch, hypothesis, key=key), float)


def evidence_of(
    forecaster: AbstractBayesianForecaster, batch: Batch, draws: int, *, key: PRNGKeyArray
) -> Evidence:
    """Ln z and the path KL of sampled paths."""
    return _compiled(sample_evidence, forecaster, batch, draws, key=key)


@eqx.filter_jit
def _compiled(function: Callable[..., Any], *args: Any, key: PRNGKeyArray) -> Any:
    return function(*args, key=key)
