"""Networks that fit simulations of whole recordings, where states are not measured.

Errors from row to row say little of a state that nobody measures: a drift of it that is off is
taken for noise. A simulation without Wiener noise, from a start that fits, shows it. Least squares
through simulations are cheap, since no covariance is carried, and look as far ahead as there are
rows. How far simulations go astray where they were not fitted is measured on rows left out.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from scipy.special import logsumexp

from hybridsde._errors import notice
from hybridsde._parameters import trainable
from hybridsde._types import Bool, Float
from hybridsde.data import Batch
from hybridsde.hybrid.climbing import Climber, Search
from hybridsde.hybrid.comparing import AbstractComparison, NearAndFar, Simulation
from hybridsde.hybrid.scoring import Local, LogLikelihood, Prior
from hybridsde.model import BayesianSDE, GaussianObservation, MixtureMLP, Standardiser
from hybridsde.model.start import AbstractStart, UncertainStart
from hybridsde.simulate import AbstractSolver

ITERATIONS = 60
"""Steps of every network at most,"""
SPREADS = 20
"""and of diffusion and noise where they are found by themselves."""
FACTORS = np.geomspace(1.0, 16.0, 9)
"""What the diffusion is multiplied with where networks were not fitted, to choose from."""
UNFITTED = 0.632
"""The share of that factor, in logarithms, that is kept: networks without a part go further astray
than those that have seen all rows (the .632 rule of Efron 1983)."""
PARTS = 4
"""In so many parts are rows left out, to be judged on."""
WITHOUT_NETWORK = 15
"""Steps with the known equations alone, which say how well a simulation may be asked to fit:"""
TEMPERED = 0.5
"""with this share of their errors. Errors of a simulation hang together, so they say less than as
many independent ones."""
ELSEWHERE = 1.0
"""Half of the networks begin with physical parameters that lie about so far, in logarithms or
logits, from the first guess, the others where the known equations alone fit best: these may be
incomplete."""
ROUNDS, HALF = 3, 0.5
"""Where simulations go astray by less than half of that on rows that were left out, they are asked
to fit as well as that, in so many rounds at most."""
MOST_SERIES = 24
"""Recordings that are simulated at most."""


@dataclass(frozen=True)
class Climbed:
    """Where networks have got to."""

    search: Search
    climbers: list[Climber]
    values: list[float]
    """Mean log-likelihood after every step."""


def climb_simulations(
    model: BayesianSDE,
    solver: AbstractSolver,
    batch: Batch,
    weights: Float[np.ndarray, "network weight"],
    report: Callable[[int, int, float], None],
) -> Climbed | None:
    """Fit simulations of whole recordings, and spreads to what was not fitted.

    A simulation that was fitted to a recording says little of how far it goes astray on others. So
    networks are first fitted without a part of the rows, each without another, and the diffusion is
    found from their errors there and from row to row. Then they begin again, with all rows.
    """
    network = model.network
    assert isinstance(network, MixtureMLP)
    fewer = batch
    if batch.count > MOST_SERIES:
        notice(
            f"Networks are fitted to simulations of {MOST_SERIES} of the {batch.count} recordings, "
            'evenly chosen; learned = "network" looks at all of them.'
        )
        fewer = batch.take(jnp.asarray(np.linspace(0, batch.count - 1, MOST_SERIES).astype(int)))

    def search(comparison: AbstractComparison, iterations: int) -> Search:
        likelihood = LogLikelihood(model, network.mean(), solver, fewer, comparison)
        prior = Prior.of(likelihood, weight_precisions(network))
        return Search(likelihood, prior, iterations, report)

    def simulated(spread: Float[np.ndarray, " obs"], iterations: int = ITERATIONS) -> Search:
        return search(Simulation(jnp.asarray(spread)), iterations)

    measured = np.asarray(Standardiser.of(fewer.values, fewer.observed).sd, float)
    first = simulated(measured, WITHOUT_NETWORK)
    alone = _known_alone(first, len(weights), model.start)
    if not alone.finite:
        return None
    noise = np.broadcast_to(np.asarray(model.observation.sd.value), measured.shape)
    spread = np.fmax(TEMPERED * measured * _size(alone.innovations), noise)
    left_out = _parts(np.any(np.asarray(fewer.observed), -1))
    told = ~left_out[np.arange(len(weights)) % PARTS]
    begun = without = _beginnings(first.likelihood, weights, alone)
    free = ~_replaced(first.likelihood, model.start)
    for left in reversed(range(ROUNDS)):
        second = simulated(spread)
        apart, _ = second.climb(without, free, told)
        climbed, values = second.climb(begun, free)
        better = _better(second, apart)
        astray = spread * _astray(second, better, left_out)
        astray = np.where(np.isnan(astray), spread, astray)
        if not left or not (astray < HALF * spread).any():
            break
        spread = np.clip(astray, noise, spread)
        without, begun = (np.stack([one.about.at for one in each]) for each in (apart, climbed))
    fitted = [~one.all(1) for one in left_out]
    begin = [
        [_with_own_start(second.likelihood, one, series) for one in each]
        for each, series in zip(better, fitted, strict=True)
    ]
    spreads = _spreads(search(NearAndFar(), SPREADS), begin, left_out)
    whole = np.ones(fewer.count, bool)
    everything = [_with_own_start(second.likelihood, one, whole) for one in climbed]
    for one in everything:
        at = one.about.at.copy()
        at[: len(spreads)] = np.where(np.isnan(spreads), at[: len(spreads)], spreads)
        one.about = replace(one.about, at=at)
    return Climbed(second, everything, values)


def _known_alone(search: Search, count: int, start: AbstractStart) -> Local:
    """The best simulation by the known equations alone, of several that begin at random starts."""
    likelihood = search.likelihood
    weights, normals = likelihood.coefficients, likelihood.normals
    begun = beside(np.zeros((count, weights)), likelihood.others)
    begun[1:, begun.shape[1] - normals :] = np.random.default_rng(0).normal(
        size=(count - 1, normals)
    )
    free = (np.arange(begun.shape[1]) >= weights) & ~_replaced(likelihood, start)
    return search.best(search.climb(begun, free)[0], 1)[0].about


def _beginnings(
    likelihood: LogLikelihood, weights: Float[np.ndarray, "network weight"], alone: Local
) -> Float[np.ndarray, "network number"]:
    """Where networks begin: half with other physical parameters than the known equations alone."""
    count = likelihood.coefficients
    found = beside(weights, alone.at[count:])
    physical = np.flatnonzero(likelihood.physical)
    moved = ELSEWHERE * np.random.default_rng(1).normal(size=(len(found) // 2, len(physical)))
    found[: len(moved), count + physical] = likelihood.others[physical] + moved
    return found


def _replaced(likelihood: LogLikelihood, start: AbstractStart) -> Bool[np.ndarray, " number"]:
    """Numbers of p(h₀) that follow from where recordings are found to begin: held before."""
    follow = likelihood.starting & (isinstance(start, UncertainStart) and start.learned)
    return np.concatenate([np.zeros(likelihood.coefficients, bool), follow])


def _size(z: Float[np.ndarray, "series step obs"]) -> Float[np.ndarray, " obs"]:
    """The root mean square of what was measured; NaN where nothing was."""
    count = np.isfinite(z).sum((0, 1))
    return np.sqrt(np.nansum(z**2, (0, 1)) / np.where(count > 0, count, np.nan))


def _better(search: Search, apart: list[Climber]) -> list[list[Climber]]:
    """For each part, the better half of the networks that were fitted without it."""
    half = len(apart) // (2 * PARTS)
    return [search.best(apart[part::PARTS], half) for part in range(PARTS)]


def _astray(
    search: Search, networks: list[list[Climber]], left_out: Bool[np.ndarray, "part series time"]
) -> Float[np.ndarray, " obs"]:
    """The median over networks of their errors where they were not fitted, in spreads.

    NaN where nothing was measured there; endless for a simulation that is no number.
    """
    points = np.stack([one.about.at for each in networks for one in each])
    judged = np.repeat(left_out, len(networks[0]), 0)
    found = search.likelihood.about_each(points, judged)
    sizes = np.stack(
        [
            _size(one.innovations) if one.finite else np.full(one.innovations.shape[-1], np.inf)
            for one in found
        ]
    )
    measured = ~np.isnan(sizes).all(0)
    middle = np.full(sizes.shape[1], np.nan)
    middle[measured] = np.nanmedian(sizes[:, measured], 0)
    return middle


def _with_own_start(
    likelihood: LogLikelihood, one: Climber, fitted: Bool[np.ndarray, " series"]
) -> Climber:
    """With the p(h₀) that simulations begin at, of the recordings that a network was fitted to.

    Networks may disagree about the size of a state that nobody measures. Normals stay those of the
    p(h₀) before; a filter has none.
    """
    model = likelihood.model(one.about.at)
    if not isinstance(model.start, UncertainStart):
        return one
    assert isinstance(model.observation, GaussianObservation)
    normals = one.about.at[-likelihood.normals :].reshape(-1, model.states)
    hidden = ~np.asarray(model.observation.matrix.value).any(0)
    own = model.start.at_normals(jnp.asarray(normals[fitted]), jnp.asarray(hidden))
    at = one.about.at.copy()
    others = at[likelihood.coefficients :]
    others[likelihood.starting] = ravel_pytree(eqx.filter(own, trainable(own)))[0]
    return replace(one, about=replace(one.about, at=at))


def _spreads(
    search: Search,
    networks: list[list[Climber]],
    left_out: Bool[np.ndarray, "part series time"],
) -> Float[np.ndarray, " number"]:
    """Diffusion and noise, beside networks that are held; NaN for all else.

    `networks` are those that were fitted without each part. Spreads are found where they were
    fitted, then the diffusion is multiplied by what makes their joint forecasts of the part
    likeliest: a simulation goes further astray where it was not fitted.
    """
    likelihood = search.likelihood
    spreads = likelihood.diffusive | likelihood.measuring
    moved = np.concatenate([np.zeros(likelihood.coefficients, bool), spreads])
    size = len(moved)
    first = np.stack([each[0].about.at[:size] for each in networks])
    found = [one for one in search.climb(first, moved, ~left_out)[0] if one.about.finite]
    if not found:
        return np.full(size, np.nan)
    spreads = np.mean([one.about.at for one in found], 0)
    diffusive = np.concatenate([np.zeros(likelihood.coefficients, bool), likelihood.diffusive])
    points = np.stack([one.about.at[:size] for each in networks for one in each])
    points[:, moved] = spreads[moved]
    judged = np.repeat(left_out, len(networks[0]), 0)
    scores = []
    factors = FACTORS if likelihood.scaled_diffusion else FACTORS[:1]
    for factor in factors:
        abouts = likelihood.about_each(points + np.log(factor) * diffusive, judged)
        groups = [abouts[n : n + len(networks[0])] for n in range(0, len(abouts), len(networks[0]))]
        scores.append(sum(_joint_score(group) for group in groups))
    factor = factors[int(np.argmax(np.nan_to_num(scores, nan=-np.inf)))]
    return np.where(moved, spreads + UNFITTED * np.log(factor) * diffusive, np.nan)


def _joint_score(abouts: list[Local]) -> float:
    """Ln of the mean density over networks, summed over all that was compared.

    A network under which that is no number foretells nothing.
    """
    usable = [one for one in abouts if one.finite]
    if not usable:
        return -np.inf
    z = np.stack([one.innovations for one in usable])
    each = -0.5 * (z**2 + np.stack([one.log_variances for one in usable]))
    lost = np.log(len(usable) / len(abouts))
    return float(np.nansum(logsumexp(each, 0) + lost))


def _parts(measured: Bool[np.ndarray, "series time"]) -> Bool[np.ndarray, "part series time"]:
    """Rows that are left out: every fourth recording, or a quarter of the measured rows of each."""
    part = np.arange(PARTS)[:, None, None]
    told = measured.sum(1) > 1
    if told.sum() >= PARTS:
        turn = (np.cumsum(told) - 1)[:, None] % PARTS
        return np.broadcast_to(turn == part, (PARTS, *measured.shape)) & told[:, None]
    rank = np.maximum(np.cumsum(measured, 1) - 1, 0)
    count = np.maximum(measured.sum(1), 1)[:, None]
    return np.minimum(rank * PARTS // count, PARTS - 1) == part


def beside(
    weights: Float[np.ndarray, "network weight"], others: Float[np.ndarray, " other"]
) -> Float[np.ndarray, "network number"]:
    """Weights of each network, and the same other numbers for all."""
    return np.concatenate([weights, np.broadcast_to(others, (len(weights), len(others)))], 1)


def weight_precisions(network: MixtureMLP) -> Float[np.ndarray, " weight"]:
    """1/σ₀² of every weight of one network under its prior."""
    sd = np.asarray(ravel_pytree(network.prior.value.sd())[0], float)
    return 1 / sd**2
