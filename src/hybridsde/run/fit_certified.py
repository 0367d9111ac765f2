"""Fit in two steps, so that a certificate holds for the result."""

import math
from collections.abc import Iterable
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from hybridsde._errors import InputError
from hybridsde._parameters import Fixed, trainable
from hybridsde._types import PyTree
from hybridsde.certify import AbstractLoss, GibbsRisk, Seen
from hybridsde.certify.losses import LOSSES
from hybridsde.certify.seen import POSTERIOR, check_dependence
from hybridsde.data import Trajectories
from hybridsde.data.checks import check_positive
from hybridsde.fit import Callback, Training, train
from hybridsde.model import BayesianMLP, BayesianSDE, HybridSDE, MeanField, SampledNetworks
from hybridsde.objective import SGLD, AbstractObjective
from hybridsde.run.certify import check_held
from hybridsde.run.fitting import fit
from hybridsde.run.loss_constants import band_radius, forecaster_of, loss_moments, make_loss
from hybridsde.run.run import Run
from hybridsde.simulate import AbstractSolver

REFERENCE = 4
"""Folded into the seed of a run to give the key of what is measured on the first part."""


SAMPLED = (
    "Networks that SGLD visited are no distribution that a PAC-Bayes bound can compare with a "
    "prior. Fit with another objective, or certify on unseen trajectories (bound holdout)."
)


def fit_certified(
    model: HybridSDE,
    data: Trajectories,
    *,
    prior_fraction: float = 0.5,
    prior_sd: float | None = None,
    dependence: str = "iid",
    objective: AbstractObjective | None = None,
    solver: AbstractSolver | None = None,
    training: Training | None = None,
    validation: Trajectories | None = None,
    loss: str | AbstractLoss = "error",
    posterior: Training | None = None,
    callbacks: Iterable[Callback] = (),
    seed: int = 0,
) -> Run:
    """Fit so that the result can be certified on a part of the data that it learned from.

    A share `prior_fraction` of the recordings, with `validation`, fits the whole model as `fit`
    does. The distribution of its weights is the prior, or N(μ, prior_sd²) about their means;
    scales, noise, diffusion, known parameters and the constants of every loss are settled. Then
    the weights alone are trained on all recordings against a bound on `loss`. The others,
    `run.certifiable(data)`, certify it.

    Windows of one recording need `dependence="sequential"`; the earlier ones give the prior.
    """
    _check(prior_sd, loss)
    if model.weights != "path":
        raise InputError('Certificates are issued for weights that are held: weights="path".')
    if isinstance(objective, SGLD):
        raise InputError(SAMPLED)
    check_dependence(data, dependence)
    first, second = _parts(data, prior_fraction, dependence, seed)
    callbacks = tuple(callbacks)
    run = fit(
        model,
        first,
        objective=objective,
        solver=solver,
        training=training,
        validation=validation,
        callbacks=callbacks,
        seed=seed,
    )
    return certified(
        run, first, second, prior_sd=prior_sd, loss=loss, training=posterior, callbacks=callbacks
    )


def certified(
    run: Run,
    first: Trajectories,
    second: Trajectories,
    *,
    whole: Trajectories | None = None,
    prior_sd: float | None = None,
    loss: str | AbstractLoss = "error",
    training: Training | None = None,
    callbacks: Iterable[Callback] = (),
) -> Run:
    """Train the weights of a finished run further, on recordings that it has not seen.

    The run becomes the prior. `first` are recordings that it was fitted to, as they would be
    forecast; constants are settled on them. `second` will certify the result; `whole` are the
    recordings that it was cut from, if it was.
    """
    _check(prior_sd, loss)
    check_held(run)
    seen = Seen.from_facts(run.facts)
    if POSTERIOR in seen.steps:
        raise InputError("This run was certified before. Start from a plain fit.")
    if isinstance(run.model.network, SampledNetworks):
        raise InputError(SAMPLED)
    seen.refuse(whole or second)
    run = replace(run, model=around_prior(run.model, prior_sd))
    run = replace(run, facts={**run.facts, "reference": _reference(run, first)})
    if not isinstance(run.model.network, BayesianMLP):
        return run
    surrogate = make_loss(run, loss, forecaster_of("ub", 1, loss), key=jr.key(run.seed))
    fitted = train(
        run.model,
        run.declared.batch(first.join(second)),
        GibbsRisk(surrogate, len(second)),
        solver=run.solver,
        training=training or Training(epochs=150, batch_size=25, learning_rate=1e-3),
        callbacks=callbacks,
        select=only_weights,
        key=jr.fold_in(jr.key(run.seed), REFERENCE + 1),
    )
    facts = {**run.facts, **seen.add(**{POSTERIOR: whole or second}).facts()}
    diverged = run.diverged or bool(fitted.diverged)
    return replace(run, model=fitted.model, diverged=diverged, facts=facts)


SURROGATES = ("error", "crps", "likelihood")
"""Losses that a gradient can follow."""


def _check(prior_sd: float | None, loss: str | AbstractLoss) -> None:
    if prior_sd is not None:
        check_positive(prior_sd, "prior_sd")
    name = loss if isinstance(loss, str) else loss.name
    if name not in LOSSES or name not in SURROGATES:
        raise InputError(
            f"Weights can be trained against the losses {', '.join(SURROGATES)}, not {name!r}. "
            "Any loss can be certified afterwards."
        )


def _parts(
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


def _reference(run: Run, first: Trajectories) -> dict:
    """Constants of losses and of bounds, settled on the part that gave the prior."""
    key = jr.fold_in(jr.key(run.seed), REFERENCE)
    forecasters = [forecaster_of(kind, 1, "interval") for kind in ("ub", "holdout")]
    radius = {str(f.size): band_radius(run, first, f, key=key) for f in forecasters}
    run = replace(run, facts={**run.facts, "reference": {"radius": radius}})
    one = forecasters[0]
    losses = [make_loss(run, name, one, key=key) for name in LOSSES]
    moments = loss_moments(run, losses, first, one, key=key)
    return {"radius": radius, "moments": moments}


def around_prior(model: BayesianSDE, sd: float | None = None) -> BayesianSDE:
    """The model whose prior is what was fitted, or N(μ, sd²) about it, and its posterior too."""
    network = model.network
    if not isinstance(network, BayesianMLP):
        return model
    both = network.posterior
    if sd is not None:
        log_sd = jax.tree.map(lambda leaf: jnp.full_like(leaf, math.log(sd)), both.mean)
        both = MeanField(both.mean, log_sd)
    return eqx.tree_at(lambda m: m.network, model, BayesianMLP(both, Fixed(both)))


def only_weights(model: BayesianSDE) -> PyTree:
    """Marks the weights of the network, and nothing else, as what training may move."""
    nothing = jax.tree.map(lambda _: False, model)
    return eqx.tree_at(lambda m: m.network, nothing, trainable(model.network))
