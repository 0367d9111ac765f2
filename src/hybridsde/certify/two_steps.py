"""The second step of a certified fit: train the weights against the bound."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from hybridsde._errors import InputError
from hybridsde._streams import Stream, stream
from hybridsde.certify.certification import check_held
from hybridsde.certify.gibbs import GibbsRisk
from hybridsde.certify.loss_constants import hypothesis_of, make_loss, settle
from hybridsde.certify.losses import LOSSES, AbstractLoss
from hybridsde.certify.subject import Subject
from hybridsde.certify.used_data import POSTERIOR
from hybridsde.data import Trajectories
from hybridsde.data.checks import check_positive
from hybridsde.fit import Callback, Training, train
from hybridsde.hybrid import SDEForecaster
from hybridsde.hybrid.forecaster import only_weights
from hybridsde.model import BayesianMLP, MixtureMLP, SampledNetworks

SAMPLED = (
    "Networks that SGLD visited are no distribution that a PAC-Bayes bound can compare with a "
    "prior. Fit with another objective, or certify on unused trajectories (bound holdout)."
)
SURROGATES = ("error", "crps", "likelihood")
"""Losses that a gradient can follow."""


def train_against_bound(
    subject: Subject,
    first: Trajectories,
    second: Trajectories,
    *,
    whole: Trajectories | None = None,
    prior_sd: float | None = None,
    loss: str | AbstractLoss = "error",
    training: Training | None = None,
    callbacks: Iterable[Callback] = (),
) -> tuple[Subject, bool]:
    """Train the weights of a finished forecaster further, on recordings that it has not used.

    The forecaster becomes the prior. `first` are recordings that it was fitted to, as they would
    be forecast; constants are settled on them. `second` will certify the result; `whole` are the
    recordings that it was cut from, if it was. Says, too, whether training diverged.
    """
    check_surrogate(prior_sd, loss)
    check_held(subject)
    forecaster = subject.forecaster
    if not isinstance(forecaster, SDEForecaster):
        raise InputError(
            f"{subject.spec.name} has no weights with a prior. Certify it on unused trajectories "
            "(bound holdout)."
        )
    if POSTERIOR in subject.used.steps:
        raise InputError("This run was certified before. Start from a plain fit.")
    if isinstance(forecaster.model.network, SampledNetworks):
        raise InputError(SAMPLED)
    if isinstance(forecaster.model.network, MixtureMLP):
        raise InputError(
            "This run has several networks, but the bound is about the distribution of one. Fit "
            "with `members=1`, as `fit_certified` does."
        )
    subject.require_unused(whole or second)
    forecaster = forecaster.around_prior(prior_sd)
    subject = replace(subject, forecaster=forecaster)
    key = stream(subject.seed, Stream.REFERENCE)
    subject = replace(subject, reference=settle(subject, first, key=key))
    if not isinstance(forecaster.model.network, BayesianMLP):
        return subject, False
    surrogate = make_loss(subject, loss, hypothesis_of("ub", 1, loss), key=key)
    fitted = train(
        forecaster.model,
        subject.spec.batch(first.join(second)),
        GibbsRisk(surrogate, forecaster.solver, len(second)),
        training=training or Training(epochs=150, batch_size=25, learning_rate=1e-3),
        callbacks=callbacks,
        select=only_weights,
        key=stream(subject.seed, Stream.POSTERIOR),
    )
    used = subject.used.add(**{POSTERIOR: whole or second})
    moved = replace(forecaster, model=fitted.model)
    return replace(subject, forecaster=moved, used=used), bool(fitted.diverged)


def check_surrogate(prior_sd: float | None, loss: str | AbstractLoss) -> None:
    """An `InputError` unless a gradient can follow this loss."""
    if prior_sd is not None:
        check_positive(prior_sd, "prior_sd")
    name = loss if isinstance(loss, str) else loss.name
    if name not in LOSSES or name not in SURROGATES:
        raise InputError(
            f"Weights can be trained against the losses {', '.join(SURROGATES)}, not {name!r}. "
            "Any loss can be certified afterwards."
        )


def prior_and_bound(
    data: Trajectories, fraction: float, dependence: str, seed: int
) -> tuple[Trajectories, Trajectories]:
    """Recordings for the prior and for the bound: by recording, or by time within one."""
    if dependence == "iid":
        return data.split(fraction, seed=seed)
    if not 0 < fraction < 1:
        raise InputError(f"`prior_fraction` must lie between 0 and 1, but is {fraction}.")
    order = np.argsort(data.times[:, 0], kind="stable")
    count = int(np.clip(round(fraction * len(data)), 1, len(data) - 1))
    if len(set(data.origins)) > 1 or len(data) < 2:
        raise InputError('dependence="sequential" is for at least two windows of one recording.')
    return data.take(order[:count]), data.take(order[count:])
