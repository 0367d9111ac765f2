"""A Bayesian SDE with all its numbers, and one draw from it."""

import equinox as eqx
import jax
import jax.numpy as jnp

from hybridsde._parameters import Fixed
from hybridsde._types import Array, Bool, Float, Numbers, PRNGKeyArray, PyTree, Scalar
from hybridsde.data import Batch
from hybridsde.model.bayesian import AbstractBayesianNetwork, SampledNetworks
from hybridsde.model.diffusion import AbstractDiffusion, check_invertible, constant_diffusion
from hybridsde.model.drift import KnownDrift, LearnedDrift, make_gate
from hybridsde.model.network import ZeroNetwork
from hybridsde.model.observation import AbstractObservation
from hybridsde.model.scaling import Scale
from hybridsde.model.start import AbstractStart
from hybridsde.model.weights import AbstractWeights, HeldWeights
from hybridsde.physics import AbstractPhysics


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


def physics_sde(
    physics: AbstractPhysics,
    diffusion: Numbers,
    states: tuple[str, ...],
    inputs: tuple[str, ...] = (),
) -> SDE:
    """The SDE of complete physics: every drift known, nothing learned."""
    gate = make_gate(None, states, physics.known(states, inputs))
    scale = Scale.identity(len(states), len(inputs))
    return SDE(
        LearnedDrift(ZeroNetwork(outputs=len(states)), scale, autonomous=True),
        KnownDrift(physics, gate, states, inputs),
        constant_diffusion(diffusion, states),
    )


class BayesianSDE(eqx.Module):
    """The hyperparameters φ and everything that is held fixed around them."""

    network: AbstractBayesianNetwork
    weights: AbstractWeights
    known: KnownDrift
    diffusion: AbstractDiffusion
    observation: AbstractObservation
    start: AbstractStart
    scale: Fixed
    autonomous: bool = eqx.field(static=True)
    interpolation: str = eqx.field(static=True, default="held")
    """Of the inputs between their times: held or linear."""
    context: int = eqx.field(static=True, default=1)
    """How many first rows a forecast is given; it is judged on those after them."""
    first_scored_row: int = eqx.field(static=True, default=1)
    """The first row that the likelihood counts: 0 where the start is encoded, so that it is too."""

    @property
    def states(self) -> int:
        """How many states there are."""
        return len(self.known.states)

    @property
    def start_normals(self) -> int:
        """How many standard normals a draw of h₀ takes."""
        return self.start.normals(self.states)

    def with_networks(self, networks: SampledNetworks) -> "BayesianSDE":
        """The model that draws one of these networks for a path."""
        return eqx.tree_at(lambda m: (m.network, m.weights), self, (networks, HeldWeights()))

    def draw(self, *, key: PRNGKeyArray) -> SDE:
        """θ ~ p_φ(θ), and the SDE that it drives."""
        network = self.weights.draw(self.network, key=key)
        learned = LearnedDrift(network, self.scale.value, self.autonomous)
        return SDE(learned, self.known, self.diffusion)

    def initial_state(
        self,
        values: Float[Array, "time obs"],
        observed: Bool[Array, "time obs"],
        epsilon: Float[Array, " normal"],
    ) -> Float[Array, " state"]:
        """h₀ ~ p(h₀) for one series, from its first observations and standard normals."""
        return self.start(values, observed, self.observation, self.scale.value, epsilon)


def check_starts(model: BayesianSDE, batch: Batch) -> None:
    """A `ValueError` where G is singular at the start of a series."""
    zero = jnp.zeros(model.start_normals)
    starts = jax.vmap(lambda y, seen: model.initial_state(y, seen, zero))
    check_invertible(model.diffusion, batch.times[:, 0], starts(batch.values, batch.observed))
