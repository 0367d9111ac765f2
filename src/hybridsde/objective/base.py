"""What every training objective is: a loss with named terms."""

import abc
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from hybridsde._types import Array, Float, PRNGKeyArray, Scalar
from hybridsde.data import Batch
from hybridsde.data.checks import check_whole
from hybridsde.model import BayesianSDE
from hybridsde.simulate import AbstractSolver, Paths, filtered, simulate

ESTIMATORS = ("mean_log", "log_mean", "filtered")


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
    def __call__(
        self,
        model: BayesianSDE,
        solver: AbstractSolver,
        batch: Batch,
        total: int,
        *,
        key: PRNGKeyArray,
    ) -> Terms:
        """The terms on `batch`, which stands for `total` series."""


class Estimate(NamedTuple):
    """What every objective is made of."""

    log_likelihood: Float[Array, " series"]
    path_kl: Scalar
    """Mean over series."""


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
      The only one under which diffusion and observation noise can both be learned.
    """
    if estimator == "filtered":
        found = filtered(model, solver, batch, samples=samples, key=key)
        return Estimate(found.log_likelihood.mean(0), found.kl.mean())
    paths = simulate(model, solver, batch, samples=samples, key=key)
    return Estimate(evidence(log_likelihoods(model, paths, batch), estimator), paths.kl.mean())


def log_likelihoods(
    model: BayesianSDE, paths: Paths, batch: Batch
) -> Float[Array, "sample series"]:
    """Ln p(Y_n | h^{n,s}) = Σ_k ln p(y_k | h_k), without the first time where it is given."""

    def of_one_sample(states: Float[Array, "series time state"]) -> Float[Array, " series"]:
        later = slice(model.explained, None)
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


def check_settings(samples: int, estimator: str) -> None:
    """Settings that both Empirical Bayes and Empirical PAC-Bayes share."""
    check_whole(samples, "samples")
    if estimator not in ESTIMATORS:
        raise ValueError(
            f"`estimator` must be one of {', '.join(ESTIMATORS)}, but is {estimator!r}."
        )
