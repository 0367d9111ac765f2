"""Constants of losses and bounds, settled where the certified trajectories had no part."""

from collections.abc import Sequence
from dataclasses import replace

import jax.numpy as jnp
import jax.random as jr
import numpy as np

from hybridsde._errors import InputError, suggest
from hybridsde._types import PRNGKeyArray
from hybridsde.certify.inequalities import conformal_rank
from hybridsde.certify.loss_sampling import band_scores_of, losses_of
from hybridsde.certify.losses import (
    LEVEL,
    LOSSES,
    AbstractLoss,
    BandMiss,
    IntervalMiss,
    ScaledCRPS,
    TemperedLikelihood,
    TruncatedError,
    fitting_draws,
)
from hybridsde.certify.request import HOLD_OUT
from hybridsde.certify.sampling import Hypothesis
from hybridsde.certify.subject import Reference, Subject
from hybridsde.certify.used_data import UsedData
from hybridsde.data import Trajectories

GIBBS = 19
"""Sampled futures of a forecaster that is one draw of the weights; 19 give a 90 % interval."""
FINISHED = 199
"""Sampled futures of the forecast as it is deployed, each with its own weights."""
USUAL = (0.2, 0.06)
"""Mean and mean square that losses are taken to have where no other data say."""
BAND_LEVEL = 0.9
MOMENT_DRAWS = 8
"""Forecasts per trajectory behind the moments of a loss."""


def hypothesis_of(kind: str, ensemble: int, loss: str | AbstractLoss) -> Hypothesis:
    """One network, or an ensemble, or the finished mixture, with draws that fit the loss."""
    level = loss.level if isinstance(loss, IntervalMiss) else LEVEL
    if kind in HOLD_OUT:
        return Hypothesis(fitting_draws(level, FINISHED), 1)
    needs_rank = isinstance(loss, IntervalMiss) or loss == IntervalMiss.name
    rounded = ensemble * -(-GIBBS // ensemble)
    size = fitting_draws(level, GIBBS, ensemble) if needs_rank else rounded
    return Hypothesis(ensemble, size // ensemble)


def make_loss(
    subject: Subject,
    loss: str | AbstractLoss,
    hypothesis: Hypothesis,
    data: Trajectories | None = None,
    reference: Trajectories | None = None,
    *,
    key: PRNGKeyArray,
) -> AbstractLoss:
    """A loss by name, with constants that the certified trajectories had no part in."""
    if reference is not None:
        subject.check(reference)
        if data is not None:
            UsedData.of(reference=reference).require_unused(data)
    if isinstance(loss, AbstractLoss):
        return loss
    if loss not in LOSSES:
        raise InputError(
            f"`loss` must be one of {', '.join(LOSSES)}, but is {loss!r}.{suggest(loss, LOSSES)}"
        )
    spread = jnp.asarray(subject.spread, float)
    if loss == "interval":
        return IntervalMiss()
    if loss == "error":
        return TruncatedError(spread)
    if loss == "crps":
        return ScaledCRPS(spread)
    if loss == "likelihood":
        return TemperedLikelihood(spread / 2)
    if reference is not None:
        return BandMiss(band_radius(subject, reference, hypothesis, key=key))
    known = subject.reference.radius.get(str(hypothesis.size)) if subject.reference else None
    if known is None:
        raise InputError(
            "The loss 'band' needs a radius that these trajectories had no part in. Give "
            "`reference`, the trajectories of the fit, or BandMiss(radius)."
        )
    return BandMiss(known)


def band_radius(
    subject: Subject, reference: Trajectories, hypothesis: Hypothesis, *, key: PRNGKeyArray
) -> float:
    """The radius that holds nine in ten of other trajectories."""
    batch = subject.spec.batch(reference)
    scores = np.sort(band_scores_of(subject.at_prior, batch, hypothesis, key=key))
    rank = conformal_rank(len(scores), 1 - BAND_LEVEL) or len(scores)
    return float(scores[rank - 1])


def loss_moments(
    subject: Subject,
    losses: Sequence[AbstractLoss],
    reference: Trajectories,
    hypothesis: Hypothesis,
    *,
    key: PRNGKeyArray,
) -> dict[str, tuple[float, float]]:
    """Mean and mean square of every loss on other trajectories."""
    batch = subject.spec.batch(reference)
    found = losses_of(subject.at_prior, batch, tuple(losses), hypothesis, MOMENT_DRAWS, key=key)
    return {
        loss.name: (float(x.mean()), float((x**2).mean()))
        for loss, x in zip(losses, found, strict=True)
    }


def expected_moments(
    subject: Subject,
    loss: AbstractLoss,
    reference: Trajectories | None,
    hypothesis: Hypothesis,
    *,
    key: PRNGKeyArray,
) -> tuple[float, float]:
    """From other trajectories, or remembered from the fit, or a guess."""
    if reference is not None:
        return loss_moments(subject, [loss], reference, hypothesis, key=key)[loss.name]
    known = subject.reference.moments.get(loss.name) if subject.reference else None
    return USUAL if known is None else known


def settle(subject: Subject, first: Trajectories, *, key: PRNGKeyArray) -> Reference:
    """Constants of all losses and bounds, from the part of the data that gave the prior."""
    moment_key, loss_key, *radius_keys = jr.split(key, 4)
    hypotheses = [hypothesis_of(kind, 1, "interval") for kind in ("ub", "holdout")]
    radius = {
        str(h.size): band_radius(subject, first, h, key=radius_key)
        for h, radius_key in zip(hypotheses, radius_keys, strict=True)
    }
    subject = replace(subject, reference=Reference(radius))
    one = hypotheses[0]
    losses = [make_loss(subject, name, one, key=loss_key) for name in LOSSES]
    return Reference(radius, loss_moments(subject, losses, first, one, key=moment_key))
