"""Upper bounds on an expectation, as functions of numbers. All work element by element.

Losses lie in [0, 1] and trajectories are independent unless a docstring says otherwise; neither is
checked here. Everything is computed in double precision.
"""

import numpy as np
from scipy.special import betaincinv, gammaln, xlogy

from hybridsde._types import Numbers

Reals = np.ndarray | float
"""Numbers of any shape."""
HALVINGS = 60
LARGEST_BET = 0.75
"""Bets stop at this share of what would risk the whole capital."""


def binary_kl(q: Numbers, p: Numbers) -> Reals:
    """Kl(q‖p) = q ln(q/p) + (1−q) ln((1−q)/(1−p)) between two coins."""
    q, p = np.asarray(q, float), np.asarray(p, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        same = xlogy(q, q) + xlogy(1 - q, 1 - q)
        return same - xlogy(q, p) - xlogy(1 - q, 1 - p)


def kl_inverse(q: Numbers, budget: Numbers) -> Reals:
    """kl⁻¹(q, c) = sup{p ≥ q : kl(q‖p) ≤ c}, by bisection; the upper end is returned."""
    q, budget = np.broadcast_arrays(np.asarray(q, float), np.asarray(budget, float))
    low, high = q.copy(), np.ones(q.shape)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        inside = binary_kl(q, middle) <= budget
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return high


def log_xi(n: int) -> float:
    """Ln ξ(n), ξ(n) = Σ_k C(n,k) (k/n)^k (1−k/n)^{n−k} ≤ 2√n.

    The constant of Maurer 2004; the sum itself is smaller than the usual 2√n.
    """
    k = np.arange(n + 1)
    choose = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    terms = choose + xlogy(k, k / n) + xlogy(n - k, 1 - k / n)
    return float(np.logaddexp.reduce(terms))


def pac_bayes_kl(risk: Numbers, kl: Numbers, n: int, delta: float) -> Reals:
    """R(Q) ≤ kl⁻¹(R̂, (KL + ln ξ(n) + ln(1/δ)) / n)      (Langford and Seeger; Maurer 2004)."""
    return kl_inverse(risk, (np.asarray(kl) + log_xi(n) - np.log(delta)) / n)


def pac_bayes_pinsker(risk: Numbers, kl: Numbers, n: int, delta: float) -> Reals:
    """R(Q) ≤ R̂ + √((KL + ln(2√n/δ)) / 2n), the form of the paper; looser, for comparison."""
    budget = (np.asarray(kl) + np.log(2 * np.sqrt(n) / delta)) / n
    return np.asarray(risk) + np.sqrt(budget / 2)


CATONI_GRID = np.geomspace(0.05, 20.0, 25)


def catoni(risk: Numbers, kl: Numbers, n: int, delta: float, grid: Numbers = CATONI_GRID) -> Reals:
    """min_λ [1 − exp(−λR̂ − (KL + ln(|Λ|/δ))/n)] / (1 − e^{−λ})      (Catoni 2007).

    The grid Λ is fixed beforehand. Holds for martingales too.
    """
    grid = np.atleast_1d(np.asarray(grid, float))
    budget = (np.asarray(kl, float) + np.log(len(grid) / delta)) / n
    exponent = np.asarray(risk, float)[..., None] * grid + budget[..., None]
    return (-np.expm1(-exponent) / -np.expm1(-grid)).min(-1)


def bernstein_factor(a: Numbers, eta: Numbers) -> Reals:
    """C = η ϑ(η(1−a)), ϑ(u) = (−ln(1−u) − u)/u²: what the squares of X − a cost."""
    eta = np.asarray(eta, float)
    u = eta * (1 - np.asarray(a, float))
    return eta * (-np.log1p(-u) - u) / u**2


def unexpected_bernstein(
    mean: Numbers, kl: Numbers, n: int, delta: float, *, eta: Numbers
) -> Reals:
    """R(Q) ≤ mean Z + (KL + ln(1/δ)) / ηn,   Z = X + c(X − a)²      (Mhammedi et al. 2019).

    `mean` is that of Z, or an upper bound on it; a and η ∈ (0, 1/(1−a)) are fixed beforehand.
    Small where losses vary little about a. Holds for martingales too.
    """
    return np.asarray(mean) + (np.asarray(kl) - np.log(delta)) / (np.asarray(eta) * n)


def choose_offset(mean: float, square: float, n: int, delta: float) -> tuple[float, float]:
    """A and η that would make `unexpected_bernstein` smallest for losses with these moments.

    The moments must come from other data than the bound.
    """
    a, share = np.meshgrid(np.linspace(0.0, 0.95, 39)[1:], np.linspace(0.05, 0.95, 37))
    eta = share / (1 - a)
    spread = square - 2 * a * mean + a**2
    value = bernstein_factor(a, eta) * spread - np.log(delta) / (eta * n)
    best = np.unravel_index(np.argmin(value), value.shape)
    return float(a[best]), float(eta[best])


def empirical_bernstein(draws: np.ndarray, delta: float, largest: Numbers) -> Reals:
    """E mean Z ≤ Z̄ + √(2V ln(2/δ)/m) + 7 z_max ln(2/δ) / (3(m−1))      (Maurer and Pontil 2009).

    For m independent draws along the last axis, not necessarily of one law, in [0, z_max].
    """
    m = draws.shape[-1]
    confidence = np.log(2 / delta)
    spread = np.sqrt(2 * draws.var(-1, ddof=1) * confidence / m)
    return draws.mean(-1) + spread + 7 * np.asarray(largest) * confidence / (3 * (m - 1))


def clopper_pearson(misses: Numbers, n: int, delta: float) -> Reals:
    """P ≤ BetaInv(1 − δ; k + 1, n − k) after k misses in n independent trials."""
    k = np.asarray(misses, float)
    with np.errstate(invalid="ignore"):
        found = betaincinv(k + 1, np.maximum(n - k, 1e-300), 1 - delta)
    return np.where(k >= n, 1.0, found)


def betting(losses: np.ndarray, delta: float) -> Reals:
    """Upper end of a betting confidence interval for the mean (Waudby-Smith and Ramdas).

    A gambler bets that the mean is below m: capital Π_i (1 + λ_i (m − X_i)) with λ_i chosen from
    X_1..i−1. If the mean is m or more, the capital ever reaches 1/δ with probability δ at most. It
    grows with m, so the bound is the smallest m at which it does, found by bisection. Losses lie
    along the last axis, in an order that does not depend on their values.
    """
    x = np.asarray(losses, float)
    n = x.shape[-1]
    count = np.arange(1, n + 1)
    mean = (0.5 + x.cumsum(-1)) / (count + 1)
    variance = (0.25 + ((x - mean) ** 2).cumsum(-1)) / (count + 1)
    before = np.concatenate([np.full((*x.shape[:-1], 1), 0.25), variance[..., :-1]], -1)
    wanted = np.sqrt(2 * np.log(1 / delta) / (n * before))

    def wins(m: Reals) -> np.ndarray:
        m = np.asarray(m)[..., None]
        bet = np.minimum(wanted, LARGEST_BET / np.maximum(1 - m, 1e-12))
        capital = np.log1p(bet * (m - x)).cumsum(-1).max(-1)
        return np.asarray(capital >= np.log(1 / delta))

    low, high = np.zeros(x.shape[:-1]), np.ones(x.shape[:-1])
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        won = wins(middle)
        low, high = np.where(won, low, middle), np.where(won, middle, high)
    return high


def conformal_rank(n: int, alpha: float, delta: float | None = None) -> int | None:
    """Which of n sorted scores is the radius of a band; None where n is too small.

    Without δ: r = ⌈(n+1)(1−α)⌉, so that a new trajectory stays inside with probability 1 − α on
    average over calibration sets. With δ: the smallest r with P(Beta(r, n+1−r) < 1 − α) ≤ δ, so
    that this holds for all but a share δ of calibration sets (Vovk 2012).
    """
    if delta is None:
        rank = int(np.ceil((n + 1) * (1 - alpha) - 1e-9))
        return rank if rank <= n else None
    ranks = np.arange(1, n + 1)
    safe = betaincinv(ranks, n + 1 - ranks, delta) >= 1 - alpha
    return int(ranks[safe][0]) if safe.any() else None
