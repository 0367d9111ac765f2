"""Empirical Bayes: choose the hyperparameters φ that make the data most likely."""

import equinox as eqx
import jax.numpy as jnp

from hybridsde._types import Evidence, PRNGKeyArray
from hybridsde.data import Batch
from hybridsde.model import BayesianSDE
from hybridsde.objective.base import AbstractSDEObjective, Terms
from hybridsde.simulate import AbstractSolver


class EmpiricalBayes(AbstractSDEObjective):
    """φ* = argmax (1/N) Σ_n ln p_φ(Y_n)      (Haussmann et al. 2021, eq. marglik-mc).

    With `NoPhysics` this is E-Bayes, with physics E-Bayes-Hybrid. The KL terms are reported but
    cost nothing.
    """

    samples: int = eqx.field(static=True, default=2)
    estimator: Evidence = eqx.field(static=True, default="auto")
    solver: AbstractSolver | None = None

    def __call__(self, model: BayesianSDE, batch: Batch, total: int, *, key: PRNGKeyArray) -> Terms:
        """Minus the evidence of the batch, per series."""
        found = self.estimate(model, batch, total, key=key)
        mll = found.log_likelihood.mean()
        kl = model.network.kl_to_prior()
        return Terms(-mll - found.known, mll, found.path_kl, kl, jnp.zeros_like(mll))
