"""The most probable weights: where Langevin sampling begins."""

import equinox as eqx
import jax.numpy as jnp

from hybridsde._types import Evidence, PRNGKeyArray
from hybridsde.data import Batch
from hybridsde.model import BayesianMLP, BayesianSDE, SampledNetworks
from hybridsde.objective.base import AbstractSDEObjective, Terms
from hybridsde.simulate import AbstractSolver


class LogPosterior(AbstractSDEObjective):
    """loss = −(1/N) [Σ_n ln p(Y_n | θ) + ln p_pri(θ)] at the mean weights, θ = μ.

    With `Langevin` steps after it, D-BNN (SGLD) of the paper.
    """

    samples: int = eqx.field(static=True, default=2)
    estimator: Evidence = eqx.field(static=True, default="auto")
    solver: AbstractSolver | None = None

    def __call__(self, model: BayesianSDE, batch: Batch, total: int, *, key: PRNGKeyArray) -> Terms:
        """Minus the logarithm of the posterior density, per series."""
        network = model.network
        log_prior = jnp.zeros(())
        if isinstance(network, BayesianMLP):
            log_prior = network.log_prior(network.mean())
            model = model.with_networks(SampledNetworks.point(network.mean()))
        found = self.estimate(model, batch, total, key=key)
        mll, penalty = found.log_likelihood.mean(), -log_prior / total
        kl = model.network.kl_to_prior()
        return Terms(penalty - mll - found.known, mll, found.path_kl, kl, penalty)
