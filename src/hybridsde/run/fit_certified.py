"""Fit in two steps, so that a certificate holds for the result."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from hybridsde._errors import InputError
from hybridsde._types import Dependence, LossName
from hybridsde.certify import AbstractLoss
from hybridsde.certify.two_steps import (
    SAMPLED,
    check_surrogate,
    prior_and_bound,
    train_against_bound,
)
from hybridsde.certify.used_data import check_dependence
from hybridsde.data import Trajectories
from hybridsde.fit import Callback, Training
from hybridsde.forecast import ModelSpec
from hybridsde.hybrid import HybridSDE
from hybridsde.hybrid.declaration import NETWORK
from hybridsde.run.fitting import fit
from hybridsde.run.run import Run


def fit_certified(
    model: ModelSpec,
    data: Trajectories,
    *,
    prior_fraction: float = 0.5,
    prior_sd: float | None = None,
    dependence: Dependence = "iid",
    loss: LossName | AbstractLoss = "error",
    posterior: Training | None = None,
    callbacks: Iterable[Callback] = (),
    seed: int = 0,
    **fit_settings: Any,
) -> Run:
    """Fit so that the result can be certified on a part of the data that it learned from.

    A share `prior_fraction` of the recordings, with `validation`, fits the whole model as `fit`
    does, which takes all further settings. The distribution of its weights is the prior, or
    N(μ, prior_sd²) about their means; scales, noise, diffusion, known parameters and the constants
    of every loss are settled. Then the weights alone are trained on all recordings against a bound
    on `loss`. The others, `run.certifiable(data)`, certify it.

    There is one network, whatever `members` says: the bound is about one distribution of weights.
    Windows of one recording need `dependence="sequential"`; the earlier ones give the prior.
    """
    check_surrogate(prior_sd, loss)
    if not isinstance(model, HybridSDE):
        raise InputError(
            f"{model.name} has no weights with a prior. Fit it with `fit`, and certify it on "
            "unused trajectories (bound holdout)."
        )
    model = replace(model, members=1, learned=NETWORK)
    if model.weights != "path":
        raise InputError('Certificates are issued for weights that are held: weights="path".')
    if fit_settings.get("langevin") is not None:
        raise InputError(SAMPLED)
    check_dependence(data, dependence)
    first, second = prior_and_bound(data, prior_fraction, dependence, seed)
    callbacks = tuple(callbacks)
    run = fit(model, first, callbacks=callbacks, seed=seed, **fit_settings)
    return certified(
        run, first, second, prior_sd=prior_sd, loss=loss, training=posterior, callbacks=callbacks
    )


def certified(run: Run, first: Trajectories, second: Trajectories, **settings: Any) -> Run:
    """Train the weights of a finished run against the bound that is to certify it.

    See `train_against_bound` for what is what, and for the settings.
    """
    found, diverged = train_against_bound(run.subject, first, second, **settings)
    metadata = replace(run.metadata, used=found.used, reference=found.reference)
    return replace(
        run,
        forecaster=found.forecaster,
        diverged=run.diverged or diverged,
        metadata=metadata,
    )
