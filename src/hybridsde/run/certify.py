"""Certify a run: check what may be certified, sample losses, and say what follows."""

import hashlib
import warnings
from typing import TYPE_CHECKING, Any

import jax.random as jr
import numpy as np
from safetensors.numpy import save

from hybridsde._errors import InputError, InputNotice
from hybridsde._types import PRNGKeyArray
from hybridsde.certify import bounds
from hybridsde.certify.bounds import Bound, Offset
from hybridsde.certify.certificate import Certificate
from hybridsde.certify.inequalities import choose_offset
from hybridsde.certify.losses import AbstractLoss
from hybridsde.certify.paper import paper_tiers
from hybridsde.certify.question import HOLD_OUT, Question
from hybridsde.certify.sampling import Forecaster
from hybridsde.certify.seen import POSTERIOR, Seen, check_dependence
from hybridsde.data import Trajectories
from hybridsde.data.prints import series_prints
from hybridsde.fit.checkpoint import named_arrays
from hybridsde.run.folder import solver_facts
from hybridsde.run.loss_constants import expected_moments, forecaster_of, make_loss
from hybridsde.run.sampled import certificate_key, evidence_of, losses_of

if TYPE_CHECKING:
    from hybridsde.run.run import Run


def certify(
    run: "Run",
    data: Trajectories,
    question: Question,
    *,
    loss: str | AbstractLoss = "error",
    reference: Trajectories | None = None,
    seed: int | None = None,
) -> Certificate:
    """A bound on the expected loss of forecasts, or a refusal that says why."""
    check_held(run)
    run.declared.check_later(data)
    check_observed(run, data)
    key = certificate_key(run, seed)
    if question.bound == "paper":
        return _diagnose(run, data, question, key)
    check_dependence(data, question.dependence)
    kind = _kind(run, data, question)
    forecaster = forecaster_of(kind, question.ensemble, loss)
    chosen = make_loss(run, loss, forecaster, data, reference, key=jr.fold_in(key, 1))
    if kind in HOLD_OUT:
        return _hold_out(run, data, question, kind, chosen, forecaster, key)
    return _pac_bayes(run, data, question, kind, chosen, forecaster, reference, key)


def check_held(run: "Run") -> None:
    """Certificates are about forecasters that draw their weights once."""
    if not run.model.weights.held:
        raise InputError(
            'This model redraws its weights at every step (weights = "local"); certificates are '
            'issued for weights that are held along a path. Fit with weights = "path".'
        )


def check_observed(run: "Run", data: Trajectories) -> None:
    """Every trajectory has something to be compared with, as the model sees it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputNotice)
        usable = run.declared.encode(data).observed[:, run.declared.context :]
    empty = np.flatnonzero(~usable.any((1, 2)))
    if empty.size:
        raise InputError(
            f"Trajectory {data.ids[empty[0]]!r} has no values after its start. Remove it."
        )


def _kind(run: "Run", data: Trajectories, question: Question) -> str:
    """The bound that is asked for, or the right one, if it may be given."""
    seen, kind = Seen.from_facts(run.facts), question.bound
    sequential = question.dependence == "sequential"
    if kind == "auto":
        fresh = not seen.any_of(data).any()
        kind = "holdout" if fresh and not sequential else "ub"
    if sequential and kind not in ("ub", "catoni"):
        raise InputError(
            f"The bound {kind!r} needs independent trajectories. For windows of one recording ask "
            "for ub or catoni."
        )
    seen.refuse(data, but=() if kind in HOLD_OUT else (POSTERIOR,))
    seen.refuse_windows(data, question.dependence)
    if kind in HOLD_OUT and question.ensemble > 1:
        raise InputError("`ensemble` is for ub, kl and catoni; a hold-out bound is about mixtures.")
    return kind


def _pac_bayes(
    run: "Run",
    data: Trajectories,
    question: Question,
    kind: str,
    loss: AbstractLoss,
    forecaster: Forecaster,
    reference: Trajectories | None,
    key: PRNGKeyArray,
) -> Certificate:
    """For the forecaster that draws its weights from the posterior."""
    n, ensemble = len(data), question.ensemble
    draws = max(2, -(-question.draws // n))
    moved = Seen.from_facts(run.facts).any_of(data).any()
    # A posterior that has not seen the trajectories may be its own prior.
    kl = ensemble * max(0.0, float(run.model.network.kl_to_prior())) if moved else 0.0
    sample_key, moment_key = jr.split(key)
    x = losses_of(run, data, (loss,), forecaster, draws, key=sample_key)[0]
    if kind == "ub":
        moments = expected_moments(run, loss, reference, forecaster, moment_key)
        own = bounds.shares(question.delta, question.union).own
        offset = Offset(*choose_offset(*moments, n, own))
        found = bounds.ub_bound(x, kl, question.delta, question.union, offset=offset)
        name = "PAC-Bayes, un-expected Bernstein (ub)"
    elif kind == "kl":
        found = bounds.kl_bound(x, kl, question.delta, question.union)
        name = "PAC-Bayes, kl-inverse"
    else:
        found = bounds.catoni_bound(x, kl, question.delta, question.union)
        name = "PAC-Bayes, Catoni"
    energy = float(evidence_of(run, data, 8, key=moment_key).path_kl.mean())
    terms = {
        **found.terms,
        "KL of paths (diagnostic)": energy,
        "draws per trajectory": draws,
        "networks per forecast": ensemble,
        "δ of PAC-Bayes": bounds.shares(question.delta, question.union).own,
        "δ of Monte Carlo": bounds.shares(question.delta, question.union).sampling,
    }
    who = (
        "for a forecaster that draws its network anew for every forecast"
        if ensemble == 1
        else f"for forecasts by {ensemble} networks drawn anew each time"
    )
    return _certificate(
        run, data, question, loss, Bound(found.value, found.parts, terms), name, who
    )


def _hold_out(
    run: "Run",
    data: Trajectories,
    question: Question,
    kind: str,
    loss: AbstractLoss,
    forecaster: Forecaster,
    key: PRNGKeyArray,
) -> Certificate:
    """For the finished forecaster, one forecast per trajectory."""
    order_key, sample_key = jr.split(key)
    x = losses_of(run, data, (loss,), forecaster, 1, key=sample_key)
    x = x[0, np.asarray(jr.permutation(order_key, len(data))), 0]
    if kind == "holdout-kl":
        found, name = bounds.holdout_kl_bound(x, question.delta, question.union), "kl-inverse"
    elif loss.binary:
        found = bounds.clopper_pearson_bound(x, question.delta, question.union)
        name = "Clopper–Pearson"
    else:
        found, name = bounds.betting_bound(x, question.delta, question.union), "betting"
    who = f"for forecasts by {forecaster.size} sampled futures, each with its own network"
    return _certificate(run, data, question, loss, found, f"hold-out, {name}", who)


def _certificate(
    run: "Run",
    data: Trajectories,
    question: Question,
    loss: AbstractLoss,
    found: Bound,
    kind: str,
    who: str,
) -> Certificate:
    value = min(1.0, float(found.value))
    return Certificate(
        bound=value,
        kind=kind,
        loss=loss.name,
        delta=question.delta,
        n=len(data),
        vacuous=value >= 1,
        target=question.promise(loss, len(data), value, who),
        assumptions=question.assumptions(**solver_facts(run.solver)),
        terms={name: float(np.asarray(term)) for name, term in found.terms.items()},
        parts={name: float(np.asarray(part)) for name, part in found.parts.items()},
        details=_details(run, data, question, loss),
    )


def _details(
    run: "Run", data: Trajectories, question: Question, loss: AbstractLoss
) -> dict[str, Any]:
    return {
        "loss": {"name": loss.name, **loss.constants()},
        "solver": solver_facts(run.solver),
        "dependence": question.dependence,
        "union": question.union,
        "trajectories": series_prints(data),
        "prior_trajectories": len(run.facts["seen"]["train"]),
        "posterior_trajectories": len(run.facts["seen"].get(POSTERIOR, ())),
        "weights_sha256": hashlib.sha256(save(named_arrays(run.model))).hexdigest(),
    }


def _diagnose(run: "Run", data: Trajectories, question: Question, key: PRNGKeyArray) -> Certificate:
    """The paper's three tiers: never a guarantee."""
    kl = float(run.model.network.kl_to_prior())
    if not np.isfinite(kl):
        raise InputError(
            "The weights of this run are a sample (SGLD): their KL to the prior is infinite, and "
            'so is the paper\'s bound. Take bound = "holdout" on unseen trajectories.'
        )
    draws = -(-question.draws // len(data))
    found = evidence_of(run, data, draws, key=key)
    result = paper_tiers(
        np.asarray(found.log_z, float),
        kl,
        float(found.path_kl.mean()),
        question.delta,
        gates=question.gates,
    )
    value = min(1.0, float(result.value))
    said = "Vacuous" if result.value >= 1 else "Below one"
    return Certificate(
        bound=value,
        kind="paper, three tiers (diagnostic)",
        loss="likelihood of a whole trajectory",
        delta=question.delta,
        n=len(data),
        vacuous=bool(result.value >= 1),
        target=f"{said}: T1 is {float(result.value):.3g} for a risk between 0 and 1. A diagnostic "
        "of the paper's bound, not a promise.",
        assumptions=(
            "The path KL is estimated by sampling and not bounded.",
            "Scales, noise and everything but the weights are taken as given beforehand.",
        ),
        terms={name: float(np.asarray(term)) for name, term in result.terms.items()},
        parts={name: float(np.asarray(part)) for name, part in result.parts.items()},
        details={"solver": solver_facts(run.solver), "trajectories": series_prints(data)},
    )
