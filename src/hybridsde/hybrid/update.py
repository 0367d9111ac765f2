"""What further recordings make of a fitted model: its posterior becomes their prior.

p(θ | old, new) ∝ p(new | θ) p(θ | old), so that old recordings are not needed again
(Haussmann et al. 2021 learn their prior in the same way). The learned part moves; physical
parameters, diffusion, noise and starts stay as they were fitted, and so do the scales of its
features and where it is believed. What is known beside equations is in the old posterior already,
so it is not counted again.
"""

from dataclasses import dataclass, replace

import equinox as eqx
import numpy as np

from hybridsde._parameters import Fixed
from hybridsde._types import Array, Float, Int, PRNGKeyArray, Scalar
from hybridsde.data import Batch
from hybridsde.fit import Fitted, Training, train
from hybridsde.fit.progress import Callback
from hybridsde.hybrid.forecaster import only_weights
from hybridsde.hybrid.scoring import Local, LogLikelihood
from hybridsde.model import BayesianMLP, BayesianSDE, MixtureMLP
from hybridsde.model.bayesian import AbstractBayesianNetwork
from hybridsde.model.library import BayesianLibrary
from hybridsde.model.network import AbstractNetwork
from hybridsde.objective import ELBO
from hybridsde.simulate import AbstractSolver

STEPS = 20
"""Of the search for the new mean, at most."""
SETTLED = 0.01
"""It is over when no number moves by more than this in standard deviations."""
SHORTEST = 2.0**-6
"""Of a step, as a share of the whole one."""


class Known(AbstractBayesianNetwork):
    """Networks whose prior is what they were before: KL(q ‖ before) instead of KL(q ‖ prior)."""

    network: BayesianMLP | MixtureMLP
    before: Fixed
    """A `MeanField` in the shape of the posterior."""

    @classmethod
    def of(cls, network: BayesianMLP | MixtureMLP) -> "Known":
        """As known as it is now."""
        return cls(network, Fixed(network.posterior))

    @property
    def turns(self) -> int:
        """As the networks do."""
        return self.network.turns

    def sample(self, *, key: PRNGKeyArray, number: Int[Array, ""] | None = None) -> AbstractNetwork:
        """As the networks do."""
        return self.network.sample(key=key, number=number)

    def local(self) -> AbstractNetwork:
        """As the networks do."""
        return self.network.local()

    def mean(self) -> AbstractNetwork:
        """As the networks do."""
        return self.network.mean()

    def kl_to_prior(self) -> Scalar:
        """KL(q ‖ before); of several networks the mean, each to itself before."""
        total = self.network.posterior.kl_to(self.before.value)
        return total / self.network.count if isinstance(self.network, MixtureMLP) else total


def update_networks(
    model: BayesianSDE,
    solver: AbstractSolver,
    batch: Batch,
    training: Training,
    callbacks: tuple[Callback, ...],
    *,
    key: PRNGKeyArray,
) -> Fitted[BayesianSDE]:
    """Variational Bayes: E_q ln p(new | θ) − KL(q ‖ before), by gradients of the weights alone."""
    before = model.network
    assert isinstance(before, BayesianMLP | MixtureMLP)
    samples = before.count if isinstance(before, MixtureMLP) else 2
    begun = eqx.tree_at(lambda m: m.network, without_constraints(model), Known.of(before))
    loss = ELBO(samples=samples, solver=solver)
    found = train(
        begun, batch, loss, training=training, callbacks=callbacks, select=only_weights, key=key
    )

    def unwrapped(moved: BayesianSDE) -> BayesianSDE:
        assert isinstance(moved.network, Known)
        return eqx.tree_at(lambda m: m.network, model, moved.network.network)

    return found.map(unwrapped)


@dataclass(frozen=True)
class Gaussian:
    """What is known of the coefficients of one choice of terms: N(m, P⁻¹); others are zero."""

    free: Int[np.ndarray, " free"]
    """Where they stand among all coefficients."""
    mean: Float[np.ndarray, " free"]
    precision: Float[np.ndarray, "free free"]

    def told(self, about: Local, coefficients: int) -> tuple["Gaussian", float]:
        """After ln p(Y | θ) = c + bᵀθ − ½ θᵀHθ, and the log-evidence of that, less c.

        N(m, P⁻¹) becomes N(A⁻¹(b + Pm), A⁻¹) with A = H + P, and
        ln p(Y) = c + ½ (b + Pm)ᵀA⁻¹(b + Pm) − ½ mᵀPm + ½ ln|P| − ½ ln|A|.
        Numbers that are no coefficients are held, which is in b.
        """
        held = np.arange(len(about.at)) >= coefficients
        across = about.information[np.ix_(self.free, np.flatnonzero(held))]
        linear = about.linear[self.free] - across @ about.at[held]
        bend = about.information[np.ix_(self.free, self.free)] + self.precision
        pull = linear + self.precision @ self.mean
        mean = np.linalg.solve(bend, pull)
        volume = np.linalg.slogdet(self.precision)[1] - np.linalg.slogdet(bend)[1]
        evidence = 0.5 * (pull @ mean - self.mean @ self.precision @ self.mean + volume)
        return Gaussian(self.free, mean, bend), float(evidence)

    def log_prob(self, theta: Float[np.ndarray, " number"]) -> float:
        """Up to a constant."""
        apart = theta[self.free] - self.mean
        return -0.5 * float(apart @ self.precision @ apart)

    def put_into(
        self, theta: Float[np.ndarray, " number"], coefficients: int
    ) -> Float[np.ndarray, " number"]:
        """All numbers, with these at their mean and all other coefficients zero."""
        found = theta.copy()
        found[:coefficients] = 0.0
        found[self.free] = self.mean
        return found

    def root(self) -> Float[np.ndarray, "free free"]:
        """An upper triangular root of the covariance."""
        return np.linalg.inv(np.linalg.cholesky(self.precision)).T


@dataclass(frozen=True)
class Updated:
    """A model after further recordings."""

    model: BayesianSDE
    log_likelihoods: tuple[float, ...]
    """Of the new recordings, along the way."""


def update_library(model: BayesianSDE, solver: AbstractSolver, batch: Batch) -> Updated:
    """Bayes' rule for every choice of terms, and for the shares of the choices.

    The log-likelihood of the new recordings is taken for a parabola about the mean of the best
    choice, which moves until it stays.
    """
    network = model.network
    assert isinstance(network, BayesianLibrary)
    bare = without_constraints(model)
    likelihood = LogLikelihood(bare, network.mean(), solver, batch)
    shares = np.asarray(network.shares.value, float)
    used = np.flatnonzero(shares > 0)
    choices = [_before(network, int(k)) for k in used]
    best = choices[int(shares[used].argmax())]
    count = likelihood.coefficients
    about = likelihood(best.put_into(likelihood.start, count))
    values = [about.value]
    for _ in range(STEPS):
        moved = _step(likelihood, about, best)
        far = (moved.at - about.at)[best.free] ** 2 * np.diag(about.information)[best.free]
        about = moved
        values.append(about.value)
        if far.max(initial=0.0) < SETTLED**2:
            break
    told = [one.told(about, count) for one in choices]
    logs = np.log(shares[used]) + np.array([evidence for _, evidence in told])
    learned = _library(network, [one for one, _ in told], logs)
    return Updated(eqx.tree_at(lambda m: m.network, model, learned), tuple(values))


def without_constraints(model: BayesianSDE) -> BayesianSDE:
    """A model that is held to nothing but its equations."""
    return replace(model, constraints=None)


def _before(network: BayesianLibrary, choice: int) -> Gaussian:
    """What is known of the coefficients of a choice before the new recordings."""
    chosen = np.flatnonzero(np.asarray(network.chosen.value[choice]))
    root = np.triu(np.asarray(network.factors[choice], float)[np.ix_(chosen, chosen)])
    inverse = np.linalg.solve(root, np.eye(len(chosen)))
    coefficients = np.asarray(network.means[choice], float).reshape(-1)[chosen]
    return Gaussian(chosen, coefficients, inverse.T @ inverse)


def _step(likelihood: LogLikelihood, about: Local, prior: Gaussian) -> Local:
    """To the top of the parabola, or a part of the way, where that is higher; else nowhere."""
    count = likelihood.coefficients
    there = prior.told(about, count)[0].put_into(about.at, count)
    share = 1.0
    while share >= SHORTEST:
        tried = likelihood(about.at + share * (there - about.at))
        gain = tried.value + prior.log_prob(tried.at) - about.value - prior.log_prob(about.at)
        if tried.finite and gain >= 0:
            return tried
        share /= 2
    return about


def _library(
    network: BayesianLibrary, choices: list[Gaussian], logs: Float[np.ndarray, " choice"]
) -> BayesianLibrary:
    """The same terms with other coefficients and shares, the largest first.

    The prior, which certificates compare with, is that of the first fit.
    """
    order = np.argsort(-logs, kind="stable")
    weights = np.exp(logs - logs.max())
    pieces = [(one.free, one.mean, one.root()) for one in (choices[k] for k in order)]
    return network.with_choices(pieces, (weights / weights.sum())[order])
