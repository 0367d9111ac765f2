"""What every training objective is: a loss with named terms."""

import abc
from dataclasses import replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr

from hybridsde._streams import Beside, beside
from hybridsde._types import Array, Evidence, Float, PRNGKeyArray, Scalar
from hybridsde.data import Batch
from hybridsde.data.checks import check_whole
from hybridsde.estimate import entries, filtered
from hybridsde.model import BayesianSDE, GaussianObservation
from hybridsde.simulate import AbstractSolver, Paths, simulate

FILTERS = ("filtered", "ahead")
ESTIMATORS = ("auto", *FILTERS, "mean_log", "log_mean")


class Terms(NamedTuple):
    """The parts of a loss, for logging. Whatever the objective, each means the same."""

    loss: Scalar
    log_likelihood: Scalar
    """Mean over series of the estimated ln p(Y_n)."""
    path_kl: Scalar
    """Mean over series of the path KL."""
    weight_kl: Scalar
    complexity: Scalar
    """What the objective adds to minus the log-likelihood."""


class AbstractObjective(eqx.Module):
    """A loss to minimise, estimated from a batch of the training series."""

    @abc.abstractmethod
    def __call__(self, model: Any, batch: Batch, total: int, *, key: PRNGKeyArray) -> Terms:
        """The terms on `batch`, which stands for `total` series."""


def solver_of(objective: AbstractObjective) -> AbstractSolver | None:
    """The scheme that a loss moves paths with, in whichever field; None where it has none."""
    fields = vars(objective).values()
    return next((one for one in fields if isinstance(one, AbstractSolver)), None)


class AbstractSDEObjective(AbstractObjective):
    """A loss of a Bayesian SDE, with the scheme that moves its paths and the estimator of ln p(Y).

    - `samples`: draws of the weights for every series and gradient step.
    - `estimator`: of ln p(Y_n); see `estimate`. "auto" is "filtered" where observations are linear
      in the states, else "mean_log".
    - `solver`: the scheme; None leaves the choice to `fit`, which looks at the data.
    """

    samples: eqx.AbstractVar[int]
    estimator: eqx.AbstractVar[Evidence]
    solver: eqx.AbstractVar[AbstractSolver | None]

    def __check_init__(self):
        check_whole(self.samples, "samples")
        if self.estimator not in ESTIMATORS:
            raise ValueError(
                f"`estimator` must be one of {', '.join(ESTIMATORS)}, but is {self.estimator!r}."
            )

    def with_solver(self, solver: AbstractSolver) -> "AbstractSDEObjective":
        """The same loss with another scheme."""
        return replace(self, solver=solver)

    def entered(self, model: BayesianSDE, batch: Batch, *, key: PRNGKeyArray) -> Batch:
        """Pieces of recordings with what the rows before them say of the state, where they are
        filtered. Asked once an epoch.

        Forecasts ahead begin as those of a new recording do: on real tanks whose upper one is not
        measured they learned less from pieces whose beginning was known.
        """
        if batch.past is None:
            return batch
        alone = eqx.tree_at(lambda b: b.past, batch, None, is_leaf=lambda x: x is batch.past)
        if self.solver is None or resolved(self.estimator, model) != "filtered":
            return alone
        key = beside(key, Beside.ENTRY)
        return replace(alone, entry=entries(model, self.solver, batch.past, key=key))

    def estimate(
        self, model: BayesianSDE, batch: Batch, total: int, *, key: PRNGKeyArray
    ) -> "Estimate":
        """Ln p(Y_n) and the path KL, by this loss's scheme and estimator.

        What is known beside equations counts as a further recording, in equal parts with each of
        the `total` series.
        """
        if self.solver is None:
            raise ValueError(
                "The objective has no `solver`. Name one, such as Heun(substeps=2), or leave it to "
                "`fit`."
            )
        found = estimate(model, self.solver, batch, self.samples, self.estimator, key=key)
        if model.constraints is None:
            return found
        known = log_knowledge(model, self.samples, key=beside(key, Beside.KNOWLEDGE))
        return found._replace(known=known / total)


def resolved(estimator: str, model: BayesianSDE) -> str:
    """What "auto" stands for."""
    if estimator != "auto":
        return estimator
    return "filtered" if isinstance(model.observation, GaussianObservation) else "mean_log"


class Estimate(NamedTuple):
    """What every objective is made of."""

    log_likelihood: Float[Array, " series"]
    path_kl: Scalar
    """Mean over series."""
    known: Scalar | float = 0.0
    """Ln p(K | θ) of what is known beside equations, each series' part of it."""


def estimate(
    model: BayesianSDE,
    solver: AbstractSolver,
    batch: Batch,
    samples: int,
    estimator: str,
    *,
    key: PRNGKeyArray,
) -> Estimate:
    """Ln p(Y_n) of every series, and the path KL, from `samples` draws of the weights.

    - mean_log, log_mean: by sampled paths; see `evidence`.
    - filtered: the Wiener noise is integrated out by a Kalman filter, (1/S) Σ_s ln p(Y_n | θ^s).
      Under it diffusion and observation noise can both be learned.
    - ahead: the same up to a random row, and forecasts over many rows from there; see `filtered`.
    """
    estimator = resolved(estimator, model)
    if estimator in FILTERS:
        ahead = estimator == "ahead"
        found = filtered(model, solver, batch, samples=samples, ahead=ahead, key=key)
        return Estimate(found.log_likelihood.mean(0), found.kl.mean())
    paths = simulate(model, solver, batch, samples=samples, key=key)
    return Estimate(evidence(log_likelihoods(model, paths, batch), estimator), paths.kl.mean())


def log_knowledge(model: BayesianSDE, samples: int, *, key: PRNGKeyArray) -> Scalar:
    """E ln p(K | θ) of what is known beside equations, from draws of the weights."""
    assert model.constraints is not None
    constraints = model.constraints.value
    keys, numbers = jr.split(key, samples), jnp.arange(samples)
    drawn = jax.vmap(lambda k, n: constraints.log_prob(model.draw(key=k, number=n)))
    return drawn(keys, numbers).mean()


def log_likelihoods(
    model: BayesianSDE, paths: Paths, batch: Batch
) -> Float[Array, "sample series"]:
    """Ln p(Y_n | h^{n,s}) = Σ_k ln p(y_k | h_k), without the first time where it is given."""

    def of_one_sample(states: Float[Array, "series time state"]) -> Float[Array, " series"]:
        later = slice(model.first_scored_row, None)
        per_time = model.observation.log_prob(
            batch.values[:, later], batch.observed[:, later], states[:, later]
        )
        return per_time.sum(-1)

    return jax.vmap(of_one_sample)(paths.states)


def evidence(logs: Float[Array, "sample series"], estimator: str) -> Float[Array, " series"]:
    """Ln p(Y_n) from S sampled paths.

    - log_mean: ln (1/S) Σ_s p(Y_n | h^s)      (eq. marglik-mc), the marginal likelihood itself
    - mean_log: (1/S) Σ_s ln p(Y_n | h^s)      (eq. training_loss), a lower bound by Jensen
    """
    if estimator == "mean_log":
        return logs.mean(0)
    return jax.nn.logsumexp(logs, 0) - jnp.log(len(logs))
