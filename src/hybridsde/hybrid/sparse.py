"""Empirical Bayes for a drift that is linear in its coefficients, in seconds, and always the same.

1. Without any term: noise, diffusion, starts and physical parameters by Fisher scoring through the
   filter. What is not yet explained is in the diffusion, so nothing is fitted too closely.
2. The terms that the evidence wants, by spike and slab on the parabola about that point. All
   numbers are then learned again, and the next choice is made from there, while the evidence grows.
3. Other choices that are likely too are kept with their shares: what the data leave open.

Scales of slabs and of Gaussian processes follow the evidence (MacKay 1992).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from hybridsde._parameters import Fixed
from hybridsde._types import Float
from hybridsde.data import Batch
from hybridsde.hybrid import symmetric
from hybridsde.hybrid.scoring import Local, LogLikelihood, Prior, climb
from hybridsde.hybrid.selection import Choice, Found, Surrogate, select
from hybridsde.model import BayesianSDE
from hybridsde.model.library import Basis, BayesianLibrary
from hybridsde.model.network import HeldNetwork
from hybridsde.physics.expression import CONSTANTS, Expression, Name, Number, names
from hybridsde.simulate import AbstractSolver

STEPS = 12
"""Steps after a choice of terms."""
LONG_CLIMB = 100
"""Steps at most where nothing is chosen."""
ROUNDS = 15
"""Choices of terms at most."""
EXPECTED = 2.0
"""So many terms are expected in an equation."""
PARSIMONY = 1.2
"""Each further thing that a term says makes it less likely by this much in log-probability."""
SIMPLE = 2
"""Terms that say no more than this are tried first in one of the searches."""
KEPT_IN_SEARCH = 1
"""Choices; the others are looked for at the end."""
SMALLEST, LARGEST = 1e-3, 1e8
"""Limits of the precision of a coefficient."""
ENOUGH = 0.1
"""The search is over when a choice is better by less than this in log-evidence."""
SLABS = (0.1, 10.0)
"""Limits of the scale of a slab, in typical rates."""


@dataclass(frozen=True)
class Sparse:
    """What was found."""

    model: BayesianSDE
    log_evidence: float
    """Ln p(Y) of the training recordings, by Laplace's method."""
    log_likelihoods: tuple[float, ...]
    """Along the way."""


@dataclass(frozen=True)
class Stage:
    """A choice of terms, with all numbers as they are best under it."""

    about: Local
    prior: Prior
    surrogate: Surrogate
    choice: Choice
    evidence: float


def fit_sparse(
    model: BayesianSDE,
    solver: AbstractSolver,
    batch: Batch,
    report: Callable[[int, int, float], None] | None = None,
) -> Sparse:
    """Learn everything about a model whose learned part is a `BayesianLibrary`."""
    network = model.network
    assert isinstance(network, BayesianLibrary)
    basis = network.basis.value
    likelihood = LogLikelihood(model, network.mean(), solver, batch)
    _, columns, states = network.means.shape
    count = likelihood.coefficients
    allowed = visible_terms(model, basis).reshape(-1)
    always = allowed & np.repeat(np.arange(columns) >= len(basis.terms), states)
    groups = np.tile(np.arange(states), columns)
    total = 1 + 2 * ROUNDS
    # A conserved quantity ties equations: a term of one needs its counterpart in another.
    tied = model.constraints is not None and bool(model.constraints.value.conserved)
    values: list[float] = []

    def tell(about: Local) -> None:
        values.append(about.value)
        if report is not None:
            report(min(len(values), total), total, about.value)

    expected = np.repeat(inclusion_prior(basis.terms), states)
    probability = np.concatenate([expected, np.ones(count - len(expected))])
    certain = probability >= 1
    odds = np.where(
        certain, 0.0, np.log(probability) - np.log1p(-np.where(certain, 0, probability))
    )
    spike = np.log1p(-probability[allowed & ~always]).sum()
    others = np.arange(len(likelihood.start)) >= count

    def judge(about: Local, slab: np.ndarray, choice: Choice) -> Stage:
        prior = Prior.of(likelihood, slab)
        surrogate = Surrogate.of(about, prior, count, odds)
        evidence = _constant(about, prior, count) + surrogate.log_evidence(choice) + spike
        tell(about)
        return Stage(about, prior, surrogate, choice, evidence)

    slab, nothing = np.ones(count), tuple(np.flatnonzero(always).tolist())
    about = likelihood(likelihood.start, others)
    if not about.finite:
        return Sparse(model, -np.inf, (np.nan,))
    # Slopes are computed where numbers move, and for all that may be wanted before each choice.
    wanted = np.concatenate([allowed, np.ones(len(likelihood.start) - count, bool)])
    about = climb(likelihood, about, Prior.of(likelihood, slab), others, STEPS)
    about = likelihood(about.at, wanted)

    def search(best: Stage, allowed: np.ndarray) -> Stage:
        for _ in range(ROUNDS):
            found = select(
                best.surrogate, best.choice, allowed, always, groups, KEPT_IN_SEARCH, pairs=tied
            )
            choice = found.choices[0]
            inside = others.copy()
            inside[list(choice)] = True
            start = np.where(inside, best.about.at, 0.0)
            start[list(choice)] = best.surrogate.posterior(choice)[0] if choice else 0.0
            about = climb(likelihood, likelihood(start, inside), best.prior, inside, STEPS)
            about = likelihood(about.at, wanted)
            if not about.finite:
                break
            slab = _slabs(about, best.prior, inside, always, groups)
            tried = judge(about, slab, choice)
            if not tried.evidence > best.evidence + ENOUGH:
                break
            best = tried
        return best

    # Terms that are nearly the same over few rows lead into blind alleys: simple ones first is
    # another way in.
    first = judge(about, slab, nothing)
    plain = np.array([complexity(term) <= SIMPLE for term in basis.terms], bool)
    bumps = np.ones(columns - len(plain), bool)
    simple = allowed & np.repeat(np.concatenate([plain, bumps]), states)
    ways = [search(first, allowed)]
    if (simple != allowed).any():
        ways.append(search(search(first, simple), allowed))
    best = max(ways, key=lambda one: one.evidence)
    surrogate, about = best.surrogate, best.about
    kept = len(network.means)
    found = select(surrogate, best.choice, allowed, always, groups, kept, pairs=tied)
    learned = _distribution(network, surrogate, found, probability)
    fitted = eqx.tree_at(lambda m: m.network, likelihood.model(about.at), learned)
    evidence = _constant(about, best.prior, count) + found.log_evidence + spike
    return Sparse(fitted, float(evidence), tuple(values))


def fit_known(
    model: BayesianSDE,
    solver: AbstractSolver,
    batch: Batch,
    report: Callable[[int, int, float], None] | None = None,
) -> Sparse:
    """All numbers of a model in which no drift is to be learned, by maximum likelihood."""
    likelihood = LogLikelihood(model, model.network.mean(), solver, batch)
    about = likelihood(likelihood.start)
    if not about.finite:
        return Sparse(model, -np.inf, (np.nan,))
    prior = Prior.of(likelihood, np.ones(0))
    before = about.value
    about = climb(likelihood, about, prior, np.ones(len(about.at), bool), LONG_CLIMB)
    if report is not None:
        report(1, 1, about.value)
    evidence = _constant(about, prior, 0)
    return Sparse(likelihood.model(about.at), float(evidence), (before, about.value))


def about_fitted(
    model: BayesianSDE, solver: AbstractSolver, batch: Batch
) -> tuple[LogLikelihood, Local, Prior, np.ndarray]:
    """The log-likelihood about a fitted model, and which coefficients its best choice holds.

    The weights of networks stay as they are; of several with numbers of their own it is the first.
    """
    network = model.network
    if not isinstance(network, BayesianLibrary):
        sde = model.typical()
        start = model.start if sde.start is None else sde.start
        own = (sde.known, sde.diffusion, start)
        model = replace(model, known=own[0], diffusion=own[1], start=own[2], own=None)
        held = HeldNetwork(held=Fixed(sde.learned.network))
        likelihood = LogLikelihood(model, held, solver, batch)
        nothing = np.zeros(0)
        about = likelihood(likelihood.start)
        return likelihood, about, Prior.of(likelihood, nothing), nothing.astype(bool)
    likelihood = LogLikelihood(model, network.mean(), solver, batch)
    chosen = np.asarray(network.chosen.value[0]).reshape(-1)
    theta = likelihood.start
    theta[: likelihood.coefficients] = np.where(chosen, np.asarray(network.means[0]).reshape(-1), 0)
    prior = Prior.of(likelihood, 1 / np.asarray(network.slab.value, float).reshape(-1) ** 2)
    return likelihood, likelihood(theta), prior, chosen


def row_innovations(about: Local) -> Float[np.ndarray, "series row obs"]:
    """Innovations row by row; steps that reach no measured row are left out."""
    rows = [z[np.isfinite(z).any(1)] for z in about.innovations]
    longest = max(map(len, rows), default=0)
    return np.stack(
        [np.pad(z, [(0, longest - len(z)), (0, 0)], constant_values=np.nan) for z in rows]
    )


def complexity(term: Expression) -> int:
    """How much a term says: x and 1 one thing or less, x*y, x^2 and sin(x) two."""
    if isinstance(term, Number):
        return 0
    if isinstance(term, Name):
        return 1
    if term.function == "^" and isinstance(term.arguments[1], Number):
        return round(complexity(term.arguments[0]) * abs(term.arguments[1].value))
    inside = sum(complexity(one) for one in term.arguments)
    further = {"*": 0, "neg": 0, "+": 1, "-": 1, "/": 1}
    return inside + further.get(term.function, 1)


def inclusion_prior(terms: tuple[Expression, ...]) -> Float[np.ndarray, " term"]:
    """π of every term: `EXPECTED` of them in an equation, and less of what says more."""
    more = np.array([max(complexity(term) - 1, 0) for term in terms], float)
    share = np.exp(-PARSIMONY * more)
    return np.clip(EXPECTED * share / max(share.sum(), 1e-300), 1e-6, 0.5)


def visible_terms(model: BayesianSDE, basis: Basis) -> np.ndarray:
    """Which columns the learned part of each state may use: column × state."""
    if model.sees is None:
        return np.ones((basis.columns, model.states), bool)
    rows = [
        [
            any(row)
            and all(
                row[basis.features.index(n.name)] for n in names(term) if n.name not in CONSTANTS
            )
            for row in model.sees
        ]
        for term in basis.terms
    ]
    bumps = [[any(row) for row in model.sees]] * (basis.columns - len(basis.terms))
    return np.array(rows + bumps, bool).reshape(basis.columns, model.states)


def relevance(
    about: Local, prior: Prior, free: np.ndarray, always: np.ndarray, groups: np.ndarray
) -> Float[np.ndarray, " coefficient"]:
    """Precisions that the evidence wants: α = γ/m², γ = 1 − αΣ      (MacKay 1992).

    Columns that are always in share one for each state: α = Σγ/Σm².
    """
    count = len(always)
    moving = np.flatnonzero(free)
    bend = about.information[np.ix_(moving, moving)] + np.diag(prior.precision[moving])
    variance = np.zeros(len(about.at))
    variance[moving] = np.diag(symmetric.inverse(bend))
    alpha, square = prior.precision[:count], about.at[:count] ** 2
    gamma = np.clip(1 - alpha * variance[:count], 1e-6, 1.0)
    found = np.clip(gamma / np.maximum(square, 1e-12), SMALLEST, LARGEST)
    for group in np.unique(groups[always]):
        mine = always & (groups == group)
        shared = gamma[mine].sum() / max(square[mine].sum(), 1e-12)
        found[mine] = np.clip(shared, SMALLEST, LARGEST)
    return np.where(free[:count], found, alpha)


def _slabs(
    about: Local, prior: Prior, inside: np.ndarray, always: np.ndarray, groups: np.ndarray
) -> Float[np.ndarray, " coefficient"]:
    """Precisions of the slabs, one for the terms of each state: of the size that chosen ones have.

    Those of columns that are always in follow the evidence.
    """
    count = len(always)
    found = np.where(always, relevance(about, prior, inside, always, groups), 1.0)
    for group in np.unique(groups):
        mine = inside[:count] & ~always & (groups == group)
        if mine.any():
            size = np.clip(np.sqrt(np.mean(about.at[:count][mine] ** 2)), *SLABS)
            found[~always & (groups == group)] = 1 / size**2
    return found


def _distribution(
    network: BayesianLibrary,
    surrogate: Surrogate,
    found: Found,
    probability: Float[np.ndarray, " coefficient"],
) -> BayesianLibrary:
    """The choices that were found, under the slabs and inclusions that they were found with."""
    pieces = [(np.array(choice, int), *surrogate.posterior(choice)) for choice in found.choices]
    shape = network.slab.value.shape
    prior = (
        Fixed(jnp.asarray((1 / np.sqrt(surrogate.slab)).reshape(shape), jnp.float32)),
        Fixed(jnp.asarray(probability.reshape(shape), jnp.float32)),
    )
    held = eqx.tree_at(lambda n: (n.slab, n.inclusion), network, prior)
    return held.with_choices(pieces, found.shares, found.inclusion, found.written)


def _constant(about: Local, prior: Prior, count: int) -> float:
    """Ln p(Y) without any coefficient, of the parabola that ln p(Y | θ) is about a point.

    ln p(Y | θ) = c + bᵀθ − ½ θᵀIθ; all other numbers are integrated under their prior.
    """
    constant = about.value - about.linear @ about.at + 0.5 * about.at @ about.information @ about.at
    p, mean = prior.precision[count:], prior.mean[count:]
    bend = about.information[count:, count:] + np.diag(p)
    b = about.linear[count:] + p * mean
    volume = symmetric.log_determinant(bend) - np.log(p).sum()
    return constant + 0.5 * (b @ symmetric.solve(bend, b) - mean @ (p * mean) - volume)
