"""Which few coefficients are not zero: spike and slab on a quadratic log-likelihood.

With ln p(Y | c) = bᵀc − ½ cᵀHc up to a constant, a slab N(0, D⁻¹) and inclusion probabilities π,
the evidence of a choice s is closed:

    ln p(Y, s) = ½ b_sᵀ A⁻¹ b_s − ½ ln|A| + ½ ln|D_s| + Σ_{i∈s} ln π/(1 − π),   A = H_ss + D_s

(Mitchell and Beauchamp 1988; George and McCulloch 1997). The best choice is searched by adding,
leaving out and exchanging single terms. With few data many choices far from it are as likely: they
are found by a Markov chain over choices (Madigan and York 1995), and forecasts average over them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from hybridsde._types import Bool, Float, Int
from hybridsde.hybrid import symmetric
from hybridsde.hybrid.scoring import Local, Prior

MOST = 0.95
"""Where the likeliest choices hold this share of the probability, they are kept as they are."""
WITHIN = 6.0
"""They are then kept if their log-evidence is at most this much below the best."""
BARE_MENTION = 10**0.5
"""Odds that are not worth more than a bare mention (Jeffreys 1961)."""
CHAIN = 6000
"""Steps of the Markov chain."""
LEAST = 1e300
"""Minus this is the log-evidence of a choice that cannot be computed."""
MOST_MOVES = 100
"""Of a search."""

Choice = tuple[int, ...]


@dataclass(frozen=True)
class Surrogate:
    """A quadratic log-likelihood of coefficients."""

    linear: Float[np.ndarray, " coefficient"]
    curvature: Float[np.ndarray, "coefficient coefficient"]
    """Both with everything else integrated out, which is how choices are judged."""
    held: tuple[Float[np.ndarray, " coefficient"], Float[np.ndarray, "coefficient coefficient"]]
    """The same with everything else as it is in the model that the coefficients will be part of."""
    slab: Float[np.ndarray, " coefficient"]
    """Precisions."""
    odds: Float[np.ndarray, " coefficient"]
    """Ln π/(1 − π)."""

    @classmethod
    def of(
        cls, about: Local, prior: Prior, count: int, odds: Float[np.ndarray, " coefficient"]
    ) -> "Surrogate":
        """The first `count` numbers are coefficients; the others have their own prior."""
        b = about.linear + np.where(
            np.arange(len(about.at)) < count, 0, prior.precision * prior.mean
        )
        h = about.information
        bent = h[count:, count:] + np.diag(prior.precision[count:])
        across = symmetric.solve(bent, np.column_stack([h[count:, :count], b[count:]]))
        return cls(
            b[:count] - h[:count, count:] @ across[:, -1],
            symmetric.without_negative(h[:count, :count] - h[:count, count:] @ across[:, :-1]),
            (b[:count] - h[:count, count:] @ about.at[count:], h[:count, :count]),
            prior.precision[:count],
            odds,
        )

    def posterior(self, choice: Choice) -> tuple[np.ndarray, np.ndarray]:
        """Mean and an upper triangular root of the covariance, of the chosen coefficients."""
        s = np.array(choice, int)
        linear, curvature = self.held
        root = symmetric.cholesky(curvature[np.ix_(s, s)] + np.diag(self.slab[s]))
        mean = np.linalg.solve(root.T, np.linalg.solve(root, linear[s]))
        return mean, np.linalg.solve(root.T, np.eye(len(s)))

    def log_evidence(self, choice: Choice) -> float:
        """Ln p(Y, s), less that of nothing chosen."""
        if not choice:
            return 0.0
        s = np.array(choice, int)
        try:
            root = np.linalg.cholesky(self._bend(s))
        except np.linalg.LinAlgError:
            return -np.inf
        z = np.linalg.solve(root, self.linear[s])
        volume = 0.5 * np.log(self.slab[s]).sum() - np.log(np.diag(root)).sum()
        return float(0.5 * z @ z + volume + self.odds[s].sum())

    def _bend(self, s: Int[np.ndarray, " chosen"]) -> np.ndarray:
        return self.curvature[np.ix_(s, s)] + np.diag(self.slab[s])


@dataclass(frozen=True)
class Found:
    """Choices in the order of their evidence, with shares that add up to one."""

    choices: tuple[Choice, ...]
    shares: Float[np.ndarray, " choice"]
    inclusion: Float[np.ndarray, " coefficient"]
    """How likely each coefficient is not zero, over all choices that were looked at."""
    written: Bool[np.ndarray, " coefficient"]
    """Which coefficients to write down, where one equation must stand for all of them."""
    log_evidence: float
    """Of all of them."""


def select(
    surrogate: Surrogate,
    begin: Choice,
    allowed: np.ndarray,
    always: np.ndarray,
    groups: np.ndarray,
    keep: int,
    *,
    pairs: bool = False,
) -> Found:
    """The best choice by a search from `begin`, and others that are likely too.

    Terms are exchanged within the same of the `groups` only: the equation they stand in. With
    `pairs`, two terms of different equations are also changed together, for equations that are tied
    to each other.
    """
    seen: dict[Choice, float] = {}

    def look(choice: frozenset[int]) -> float:
        key = tuple(sorted(choice))
        if key not in seen:
            value = surrogate.log_evidence(key)
            seen[key] = value if np.isfinite(value) else -LEAST
        return seen[key]

    sure = frozenset(np.flatnonzero(always).tolist())
    open_ = [int(i) for i in np.flatnonzero(allowed & ~always)]

    def near(choice: frozenset[int]):
        for i in open_:
            yield choice ^ {i}
        for i in choice - sure:
            for j in open_:
                if j not in choice and groups[i] == groups[j]:
                    yield (choice - {i}) | {j}
        if pairs:
            for i, j in combinations(open_, 2):
                if groups[i] != groups[j]:
                    yield choice ^ {i, j}

    best = frozenset(begin) & frozenset(open_) | sure
    for _ in range(MOST_MOVES):
        better = max(near(best), key=look, default=best)
        if look(better) <= look(best):
            break
        best = better
    if keep > 1:
        _wander(look, best, sure, open_, groups, pairs=pairs)
    top = max(seen.values())
    shares = {choice: np.exp(value - top) for choice, value in seen.items()}
    total = sum(shares.values())
    inclusion = np.zeros(len(surrogate.linear))
    for choice, share in shares.items():
        inclusion[list(choice)] += share / total
    order = sorted(seen, key=lambda choice: -seen[choice])
    kept, weights = _kept(order, np.array([shares[one] / total for one in order]), keep)
    written = _written(kept, seen, surrogate.odds, groups)
    return Found(kept, weights, inclusion, written, float(top + np.log(total)))


def _wander(
    look: Callable[[frozenset[int]], float],
    begin: frozenset[int],
    sure: frozenset[int],
    open_: list[int],
    groups: np.ndarray,
    *,
    pairs: bool,
) -> None:
    """Look at choices where the probability is, by Metropolis steps: always the same ones."""
    if not open_:
        return
    random = np.random.default_rng(0)
    now = begin
    for _ in range(CHAIN):
        move, inside = random.random(), sorted(now - sure)
        i = open_[random.integers(len(open_))]
        new = now ^ {i}
        if move < 0.5 and inside:  # exchange; as likely there as back
            i = inside[random.integers(len(inside))]
            others = [j for j in open_ if j not in now and groups[j] == groups[i]]
            if not others:
                continue
            new = (now - {i}) | {others[random.integers(len(others))]}
        elif move > 0.8 and pairs:
            new ^= {open_[random.integers(len(open_))]}
        if np.log(random.random()) < look(new) - look(now):
            now = new


def _written(
    kept: tuple[Choice, ...],
    seen: dict[Choice, float],
    odds: Float[np.ndarray, " coefficient"],
    groups: np.ndarray,
) -> Bool[np.ndarray, " coefficient"]:
    """The likeliest equation of each group; of those that are about as likely, the simplest.

    They have as many terms, and the odds against them are worth no more than a bare mention: a
    term that says less takes the place of one that says more where the data do not tell them apart.
    """
    top = max(seen.values())
    written = np.zeros(len(odds), bool)
    for group in np.unique(groups):

        def of_group(choice: Choice, group=group) -> Choice:
            return tuple(i for i in choice if groups[i] == group)

        likely = dict.fromkeys(map(of_group, kept), 0.0)
        for choice, value in seen.items():
            mine = of_group(choice)
            if mine in likely:
                likely[mine] += np.exp(value - top)
        best = max(likely, key=lambda one: likely[one])
        close = [
            one
            for one in likely
            if len(one) == len(best) and likely[one] * BARE_MENTION >= likely[best]
        ]
        written[list(max(close, key=lambda one: odds[list(one)].sum()))] = True
    return written


def _kept(
    order: list[Choice], shares: Float[np.ndarray, " choice"], keep: int
) -> tuple[tuple[Choice, ...], Float[np.ndarray, " kept"]]:
    """Few choices that stand for all, the likeliest first, with shares that add up to one.

    The likeliest ones where they hold most of the probability; else a systematic sample, in which
    each is drawn in proportion to its share.
    """
    first = shares[:keep]
    if keep == 1 or first.sum() >= MOST:
        first = first[first >= first[0] * np.exp(-WITHIN)]
        return tuple(order[: len(first)]), first / first.sum()
    places = np.searchsorted(np.cumsum(shares), (np.arange(keep) + 0.5) / keep)
    places = np.minimum(places, len(order) - 1)
    places[0] = 0
    drawn, counts = np.unique(places, return_counts=True)
    return tuple(order[place] for place in drawn), counts / keep
