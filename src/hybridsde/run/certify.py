"""Certify a run: check what may be certified, sample losses, and say what follows."""

import hashlib
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from safetensors.numpy import save

from hybridsde._errors import InputError, InputNotice, suggest
from hybridsde._types import PRNGKeyArray
from hybridsde.certify import bounds
from hybridsde.certify.bounds import Bound, Offset
from hybridsde.certify.certificate import Certificate
from hybridsde.certify.conformal import ConformalBand
from hybridsde.certify.inequalities import choose_offset, conformal_rank
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
from hybridsde.certify.paper import paper_tiers
from hybridsde.certify.question import HOLD_OUT, Question
from hybridsde.certify.sampling import (
    Forecaster,
    sample_band_scores,
    sample_evidence,
    sample_losses,
)
from hybridsde.certify.seen import POSTERIOR, Seen, check_dependence
from hybridsde.data import Trajectories
from hybridsde.data.checks import check_whole
from hybridsde.data.prints import series_prints
from hybridsde.fit.checkpoint import named_arrays
from hybridsde.model import BayesianMLP
from hybridsde.run.folder import solver_facts

if TYPE_CHECKING:
    from hybridsde.run.run import Run

CERTIFICATES = 3
"""Folded into the seed of a run to give the key of its certificates."""
GIBBS = 19
"""Sampled futures of a forecaster that is one draw of the weights; 19 give a 90 % interval."""
FINISHED = 199
"""Sampled futures of the forecast as it is deployed, each with its own weights."""
USUAL = (0.2, 0.06)
"""Mean and mean square that losses are taken to have where no other data say."""
BAND_LEVEL = 0.9


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
    key = _key(run, seed)
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


def _key(run: "Run", seed: int | None) -> PRNGKeyArray:
    """Fresh randomness: not that of training, nor of forecasts."""
    return jr.fold_in(jr.key(run.seed if seed is None else seed), CERTIFICATES)


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
    run, batch = before_posterior(run), run.declared.batch(reference)
    scores = np.sort(np.asarray(_scores(run.model, run.solver, batch, forecaster, key)))
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
    run, batch = before_posterior(run), run.declared.batch(reference)
    found = _losses(run.model, run.solver, batch, tuple(losses), forecaster, 8, key)
    return {
        loss.name: (float(x.mean()), float((x**2).mean()))
        for loss, x in zip(losses, found, strict=True)
    }


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
    batch = run.declared.batch(data)
    sample_key, moment_key = jr.split(key)
    x = _losses(run.model, run.solver, batch, (loss,), forecaster, draws, sample_key)[0]
    if kind == "ub":
        moments = _moments(run, loss, reference, forecaster, moment_key)
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
    energy = sample_path_kl(run, data, key=moment_key)
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


def forecaster_of(kind: str, ensemble: int, loss: str | AbstractLoss) -> Forecaster:
    """One network, or an ensemble, or the finished mixture, with draws that fit the loss."""
    level = loss.level if isinstance(loss, IntervalMiss) else LEVEL
    if kind in HOLD_OUT:
        return Forecaster(fitting_draws(level, FINISHED), 1)
    needs_rank = isinstance(loss, IntervalMiss) or loss == IntervalMiss.name
    rounded = ensemble * -(-GIBBS // ensemble)
    size = fitting_draws(level, GIBBS, ensemble) if needs_rank else rounded
    return Forecaster(ensemble, size // ensemble)


def _moments(
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
    batch = run.declared.batch(data)
    x = _losses(run.model, run.solver, batch, (loss,), forecaster, 1, sample_key)
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
    draws = -(-question.draws // len(data))
    batch = run.declared.batch(data)
    found = _evidence(run.model, run.solver, batch, draws, key)
    result = paper_tiers(
        np.asarray(found.log_z, float),
        float(run.model.network.kl_to_prior()),
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


def conformal(
    run: "Run",
    data: Trajectories,
    *,
    alpha: float = 0.1,
    delta: float | None = None,
    draws: int = 200,
    seed: int | None = None,
) -> ConformalBand:
    """A band about forecasts, simultaneous over the horizon, from unseen trajectories."""
    for name, value in (("alpha", alpha), ("delta", delta)):
        if value is not None and not 0 < value < 1:
            raise InputError(f"`{name}` must lie strictly between 0 and 1, but is {value}.")
    check_whole(draws, "draws", least=3)
    run.declared.check_later(data)
    check_observed(run, data)
    check_dependence(data, "iid")
    seen = Seen.from_facts(run.facts)
    seen.refuse(data)
    seen.refuse_windows(data, "iid")
    logs = np.array([name in run.declared.positive for name in data.states])
    if np.any(data.observed & logs & (data.values <= 0)):
        raise InputError(
            "Some values of positive states are not above zero; no band of logarithms can hold "
            "them. Remove these trajectories."
        )
    batch = run.declared.batch(data)
    scores = np.asarray(
        _scores(run.model, run.solver, batch, Forecaster(draws, 1), _key(run, seed)), float
    )
    return ConformalBand.of(
        scores,
        alpha,
        delta,
        draws=draws,
        times=int(data.lengths.min()) - run.declared.context,
        horizon=float((data.ends - data.times[:, 0]).min()),
        assumptions=Question().assumptions(**solver_facts(run.solver)),
        positive=tuple(run.declared.positive),
    )


def sample_path_kl(run: "Run", data: Trajectories, *, key: PRNGKeyArray) -> float:
    """E ½ Σ fᵀJ⁻¹f Δt, how far the learned drift takes paths from the known physics."""
    found = _evidence(run.model, run.solver, run.declared.batch(data), 8, key)
    return float(found.path_kl.mean())


@eqx.filter_jit
def _sampled(function, model, solver, batch, *args, key):
    return function(model, solver, batch, *args, key=key)


def _losses(model, solver, batch, losses, forecaster, draws, key) -> np.ndarray:
    try:
        found = _sampled(sample_losses, model, solver, batch, losses, forecaster, draws, key=key)
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


def _scores(model, solver, batch, forecaster, key):
    return _sampled(sample_band_scores, model, solver, batch, forecaster, key=key)


def _evidence(model, solver, batch, draws, key):
    return _sampled(sample_evidence, model, solver, batch, draws, key=key)
