"""A training loss that is the certificate itself, but for its sampling."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr

from hybridsde._types import PRNGKeyArray
from hybridsde.certify.losses import AbstractLoss
from hybridsde.data import Batch
from hybridsde.model import BayesianSDE
from hybridsde.objective import AbstractObjective, Terms, log_likelihoods
from hybridsde.simulate import AbstractSolver, simulate


class GibbsRisk(AbstractObjective):
    """(√(R̂ + B) + √B)²,   B = (KL + ln(2√n/δ)) / 2n      (Thiemann et al. 2017 give the form).

    An upper bound on the risk that can be differentiated: R̂ is the loss of sampled networks on
    the batch, KL that of the weights against their prior. n counts the trajectories that the prior
    has not seen.
    """

    loss: AbstractLoss
    solver: AbstractSolver
    bound_series: int = eqx.field(static=True)
    delta: float = eqx.field(static=True, default=0.05)
    samples: int = eqx.field(static=True, default=4)
    paths: int = eqx.field(static=True, default=8)

    def __call__(self, model: BayesianSDE, batch: Batch, total: int, *, key: PRNGKeyArray) -> Terms:
        """The bound with the batch in place of all trajectories."""
        del total
        path_key, noise_key = jr.split(key)
        found = simulate(
            model, self.solver, batch, samples=self.samples, paths=self.paths, key=path_key
        )
        later = slice(model.context, None)
        states = found.states[:, :, later]
        means = model.observation.mean(states)
        draws = model.observation.sample(states, key=noise_key)
        shape = (self.samples, self.paths, *means.shape[1:])

        over_series = jax.vmap(self.loss, (1, 1, 0, 0))
        values, observed = batch.values[:, later], batch.observed[:, later]
        risk = jax.vmap(over_series, (0, 0, None, None))(
            means.reshape(shape), draws.reshape(shape), values, observed
        ).mean()
        kl = model.network.kl_to_prior()
        n = self.bound_series
        penalty = (kl + math.log(2 * math.sqrt(n) / self.delta)) / (2 * n)
        loss = (jnp.sqrt(risk + penalty) + jnp.sqrt(penalty)) ** 2
        mll = log_likelihoods(model, found, batch).mean()
        return Terms(loss, mll, found.kl.mean(), kl, loss - risk)
