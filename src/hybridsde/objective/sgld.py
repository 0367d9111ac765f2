"""Langevin sampling of the weights: the most probable ones, and those around them."""

import equinox as eqx
import jax.numpy as jnp

from hybridsde._types import Array, Float, Int, PRNGKeyArray
from hybridsde.data import Batch
from hybridsde.data.checks import check_positive, check_whole
from hybridsde.model import BayesianMLP, BayesianSDE, SampledNetworks
from hybridsde.objective.base import AbstractObjective, Terms, check_settings, estimate
from hybridsde.simulate import AbstractSolver

DECAY = 0.55
"""The step falls with this power of time (Welling and Teh 2011)."""


class SGLD(AbstractObjective):
    """Stochastic-gradient Langevin dynamics: D-BNN (SGLD) of the paper.

    Training first finds the most probable weights, with encoder, decoder and all else,

        loss = −(1/N) [Σ_n ln p(Y_n | θ) + ln p_pri(θ)].

    The weights alone then go on from there with noise that decays (Welling and Teh 2011),

        θ ← θ + ε_t ∇[Σ_n ln p(Y_n | θ) + ln p_pri(θ)] + √(2 ε_t) η,
        ε_t = (ε/λ) (1 + 100 t/T)^−0.55,

    where λ is the steepest curvature at the most probable weights: steps of more than 2/λ diverge,
    and λ differs by many orders of magnitude from one model to another. `keep` networks from the
    second half of the T `steps` are what forecasts draw from, each held along its path. Where
    snippets are trained on, those of the last length stand for the series here too. A fit that is
    taken up from a checkpoint repeats its Langevin steps.
    """

    samples: int = eqx.field(static=True, default=2)
    estimator: str = eqx.field(static=True, default="mean_log")
    steps: int = eqx.field(static=True, default=5000)
    step_size: float = eqx.field(static=True, default=0.5)
    """ε, the first step in units of 1/λ."""
    keep: int = eqx.field(static=True, default=50)

    def __check_init__(self):
        check_settings(self.samples, self.estimator)
        check_whole(self.keep, "keep")
        check_whole(self.steps, "steps", least=self.blocks)
        if self.steps % self.blocks:
            raise ValueError(
                f"`steps` must be a multiple of twice `keep`, {self.blocks}, but is {self.steps}."
            )
        check_positive(self.step_size, "step_size")

    def __call__(
        self,
        model: BayesianSDE,
        solver: AbstractSolver,
        batch: Batch,
        total: int,
        *,
        key: PRNGKeyArray,
    ) -> Terms:
        """Minus the logarithm of the posterior density at the mean weights, per series."""
        network = model.network
        log_prior = jnp.zeros(())
        if isinstance(network, BayesianMLP):
            log_prior = network.log_prior(network.mean())
            model = model.with_networks(SampledNetworks.point(network.mean()))
        found = estimate(model, solver, batch, self.samples, self.estimator, key=key)
        mll, price = found.log_likelihood.mean(), -log_prior / total
        return Terms(price - mll, mll, found.path_kl, model.network.kl_to_prior(), price)

    @property
    def blocks(self) -> int:
        """Langevin steps come in so many blocks; a network is kept after each of the later half."""
        return 2 * self.keep

    def step_at(self, t: Int[Array, ""]) -> Float[Array, ""]:
        """ε_t in units of 1/λ."""
        return self.step_size * (1 + 100 * t / self.steps) ** -DECAY
