"""Constants of losses and bounds, settled where the certified trajectories had no part."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from hybridsde._errors import InputError, suggest
from hybridsde._types import PRNGKeyArray
from hybridsde.certify.inequalities import conformal_rank
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
from hybridsde.certify.question import HOLD_OUT
from hybridsde.certify.sampling import Forecaster
from hybridsde.certify.seen import POSTERIOR, Seen
from hybridsde.data import Trajectories
from hybridsde.model import BayesianMLP
from hybridsde.run.sampled import band_scores_of, losses_of

if TYPE_CHECKING:
    from hybridsde.run.run import Run

GIBBS = 19
"""Sampled futures of a forecaster that is one draw of the weights; 19 give a 90 % interval."""
FINISHED = 199
"""Sampled futures of the forecast as it is deployed, each with its own weights."""
USUAL = (0.2, 0.06)
"""Mean and mean square that losses are taken to have where no other data say."""
BAND_LEVEL = 0.9
MOMENT_DRAWS = 8
"""Forecasts per trajectory behind the moments of a loss."""


def forecaster_of(kind: str, ensemble: int, loss: str | AbstractLoss) -> Forecaster:
    """One network, or an ensemble, or the finished mixture, with draws that fit the loss."""
    level = loss.level if isinstance(loss, IntervalMiss) else LEVEL
    if kind in HOLD_OUT:
        return Forecaster(fitting_draws(level, FINISHED), 1)
    needs_rank = isinstance(loss, IntervalMiss) or loss == IntervalMiss.name
    rounded = ensemble * -(-GIBBS // ensemble)
    size = fitting_draws(level, GIBBS, ensemble) if needs_rank else rounded
    return Forecaster(ensemble, size // ensemble)


def make_loss(
    run: "Run",
    loss: str | AbstractLoss,
    forecaster: Forecaster,
    data: Trajectories | None = None,
    reference: Trajectories | None = None,
    *,
    key: PRNGKeyArray,
) -> AbstractLoss:
    """A loss by name, with constants that the certified trajectories had no part in."""
    if reference is not None:
        run.declared.check_later(reference)
        if data is not None:
            Seen.of(reference=reference).refuse(data)
    if isinstance(loss, AbstractLoss):
        return loss
    if loss not in LOSSES:
        raise InputError(
            f"`loss` must be one of {', '.join(LOSSES)}, but is {loss!r}.{suggest(loss, LOSSES)}"
        )
    spread = jnp.asarray(run.facts["spread"], float)
    if loss == "interval":
        return IntervalMiss()
    if loss == "error":
        return TruncatedError(spread)
    if loss == "crps":
        return ScaledCRPS(spread)
    if loss == "likelihood":
        return TemperedLikelihood(spread / 2)
    known = run.facts.get("reference", {}).get("radius", {}).get(str(forecaster.size))
    if reference is None and known is None:
        raise InputError(
            "The loss 'band' needs a radius that these trajectories had no part in. Give "
            "`reference`, the trajectories of the fit, or BandMiss(radius)."
        )
    if reference is None:
        return BandMiss(known)
    return BandMiss(band_radius(run, reference, forecaster, key=key))


def before_posterior(run: "Run") -> "Run":
    """The run with its weights under the prior, which the certified trajectories had no part in."""
    if POSTERIOR not in run.facts["seen_steps"] or not isinstance(run.model.network, BayesianMLP):
        return run
    prior = run.model.network.prior.value
    return replace(run, model=eqx.tree_at(lambda m: m.network.posterior, run.model, prior))


def band_radius(
    run: "Run", reference: Trajectories, forecaster: Forecaster, *, key: PRNGKeyArray
) -> float:
    """The radius that holds nine in ten of other trajectories."""
    scores = np.sort(band_scores_of(before_posterior(run), reference, forecaster, key=key))
    rank = conformal_rank(len(scores), 1 - BAND_LEVEL) or len(scores)
    return float(scores[rank - 1])


def loss_moments(
    run: "Run",
    losses: Sequence[AbstractLoss],
    reference: Trajectories,
    forecaster: Forecaster,
    *,
    key: PRNGKeyArray,
) -> dict[str, tuple[float, float]]:
    """Mean and mean square of every loss on other trajectories."""
    prior = before_posterior(run)
    found = losses_of(prior, reference, tuple(losses), forecaster, MOMENT_DRAWS, key=key)
    return {
        loss.name: (float(x.mean()), float((x**2).mean()))
        for loss, x in zip(losses, found, strict=True)
    }


def expected_moments(
    run: "Run",
    loss: AbstractLoss,
    reference: Trajectories | None,
    forecaster: Forecaster,
    key: PRNGKeyArray,
) -> tuple[float, float]:
    """From other trajectories, or remembered from the fit, or a guess."""
    if reference is not None:
        return loss_moments(run, [loss], reference, forecaster, key=key)[loss.name]
    known = run.facts.get("reference", {}).get("moments", {}).get(loss.name)
    return tuple(known) if known else USUAL
