"""A Bayesian SDE with all its numbers, and one draw from it."""

import equinox as eqx

from hybridsde._parameters import Fixed
from hybridsde._types import Array, Float, PRNGKeyArray, PyTree, Scalar
from hybridsde.model.bayesian import BayesianMLP
from hybridsde.model.diffusion import AbstractDiffusion
from hybridsde.model.drift import KnownDrift, LearnedDrift
from hybridsde.model.observation import GaussianObservation
from hybridsde.model.start import AbstractStart
from hybridsde.model.weights import AbstractWeights


class SDE(eqx.Module):
    """One draw of the weights: dh = (f_θ(h,t) + γ ∘ r_ξ(h,t)) dt + G(h,t) dW.

    Haussmann et al. 2021, eq. hybrid_sde. With the learned part left out it is the prior
    process of eq. prior_sde; with nothing known it is the black box of eq. bbsde.
    """

    learned: LearnedDrift
    known: KnownDrift
    diffusion: AbstractDiffusion

    def drift(
        self, t: Scalar, h: Float[Array, " state"], u: Float[Array, " input"], noise: PyTree
    ) -> tuple[Float[Array, " state"], Float[Array, " state"]]:
        """The learned and the known part."""
        return self.learned(t, h, u, noise), self.known(t, h, u)


class BayesianSDE(eqx.Module):
    """The hyperparameters φ and everything that is held fixed around them."""

    network: BayesianMLP
    weights: AbstractWeights
    known: KnownDrift
    diffusion: AbstractDiffusion
    observation: GaussianObservation
    start: AbstractStart
    scale: Fixed
    autonomous: bool = eqx.field(static=True)

    def draw(self, *, key: PRNGKeyArray) -> SDE:
        """θ ~ p_φ(θ), and the SDE that it drives."""
        network = self.weights.draw(self.network, key=key)
        learned = LearnedDrift(network, self.scale.value, self.autonomous)
        return SDE(learned, self.known, self.diffusion)

    def initial_state(self, values, observed, *, key: PRNGKeyArray) -> Float[Array, " state"]:
        """h₀ ~ p(h₀) for one series, from its first observations."""
        return self.start(values, observed, self.observation, self.scale.value, key=key)
