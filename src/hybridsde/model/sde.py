"""A Bayesian SDE with all its numbers, and one draw from it."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr

from hybridsde._parameters import Fixed, trainable
from hybridsde._types import Array, Float, Int, Numbers, PRNGKeyArray, PyTree, Scalar
from hybridsde.data import Batch
from hybridsde.model.bayesian import AbstractBayesianNetwork, SampledNetworks
from hybridsde.model.bounds import Bounds
from hybridsde.model.diffusion import AbstractDiffusion, check_invertible, constant_diffusion
from hybridsde.model.drift import KnownDrift, LearnedDrift, LearnedFlow, Symmetry, make_gate
from hybridsde.model.network import AbstractNetwork, ZeroNetwork
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
    bounds: Bounds | None = None
    start: AbstractStart | None = None
    """Where its paths begin, where it has a p(h₀) of its own."""

    def drift(
        self, t: Scalar, h: Float[Array, " state"], u: Float[Array, " input"], noise: PyTree
    ) -> tuple[Float[Array, " state"], Float[Array, " state"]]:
        """The learned and the known part."""
        return self.learned(t, h, u, noise), self.known_part(t, h, u)

    def known_part(
        self, t: Scalar, h: Float[Array, " state"], u: Float[Array, " input"]
    ) -> Float[Array, " state"]:
        """γ ∘ r, asked inside the bounds."""
        return self.known(t, h if self.bounds is None else self.bounds.inside(h), u)

    def clip(self, h: Float[Array, " state"]) -> Float[Array, " state"]:
        """The nearest state inside the bounds."""
        return h if self.bounds is None else self.bounds.clip(h)


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


class OwnNumbers(eqx.Module):
    """What each of several networks has for itself, beside its weights: ξ, γ, G and p(h₀).

    Networks that were learned apart from each other differ in these numbers too. They are kept as
    differences from those of the model, before any constraint, with a leading axis of networks.
    """

    shifts: Fixed

    @classmethod
    def of(cls, shared: "BayesianSDE", each: Sequence["BayesianSDE"]) -> "OwnNumbers | None":
        """How each model differs from the shared one; None where nothing of it is learned."""
        parts = [(one.known, one.diffusion, one.start) for one in (shared, *each)]
        middle, *others = (eqx.filter(one, trainable(one)) for one in parts)
        if not jax.tree.leaves(middle):
            return None
        apart = [jax.tree.map(jnp.subtract, one, middle) for one in others]
        return cls(Fixed(jax.tree.map(lambda *leaves: jnp.stack(leaves), *apart)))

    @property
    def count(self) -> int:
        """How many networks there are."""
        return len(jax.tree.leaves(self.shifts.frozen)[0])

    def given_to(self, sde: SDE, start: AbstractStart, network: Int[Array, ""] | int) -> SDE:
        """The SDE with the numbers of one network; `start` is what all share."""
        parts = (sde.known, sde.diffusion, start)
        moved, held = eqx.partition(parts, trainable(parts))
        own = jax.tree.map(lambda leaf, shift: leaf + shift[network], moved, self.shifts.value)
        known, diffusion, start = eqx.combine(own, held)
        return SDE(sde.learned, known, diffusion, sde.bounds, start)


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
    reach: Fixed | None = None
    """Where the network is believed; None: everywhere."""
    sees: tuple[tuple[bool, ...], ...] | None = eqx.field(static=True, default=None)
    """What the learned part of each state may depend on; see `LearnedDrift`."""
    symmetries: tuple[Symmetry, ...] = eqx.field(static=True, default=())
    """What networks are odd or even in."""
    flows: tuple[LearnedFlow, ...] = eqx.field(static=True, default=())
    """What is learned once for two states; see `LearnedDrift`."""
    bounds: Fixed | None = None
    """Limits of the states."""
    own: OwnNumbers | None = None
    """What each of several networks has for itself; None: all numbers are shared."""
    constraints: Fixed | None = None
    """`Constraints` of the drift, where more is known than equations."""

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

    def draw(self, *, key: PRNGKeyArray, number: Int[Array, ""] | None = None) -> SDE:
        """θ ~ p_φ(θ), and the SDE that it drives; numbered draws take turns among networks."""
        if self.own is None:
            return self.driven_by(self.weights.draw(self.network, key=key, number=number))
        lot_key, weight_key = jr.split(key)
        count = self.own.count
        lot = jr.randint(lot_key, (), 0, count) if number is None else number % count
        network = self.weights.draw(self.network, key=weight_key, number=lot)
        return self.own.given_to(self.driven_by(network), self.start, lot)

    def typical(self) -> SDE:
        """The SDE at the mean of the weights; of several networks, the first."""
        sde = self.driven_by(self.network.mean())
        return sde if self.own is None else self.own.given_to(sde, self.start, 0)

    def driven_by(self, network: AbstractNetwork) -> SDE:
        """The SDE with this network as its learned part."""
        reach, bounds = (None if one is None else one.value for one in (self.reach, self.bounds))
        learned = LearnedDrift(
            network,
            self.scale.value,
            self.autonomous,
            reach,
            self.sees,
            self.symmetries,
            self.flows,
        )
        return SDE(learned, self.known, self.diffusion, bounds)

    def initial_state(
        self, sde: SDE, series: Batch, epsilon: Float[Array, " normal"]
    ) -> Float[Array, " state"]:
        """h₀ ~ p(h₀) for one series, from its first observations and standard normals.

        `sde` is the draw whose path begins there: it may have a p(h₀) of its own.
        """
        start = self.start if sde.start is None else sde.start
        h0 = start(series, self.observation, self.scale.value, epsilon)
        return h0 if self.bounds is None else self.bounds.value.clip(h0)


def check_starts(model: BayesianSDE, batch: Batch) -> None:
    """A `ValueError` where G is singular at the start of a series."""
    zero, sde = jnp.zeros(model.start_normals), model.typical()
    starts = jax.vmap(lambda one: model.initial_state(sde, one, zero))(batch)
    check_invertible(model.diffusion, batch.times[:, 0], starts)
