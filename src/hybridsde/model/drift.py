"""The two parts of the drift: what is learned, and what is known behind its gate."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from hybridsde._parameters import AbstractParameter, Bounded, Fixed
from hybridsde._types import Array, Float, Numbers, PyTree, Scalar
from hybridsde.model.network import AbstractNetwork
from hybridsde.model.reach import Reach
from hybridsde.model.scaling import Scale
from hybridsde.physics import AbstractPhysics


@dataclass(frozen=True)
class Symmetry:
    """What components of a function are odd or even in.

    With M that changes the signs of some states and inputs, f becomes ½(f(x) + s f(Mx)), whose
    every component has f(Mx) = s f(x). Components with s = 0 stay as they are; see `symmetric`.
    """

    flipped: tuple[bool, ...]
    """Which states and inputs change their signs together."""
    signs: tuple[float, ...]
    """1 for components that are even, −1 for odd ones, 0 for others."""

    def mirrored(
        self, h: Float[Array, " state"], u: Float[Array, " input"]
    ) -> tuple[Float[Array, " state"], Float[Array, " input"]]:
        """M (h, u)."""
        sign = np.where(self.flipped, -1.0, 1.0)
        return h * jnp.asarray(sign[: len(h)], h.dtype), u * jnp.asarray(sign[len(h) :], u.dtype)

    def reached(
        self, reach: Callable[[Array, Array], tuple[Array, Array]]
    ) -> Callable[[Array, Array], tuple[Array, Array]]:
        """What was recorded on one side says the same of the other; see `Reach`.

        A pull back to the data changes its sign with the states, whatever the symmetry is.
        """
        concerned = np.array(self.signs) != 0

        def nearer(h: Array, u: Array) -> tuple[Array, Array]:
            share, pull = reach(h, u)
            other, back = reach(*self.mirrored(h, u))
            back, _ = self.mirrored(back, u)
            better = concerned & (other > share)
            return jnp.where(better, other, share), jnp.where(better, back, pull)

        return nearer


def symmetric(
    f: Callable[[Array, Array], Array],
    symmetries: Sequence[Symmetry],
    h: Float[Array, " state"],
    u: Float[Array, " input"],
) -> Float[Array, " state"]:
    """f with all symmetries at (h, u): component by component, the mean over its mirrored places.

    With M₁ and M₂ a component has four: f(x), s₁ f(M₁x), s₂ f(M₂x) and s₁s₂ f(M₁M₂x). Each place is
    looked at once.
    """
    columns, here = len(h) + len(u), (False,) * (len(h) + len(u))
    found = {here: f(h, u)}
    components = []
    for k in range(len(h)):
        places = {here: 1.0}
        for one in symmetries:
            if one.signs[k] != 0:
                places |= {
                    tuple(np.logical_xor(place, one.flipped).tolist()): sign * one.signs[k]
                    for place, sign in places.items()
                }
        for place in places.keys() - found.keys():
            found[place] = f(*Symmetry(place, (0.0,) * columns).mirrored(h, u))
        components.append(
            sum(sign * found[place][k] for place, sign in places.items()) / len(places)
        )
    return jnp.stack(components)


class LearnedFlow(NamedTuple):
    """A learned amount per unit of time that leaves one state and arrives in another."""

    place: int
    """The component of the network that gives it, a state that it changes."""
    source: int | None
    target: int | None


class LearnedDrift(eqx.Module):
    """f_θ(h, t) for one draw of the weights, in raw units."""

    network: AbstractNetwork
    scale: Scale
    autonomous: bool = eqx.field(static=True)
    """Whether the network is kept from seeing the time."""
    reach: Reach | None = None
    """Where the network is believed; None: everywhere."""
    sees: tuple[tuple[bool, ...], ...] | None = eqx.field(static=True, default=None)
    """Which features the learned part of each state may depend on: states, the time unless
    autonomous, inputs. None: on all. Nothing is learned for a state that may see nothing."""
    symmetries: tuple[Symmetry, ...] = eqx.field(static=True, default=())
    """What the learned part is odd or even in."""
    flows: tuple[LearnedFlow, ...] = eqx.field(static=True, default=())
    """What the components at their places stand for; those of other states are drifts."""

    def __call__(
        self, t: Scalar, h: Float[Array, " state"], u: Float[Array, " input"], noise: PyTree
    ) -> Float[Array, " state"]:
        """The network on standardised features, its output in raw units per unit of time."""

        def network(h: Float[Array, " state"], u: Float[Array, " input"]) -> Array:
            clock = () if self.autonomous else (self.scale.time(t)[None],)
            features = (self.scale.states(h), *clock, self.scale.inputs(u))
            return self._masked(jnp.concatenate(features), noise)

        def reach(h: Float[Array, " state"], u: Float[Array, " input"]) -> tuple[Array, Array]:
            if self.reach is None:
                return jnp.ones((), h.dtype), jnp.zeros_like(h)
            return self.reach(self.scale.states(h), self.scale.inputs(u))

        within = reach
        for one in self.symmetries:
            within = one.reached(within)
        share, pull = within(h, u)
        found = symmetric(network, self.symmetries, h, u) if self.symmetries else network(h, u)
        drift = self.scale.rate * (share * found + jnp.where(self._learns(), pull, 0.0))
        return self._carried(drift) if self.flows else drift

    def _carried(self, amounts: Float[Array, " state"]) -> Float[Array, " state"]:
        """Amounts at the places of flows leave one state and arrive in the other."""
        drift = amounts
        for flow in self.flows:
            drift = drift.at[flow.place].add(-amounts[flow.place])
        for flow in self.flows:
            for end, sign in ((flow.source, -1.0), (flow.target, 1.0)):
                if end is not None:
                    drift = drift.at[end].add(sign * amounts[flow.place])
        return drift

    def _masked(self, features: Float[Array, " feature"], noise: PyTree) -> Float[Array, " state"]:
        """The network once for every set of features that some state may see, others at zero."""
        if self.sees is None:
            return self.network(features, noise)
        found = jnp.zeros(len(self.sees), features.dtype)
        for mask in dict.fromkeys(row for row in self.sees if any(row)):
            out = self.network(jnp.where(np.array(mask), features, 0.0), noise)
            found = jnp.where(np.array([row == mask for row in self.sees]), out, found)
        return found

    def _learns(self) -> np.ndarray | bool:
        """Which components are drifts of their own, that may lead back to the data."""
        learns = np.ones(len(self.scale.rate), bool)
        if self.sees is not None:
            learns = np.array([any(row) for row in self.sees])
        learns[[flow.place for flow in self.flows]] = False
        return learns


GRID = tuple(k / 10 for k in range(11))
"""Γ of one known equation: what a learned γ is rounded to where a bound is evaluated."""


class Gate(eqx.Module):
    """γ ∈ [0, 1] for every state; zero where nothing is known."""

    strength: AbstractParameter
    known: tuple[bool, ...] = eqx.field(static=True)
    grid: tuple[float, ...] | None = eqx.field(static=True, default=None)
    """Γ of each known equation where γ is learned; None where it is given."""

    @property
    def value(self) -> Float[Array, " state"]:
        """γ."""
        return jnp.where(jnp.array(self.known), self.strength.value, 0.0)

    @property
    def choices(self) -> int:
        """|Γ|, how many values γ is chosen from: points of the grid to the power of the known
        equations. One where γ is given.
        """
        return 1 if self.grid is None else len(self.grid) ** sum(self.known)

    def quantised(self) -> "Gate":
        """The nearest point of Γ, held fixed; as it is where γ is given.

        A bound may then be evaluated at it, at a cost of ln|Γ| (Haussmann et al. 2021, after
        Theorem 1).
        """
        if self.grid is None:
            return self
        points = jnp.array(self.grid)
        nearest = jnp.argmin(jnp.abs(self.strength.value[:, None] - points), axis=1)
        return Gate(Fixed(points[nearest]), self.known, self.grid)


class KnownDrift(eqx.Module):
    """γ ∘ r_ξ(h, t), the drift of the prior process (Haussmann et al. 2021, eq. prior_sde)."""

    physics: AbstractPhysics
    gate: Gate
    states: tuple[str, ...] = eqx.field(static=True)
    inputs: tuple[str, ...] = eqx.field(static=True)

    def __call__(
        self, t: Scalar, h: Float[Array, " state"], u: Float[Array, " input"]
    ) -> Float[Array, " state"]:
        """Zero where nothing is known."""
        rates = self.physics(
            t,
            dict(zip(self.states, h, strict=True)),
            dict(zip(self.inputs, u, strict=True)),
        )
        zero = jnp.zeros((), h.dtype)
        r = jnp.stack([jnp.asarray(rates.get(name, zero), h.dtype) for name in self.states])
        return self.gate.value * r


def make_gate(
    given: Numbers | Mapping[str, float] | str | None,
    states: tuple[str, ...],
    known: tuple[str, ...],
) -> Gate:
    """γ from what the user wrote: nothing, a number, one per state, by name, or "learn"."""
    mask = tuple(name in known for name in states)
    if isinstance(given, str) and given == "learn":
        return Gate(Bounded.of(np.full(len(states), 0.5)), mask, GRID)
    strengths = _named_strengths(given, states, known)
    for name, strength in strengths.items():
        if name not in states:
            raise ValueError(f"`gate` names {name!r}, but the states are {', '.join(states)}.")
        if not 0 <= strength <= 1:
            raise ValueError(
                f"`gate` must lie in [0, 1], but is {strength:g} for state {name!r}. It is the "
                "share of the known equation that is used."
            )
        if strength > 0 and name not in known:
            raise ValueError(
                f"`gate` is {strength:g} for state {name!r}, but `physics` gives no equation for "
                f"it, only for {', '.join(known) or 'none'}. Set it to 0 or leave it out."
            )
    return Gate(Fixed(jnp.array([strengths.get(name, 0.0) for name in states])), mask)


def _named_strengths(
    given: Numbers | Mapping[str, float] | str | None,
    states: tuple[str, ...],
    known: tuple[str, ...],
) -> dict[str, float]:
    try:
        if given is None:
            return dict.fromkeys(known, 1.0)
        if isinstance(given, Mapping):
            return {name: float(strength) for name, strength in given.items()}
        numbers = np.asarray(given, float)
    except (TypeError, ValueError):
        raise ValueError(f"`gate` must be numbers or 'learn', but is {given!r}.") from None
    if numbers.ndim == 0:
        return dict.fromkeys(known or states, float(numbers))
    if numbers.shape != (len(states),):
        raise ValueError(f"`gate` must hold {len(states)} numbers, but is {given!r}.")
    return dict(zip(states, numbers.tolist(), strict=True))
