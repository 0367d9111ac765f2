"""Check what may be certified, sample losses, and say what follows."""

import hashlib
import warnings
from typing import Any, NamedTuple

import jax.random as jr
import numpy as np
from safetensors.numpy import save

from hybridsde._errors import InputError, InputNotice
from hybridsde._types import PRNGKeyArray
from hybridsde.certify import bounds
from hybridsde.certify.bounds import Bound, Offset
from hybridsde.certify.certificate import Certificate
from hybridsde.certify.conformal import ConformalBand
from hybridsde.certify.inequalities import choose_offset
from hybridsde.certify.loss_constants import expected_moments, hypothesis_of, make_loss
from hybridsde.certify.loss_sampling import band_scores_of, evidence_of, losses_of
from hybridsde.certify.losses import AbstractLoss
from hybridsde.certify.paper_bound import paper_tiers
from hybridsde.certify.request import HOLD_OUT, CertificateRequest
from hybridsde.certify.sampling import Hypothesis
from hybridsde.certify.subject import Subject
from hybridsde.certify.used_data import POSTERIOR, check_dependence
from hybridsde.data import Trajectories
from hybridsde.data.checks import check_whole
from hybridsde.data.hashing import series_hashes
from hybridsde.fit.checkpoint import named_arrays
from hybridsde.forecast import AbstractBayesianForecaster, ModelSpec
from hybridsde.hybrid import SDEForecaster


class Randomness(NamedTuple):
    """Keys of a certificate, apart from each other."""

    first: PRNGKeyArray
    second: PRNGKeyArray
    reference: PRNGKeyArray
    """Of constants that are settled on other trajectories."""
    evidence: PRNGKeyArray

    @classmethod
    def of(cls, key: PRNGKeyArray) -> "Randomness":
        """From the key of the certificate."""
        return cls(*jr.split(key, 4))


def certify(
    subject: Subject,
    data: Trajectories,
    request: CertificateRequest,
    *,
    loss: str | AbstractLoss = "error",
    reference: Trajectories | None = None,
    seed: int | None = None,
) -> Certificate:
    """A bound on the expected loss of forecasts, or a refusal that says why."""
    check_held(subject)
    subject.check(data)
    check_observed(subject.spec, data)
    random = Randomness.of(subject.key(seed))
    if request.bound == "paper":
        return _diagnose(subject, data, request, random)
    check_dependence(data, request.dependence)
    kind = _kind(subject, data, request)
    hypothesis = hypothesis_of(kind, request.ensemble, loss)
    chosen = make_loss(subject, loss, hypothesis, data, reference, key=random.reference)
    if kind in HOLD_OUT:
        found, name, who = _hold_out(subject, data, request, kind, chosen, hypothesis, random)
    else:
        found, name, who = _pac_bayes(
            subject, data, request, kind, chosen, hypothesis, reference, random
        )
    value = min(1.0, float(found.value))
    return Certificate(
        bound=value,
        kind=name,
        loss=chosen.name,
        delta=request.delta,
        n=len(data),
        vacuous=value >= 1,
        statement=request.statement(chosen, len(data), value, who),
        assumptions=request.assumptions(subject.forecaster.describe()),
        terms={name: float(np.asarray(term)) for name, term in found.terms.items()},
        parts={name: float(np.asarray(part)) for name, part in found.parts.items()},
        details=_details(subject, data, request, chosen),
    )


def conformal_band(
    subject: Subject,
    data: Trajectories,
    *,
    alpha: float = 0.1,
    delta: float | None = None,
    draws: int = 200,
    seed: int | None = None,
) -> ConformalBand:
    """A band about forecasts, simultaneous over the horizon, from unused trajectories."""
    for name, value in (("alpha", alpha), ("delta", delta)):
        if value is not None and not 0 < value < 1:
            raise InputError(f"`{name}` must lie strictly between 0 and 1, but is {value}.")
    check_whole(draws, "draws", least=3)
    spec = subject.spec
    subject.check(data)
    check_observed(spec, data)
    check_dependence(data, "iid")
    subject.require_unused(data)
    subject.used.require_no_windows(data, "iid")
    logs = np.array([name in spec.positive for name in data.states])
    if np.any(data.observed & logs & (data.values <= 0)):
        raise InputError(
            "Some values of positive states are not above zero; no band of logarithms can hold "
            "them. Remove these trajectories."
        )
    batch, hypothesis = spec.batch(data), Hypothesis(draws, 1)
    scores = band_scores_of(subject.forecaster, batch, hypothesis, key=subject.key(seed))
    return ConformalBand.of(
        scores,
        alpha,
        delta,
        draws=draws,
        times=int(data.lengths.min()) - spec.context,
        horizon=float((data.ends - data.times[:, 0]).min()),
        assumptions=CertificateRequest().assumptions(subject.forecaster.describe()),
        positive=tuple(spec.positive),
    )


def check_held(subject: Subject) -> None:
    """Certificates are about forecasters that draw their weights once."""
    forecaster = subject.forecaster
    if isinstance(forecaster, AbstractBayesianForecaster) and not forecaster.held:
        raise InputError(
            'This model redraws its weights at every step (weights = "local"); certificates are '
            'issued for weights that are held along a path. Fit with weights = "path".'
        )


def check_observed(spec: ModelSpec, data: Trajectories) -> None:
    """Every trajectory has something to be compared with, as the model sees it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputNotice)
        usable = spec.encode(data).observed[:, spec.context :]
    empty = np.flatnonzero(~usable.any((1, 2)))
    if empty.size:
        raise InputError(
            f"Trajectory {data.ids[empty[0]]!r} has no values after its start. Remove it."
        )


def _kind(subject: Subject, data: Trajectories, request: CertificateRequest) -> str:
    """The bound that is asked for, or the right one, if it may be given."""
    used, kind = subject.used, request.bound
    sequential = request.dependence == "sequential"
    if kind == "auto":
        fresh = not used.any_of(data).any()
        kind = "holdout" if fresh and not sequential else "ub"
    if sequential and kind not in ("ub", "catoni"):
        raise InputError(
            f"The bound {kind!r} needs independent trajectories. For windows of one recording ask "
            "for ub or catoni."
        )
    subject.require_unused(data, except_for=() if kind in HOLD_OUT else (POSTERIOR,))
    used.require_no_windows(data, request.dependence)
    if kind in HOLD_OUT and request.ensemble > 1:
        raise InputError("`ensemble` is for ub, kl and catoni; a hold-out bound is about mixtures.")
    return kind


def _weight_kl(subject: Subject, data: Trajectories) -> float:
    """KL of the weights to their prior; a posterior that has not used the data may be its own."""
    if not subject.used.any_of(data).any():
        return 0.0
    forecaster = subject.forecaster
    assert isinstance(forecaster, AbstractBayesianForecaster)
    return max(0.0, float(forecaster.kl_to_prior()))


def _pac_bayes(
    subject: Subject,
    data: Trajectories,
    request: CertificateRequest,
    kind: str,
    loss: AbstractLoss,
    hypothesis: Hypothesis,
    reference: Trajectories | None,
    random: Randomness,
) -> tuple[Bound, str, str]:
    """For the forecaster that draws its weights from the posterior."""
    n, ensemble, batch = len(data), request.ensemble, subject.spec.batch(data)
    draws = max(2, -(-request.draws // n))
    kl = ensemble * _weight_kl(subject, data)
    x = losses_of(subject.forecaster, batch, (loss,), hypothesis, draws, key=random.first)[0]
    delta, models = request.delta, request.models_compared
    shares = bounds.shares(delta, models)
    if kind == "ub":
        moments = expected_moments(subject, loss, reference, hypothesis, key=random.second)
        offset = Offset(*choose_offset(*moments, n, shares.own))
        found = bounds.ub_bound(x, kl, delta, models, offset=offset)
        name = "PAC-Bayes, un-expected Bernstein (ub)"
    elif kind == "kl":
        found = bounds.kl_bound(x, kl, delta, models)
        name = "PAC-Bayes, kl-inverse"
    else:
        found = bounds.catoni_bound(x, kl, delta, models)
        name = "PAC-Bayes, Catoni"
    terms = {
        **found.terms,
        **_path_kl(subject, data, random),
        "draws per trajectory": draws,
        "networks per forecast": ensemble,
        "δ of PAC-Bayes": shares.own,
        "δ of Monte Carlo": shares.sampling,
    }
    who = (
        "for a forecaster that draws its network anew for every forecast"
        if ensemble == 1
        else f"for forecasts by {ensemble} networks drawn anew each time"
    )
    return Bound(found.value, found.parts, terms), name, who


def _path_kl(subject: Subject, data: Trajectories, random: Randomness) -> dict[str, float]:
    """A diagnostic, where paths have a prior."""
    forecaster = subject.forecaster
    if not isinstance(forecaster, AbstractBayesianForecaster):
        return {}
    found = evidence_of(forecaster, subject.spec.batch(data), 8, key=random.evidence)
    return {"KL of paths (diagnostic)": float(found.path_kl.mean())}


def _hold_out(
    subject: Subject,
    data: Trajectories,
    request: CertificateRequest,
    kind: str,
    loss: AbstractLoss,
    hypothesis: Hypothesis,
    random: Randomness,
) -> tuple[Bound, str, str]:
    """For the finished forecaster, one forecast per trajectory."""
    batch, (delta, models) = subject.spec.batch(data), (request.delta, request.models_compared)
    x = losses_of(subject.forecaster, batch, (loss,), hypothesis, 1, key=random.second)
    x = x[0, np.asarray(jr.permutation(random.first, len(data))), 0]
    if kind == "holdout-kl":
        found, name = bounds.holdout_kl_bound(x, delta, models), "kl-inverse"
    elif loss.binary:
        found, name = bounds.clopper_pearson_bound(x, delta, models), "Clopper–Pearson"
    else:
        found, name = bounds.betting_bound(x, delta, models), "betting"
    own = isinstance(subject.forecaster, AbstractBayesianForecaster)
    who = (
        f"for forecasts by {hypothesis.size} sampled futures" + ", each with its own network" * own
    )
    return found, f"hold-out, {name}", who


def _details(
    subject: Subject, data: Trajectories, request: CertificateRequest, loss: AbstractLoss
) -> dict[str, Any]:
    return {
        "loss": {"name": loss.name, **loss.constants()},
        "forecasts": subject.forecaster.describe(),
        "dependence": request.dependence,
        "models_compared": request.models_compared,
        "trajectories": series_hashes(data),
        "prior_trajectories": subject.used.count("train"),
        "posterior_trajectories": subject.used.count(POSTERIOR),
        "weights_sha256": hashlib.sha256(save(named_arrays(subject.forecaster))).hexdigest(),
    }


class Gates(NamedTuple):
    """What γ of the paper's bound was chosen from."""

    count: int
    """|Γ|."""
    said: str


def _on_grid(
    forecaster: AbstractBayesianForecaster, request: CertificateRequest
) -> tuple[AbstractBayesianForecaster, Gates]:
    """A learned γ at the nearest point of its grid, which is counted."""
    given = request.gate_values
    if not isinstance(forecaster, SDEForecaster) or forecaster.model.known.gate.grid is None:
        said = (
            "γ was not chosen by results on these trajectories; if it was one of M, say "
            "gate_values=M."
            if given is None
            else f"γ was chosen from {given} values that were named beforehand."
        )
        return forecaster, Gates(given or 1, said)
    gate = forecaster.model.known.gate
    assert gate.grid is not None
    if given is not None and given != gate.choices:
        raise InputError(
            f"γ was learned, so |Γ| is not a choice: it is {gate.choices}, by its grid. Leave "
            "`gate_values` out."
        )
    if forecaster.model.own is not None:
        raise InputError(
            "Each network of this run has learned a γ of its own, which the paper's bound does not "
            'know. Take bound = "holdout" on unused trajectories.'
        )
    points = f"{len(gate.grid)} points for each of {sum(gate.known)} known equations"
    return forecaster.on_grid(), Gates(
        gate.choices, f"The learned γ is rounded to the nearest of {points}, |Γ| = {gate.choices}."
    )


def _diagnose(
    subject: Subject, data: Trajectories, request: CertificateRequest, random: Randomness
) -> Certificate:
    """The paper's three tiers: never a guarantee."""
    forecaster = subject.forecaster
    if not isinstance(forecaster, AbstractBayesianForecaster):
        raise InputError(
            f"The paper's bound is about weights with a distribution, which {subject.spec.name} "
            'does not have. Take bound = "holdout" on unused trajectories.'
        )
    kl = float(forecaster.kl_to_prior())
    if not forecaster.has_path_kl:
        raise InputError(
            "Some states of this run move without noise: their path KL is infinite, and so is the "
            'paper\'s bound. Take bound = "holdout" on unused trajectories.'
        )
    if not np.isfinite(kl):
        raise InputError(
            "The weights of this run are a sample (SGLD): their KL to the prior is infinite, and "
            'so is the paper\'s bound. Take bound = "holdout" on unused trajectories.'
        )
    forecaster, gates = _on_grid(forecaster, request)
    draws = -(-request.draws // len(data))
    found = evidence_of(forecaster, subject.spec.batch(data), draws, key=random.evidence)
    result = paper_tiers(
        np.asarray(found.log_z, float),
        kl,
        float(found.path_kl.mean()),
        request.delta,
        gate_values=gates.count,
    )
    value = min(1.0, float(result.value))
    said = "Vacuous" if result.value >= 1 else "Below one"
    return Certificate(
        bound=value,
        kind="paper, three tiers (diagnostic)",
        loss="likelihood of a whole trajectory",
        delta=request.delta,
        n=len(data),
        vacuous=bool(result.value >= 1),
        statement=f"{said}: T1 is {float(result.value):.3g} for a risk between 0 and 1. A "
        "diagnostic of the paper's bound, not a promise.",
        assumptions=(
            "The path KL is estimated by sampling and not bounded.",
            "Scales, noise and everything but the weights and γ are taken as given beforehand.",
            gates.said,
        ),
        terms={name: float(np.asarray(term)) for name, term in result.terms.items()},
        parts={name: float(np.asarray(part)) for name, part in result.parts.items()},
        details={"forecasts": forecaster.describe(), "trajectories": series_hashes(data)},
    )
