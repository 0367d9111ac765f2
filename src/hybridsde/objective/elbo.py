"""Variational inference: the evidence lower bound over the weights."""

import equinox as eqx

from hybridsde._types import Evidence, PRNGKeyArray
from hybridsde.data import Batch
from hybridsde.model import BayesianSDE
from hybridsde.objective.base import AbstractSDEObjective, Terms
from hybridsde.simulate import AbstractSolver


class ELBO(AbstractSDEObjective):
    """loss = −(1/N) [Σ_n E_q ln p(Y_n | θ) − KL(q(θ) ‖ p_pri(θ))]: D-BNN (VI) of the paper.

    Per series, so that the KL counts 1/N. With `weights="local"` it is estimated by the local
    reparameterisation trick. Path noise is integrated by sampling, as in the other objectives; the
    path KL is reported and costs nothing.
    """

    samples: int = eqx.field(static=True, default=2)
    estimator: Evidence = eqx.field(static=True, default="auto")
    solver: AbstractSolver | None = None

    def __call__(self, model: BayesianSDE, batch: Batch, total: int, *, key: PRNGKeyArray) -> Terms:
        """Minus the bound of the batch, per series; `total` series share the KL."""
        found = self.estimate(model, batch, total, key=key)
        mll, kl = found.log_likelihood.mean(), model.network.kl_to_prior()
        return Terms(kl / total - mll - found.known, mll, found.path_kl, kl, kl / total)
