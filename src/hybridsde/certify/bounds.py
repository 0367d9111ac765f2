"""From sampled losses to a bound, with every term that went into it.

Each function returns a `Bound`. Its `parts` say, in order, by how much the bound grows as each
term is counted in; they add up to the bound.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from hybridsde.certify.inequalities import (
    CATONI_GRID,
    Reals,
    bernstein_factor,
    betting,
    catoni,
    clopper_pearson,
    empirical_bernstein,
    kl_inverse,
    log_xi,
    pac_bayes_kl,
    pac_bayes_pinsker,
    unexpected_bernstein,
)

MONTE_CARLO_SHARE = 0.1
"""The share of δ that is spent on sampling hypotheses."""


@dataclass(frozen=True)
class Bound:
    """An upper bound and what it is made of. Numbers may be arrays over repetitions."""

    value: Reals
    parts: Mapping[str, Reals]
    terms: Mapping[str, Reals] = field(default_factory=dict)


@dataclass(frozen=True)
class Offset:
    """a and η of the un-expected-Bernstein bound, fixed without the bound's data."""

    a: Reals
    eta: Reals

    @property
    def factor(self) -> Reals:
        """c, the weight of (X − a)²."""
        return bernstein_factor(self.a, self.eta)

    @property
    def largest(self) -> Reals:
        """The largest Z that a loss in [0, 1] can give."""
        c, a = self.factor, np.asarray(self.a)
        return np.maximum(c * a**2, 1 + c * (1 - a) ** 2)


class Shares(NamedTuple):
    """How δ is divided."""

    plain: float
    """For the PAC-Bayes statement, were there one model only."""
    own: float
    """The same, for one of `models_compared` models."""
    sampling: float
    """For the sampling of hypotheses of that model."""


def shares(delta: float, models_compared: int) -> Shares:
    """A tenth of δ for sampling, the rest for the statement, both divided among the models."""
    plain = (1 - MONTE_CARLO_SHARE) * delta
    return Shares(plain, plain / models_compared, MONTE_CARLO_SHARE * delta / models_compared)


def _sampled_risk(losses: np.ndarray, delta: float) -> tuple[Reals, Reals]:
    """Mean of X, and R̂⁺ = kl⁻¹(mean X, ln(1/δ)/(nm)) above it.

    Draws are independent, not of one law, which is enough.
    """
    n, m = losses.shape[-2:]
    mean = losses.mean((-2, -1))
    return mean, kl_inverse(mean, np.log(1 / delta) / (n * m))


def kl_bound(losses: np.ndarray, kl: Reals, delta: float, models_compared: int = 1) -> Bound:
    """Two kl-inversions: of the sampling, then of the PAC-Bayes theorem.

    R(Q) ≤ kl⁻¹(R̂⁺, (KL + ln ξ(n) + ln(M/δ)) / n); needs independent trajectories.
    """
    n = losses.shape[-2]
    plain, own, sampling = shares(delta, models_compared)
    mean, risk = _sampled_risk(losses, sampling)
    steps = {
        "empirical risk": mean,
        "Monte Carlo": risk,
        "confidence": pac_bayes_kl(risk, 0.0, n, plain),
        "union": pac_bayes_kl(risk, 0.0, n, own),
        "KL of weights": pac_bayes_kl(risk, kl, n, own),
    }
    terms = {
        "empirical risk": mean,
        "Monte-Carlo upper risk": risk,
        "KL of weights": kl,
        "ln ξ(n)": log_xi(n),
        "ln union": np.log(models_compared),
        "complexity/n": (np.asarray(kl) + log_xi(n) - np.log(own)) / n,
        "Pinsker form": pac_bayes_pinsker(risk, kl, n, own),
    }
    return _stacked(steps, terms)


def ub_bound(
    losses: np.ndarray, kl: Reals, delta: float, models_compared: int = 1, *, offset: Offset
) -> Bound:
    """R(Q) ≤ up(mean Z) + (KL + ln(M/δ)) / ηn,   Z = X + c(X − a)².

    `up` is an empirical Bernstein bound over the sampled hypotheses. Holds for martingales.
    """
    n = losses.shape[-2]
    plain, own, sampling = shares(delta, models_compared)
    c, a, eta = offset.factor, offset.a, offset.eta
    mean = losses.mean((-2, -1))
    z = losses + _over(c, losses) * (losses - _over(a, losses)) ** 2
    flat = z.reshape(*z.shape[:-2], -1)
    upper = empirical_bernstein(flat, sampling, offset.largest)
    steps = {
        "empirical risk": mean,
        "spread of losses": flat.mean(-1),
        "Monte Carlo": upper,
        "confidence": unexpected_bernstein(upper, 0.0, n, plain, eta=eta),
        "union": unexpected_bernstein(upper, 0.0, n, own, eta=eta),
        "KL of weights": unexpected_bernstein(upper, kl, n, own, eta=eta),
    }
    terms = {
        "empirical risk": mean,
        "Monte-Carlo upper mean of Z": upper,
        "KL of weights": kl,
        "ln union": np.log(models_compared),
        "complexity/n": (np.asarray(kl) - np.log(own)) / n,
        "a": a,
        "η": eta,
        "c": c,
    }
    return _stacked(steps, terms)


def catoni_bound(losses: np.ndarray, kl: Reals, delta: float, models_compared: int = 1) -> Bound:
    """Catoni's bound over a fixed grid of λ; holds for martingales."""
    n = losses.shape[-2]
    plain, own, sampling = shares(delta, models_compared)
    mean, risk = _sampled_risk(losses, sampling)
    steps = {
        "empirical risk": mean,
        "Monte Carlo": risk,
        "confidence": catoni(risk, 0.0, n, plain),
        "union": catoni(risk, 0.0, n, own),
        "KL of weights": catoni(risk, kl, n, own),
    }
    terms = {
        "empirical risk": mean,
        "Monte-Carlo upper risk": risk,
        "KL of weights": kl,
        "ln union": np.log(models_compared),
        "ln grid": np.log(len(CATONI_GRID)),
        "complexity/n": (np.asarray(kl) + np.log(len(CATONI_GRID) / own)) / n,
    }
    return _stacked(steps, terms)


def clopper_pearson_bound(losses: np.ndarray, delta: float, models_compared: int = 1) -> Bound:
    """Misses of a finished forecaster on unseen trajectories, one forecast each."""
    n = losses.shape[-1]
    misses = losses.sum(-1)
    return _held_out(
        losses, lambda d: clopper_pearson(misses, n, d), delta, models_compared, misses=misses
    )


def betting_bound(losses: np.ndarray, delta: float, models_compared: int = 1) -> Bound:
    """Losses of a finished forecaster on unseen trajectories; sharp where they vary little."""
    return _held_out(losses, lambda d: betting(losses, d), delta, models_compared)


def holdout_kl_bound(losses: np.ndarray, delta: float, models_compared: int = 1) -> Bound:
    """kl⁻¹(R̂, ln(M/δ)/n) of a finished forecaster on unseen trajectories."""
    n, mean = losses.shape[-1], losses.mean(-1)
    return _held_out(losses, lambda d: kl_inverse(mean, -np.log(d) / n), delta, models_compared)


def _held_out(
    losses: np.ndarray,
    bound: Callable[[float], Reals],
    delta: float,
    models_compared: int,
    **terms: Reals,
) -> Bound:
    steps = {
        "empirical risk": losses.mean(-1),
        "confidence": bound(delta),
        "union": bound(delta / models_compared),
    }
    return _stacked(
        steps, {"empirical risk": losses.mean(-1), "ln union": np.log(models_compared), **terms}
    )


def _stacked(steps: Mapping[str, Reals], terms: Mapping[str, Reals]) -> Bound:
    """The bound after each step, as what each step adds."""
    names, values = list(steps), [np.asarray(value, float) for value in steps.values()]
    added = [values[0], *(b - a for a, b in pairwise(values))]
    return Bound(values[-1], dict(zip(names, added, strict=True)), terms)


def _over(constant: Reals, losses: np.ndarray) -> Reals:
    """A constant per repetition against losses of repetition × trajectory × draw."""
    constant = np.asarray(constant, float)
    return constant.reshape(constant.shape + (1,) * (losses.ndim - constant.ndim))
