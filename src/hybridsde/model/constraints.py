"""Properties that a drift must have, as measurements that were never made.

Each property is a residual r that is zero where it holds: of a conserved Q, ∇Q·F; of a sign,
how far a slope is on the wrong side; of a symmetry, F_i(−z) ∓ F_i(z); of a decay, how far z_i F_i
is above zero. The drift is looked at in M points on and around the recordings, and

    ln p(K | θ) = −½ (W/M) Σ (r/τ)²

is added to the likelihood of the recordings: as if every property had been measured W times to be
zero, with an error of τ. Residuals are in units of the typical rates, so that τ is a share. More
would be no better: gradient steps could then follow nothing else.
"""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hybridsde._parameters import Fixed
from hybridsde._types import Array, Float, Scalar
from hybridsde.model.library import Library
from hybridsde.model.network import AbstractNetwork
from hybridsde.model.sde import SDE
from hybridsde.physics.expression import Expression, value

TOLERANCE, WORTH = 0.1, 50.0
"""τ, as a share of the typical rate, and W."""


def endless(sde: SDE) -> AbstractNetwork:
    """The learned part, its terms not held inside the range of the recordings."""
    network = sde.learned.network
    if not isinstance(network, Library):
        return network
    basis = network.basis.value
    far = jnp.full_like(basis.low, jnp.inf)
    return replace(network, basis=Fixed(replace(basis, low=-far, high=far)))


class Constraints(eqx.Module):
    """The properties, and the points in which a drift is held to them."""

    names: tuple[str, ...] = eqx.field(static=True)
    """Of the states."""
    positive: tuple[bool, ...] = eqx.field(static=True)
    """Which states are kept as logarithms."""
    conserved: tuple[Expression, ...] = eqx.field(static=True)
    effects: tuple[tuple[int, int, float], ...] = eqx.field(static=True)
    """State, what acts on it (states, then inputs), sign."""
    symmetries: tuple[tuple[int, tuple[bool, ...], float], ...] = eqx.field(static=True)
    """State, what changes its sign (states, then inputs), and 1 for even, −1 for odd."""
    decays: tuple[int, ...] = eqx.field(static=True)
    time: Float[Array, " point"]
    states: Float[Array, "point state"]
    inputs: Float[Array, "point input"]
    rate: Float[Array, " state"]
    """Typical rates."""
    spread: Float[Array, " feature"]
    """Standard deviations of states, then inputs."""

    def log_prob(self, sde: SDE) -> Scalar:
        """−½ (W/M) Σ (r/τ)²."""
        return -0.5 * jnp.sum(self.scaled(sde) ** 2)

    def scaled(self, sde: SDE) -> Float[Array, "property point"]:
        """√(W/M) r/τ, whose squares are summed."""
        found = self.residuals(sde)
        return found * (WORTH / found.shape[1]) ** 0.5 / TOLERANCE

    def residuals(self, sde: SDE) -> Float[Array, "property point"]:
        """Each property in every point, in typical rates."""
        # Outside its reach a learned drift fades, and terms stand still; a property is about
        # what is learned.
        free = replace(sde, learned=replace(sde.learned, reach=None, network=endless(sde)))

        def drift(t: Scalar, z: Float[Array, " feature"]) -> Float[Array, " state"]:
            count = len(self.names)
            return sum(free.drift(t, z[:count], z[count:], None), jnp.zeros(count, z.dtype))

        z = jnp.concatenate([self.states, self.inputs], 1)
        values = jax.vmap(drift)(self.time, z)
        rows = [self._changes(q, values) for q in self.conserved]
        if self.effects:
            slopes = jax.vmap(jax.jacfwd(drift, argnums=1))(self.time, z)
            unit = self.rate[:, None] / self.spread
            rows += [jax.nn.relu(-s * slopes[:, i, j] / unit[i, j]) for i, j, s in self.effects]
        for i, flips, sign in self.symmetries:
            mirrored = jax.vmap(drift)(self.time, jnp.where(np.array(flips), -z, z))
            rows.append((mirrored[:, i] - sign * values[:, i]) / self.rate[i])
        if self.decays:
            rows += self._decaying(drift)
        return jnp.stack(rows)

    def _raw(self, states: Float[Array, "*point state"]) -> Float[Array, "*point state"]:
        return jnp.where(np.array(self.positive), jnp.exp(states), states)

    def _changes(
        self, quantity: Expression, values: Float[Array, "point state"]
    ) -> Float[Array, " point"]:
        """dQ/dt = ∇Q·F, in units of what typical rates would make of it."""

        def of(states: Float[Array, " state"]) -> Scalar:
            raw = dict(zip(self.names, self._raw(states), strict=True))
            return jnp.asarray(value(quantity, raw), states.dtype)

        gradient = jax.vmap(jax.grad(of))(self.states)
        unit = jnp.sqrt(jnp.mean(jnp.sum((gradient * self.rate) ** 2, 1)))
        return jnp.sum(gradient * values, 1) / unit

    def _decaying(self, drift) -> list[Float[Array, " point"]]:
        """How far every state that should decay grows, with all inputs at zero."""
        z = jnp.concatenate([self.states, jnp.zeros_like(self.inputs)], 1)
        values = jax.vmap(drift)(self.time, z) / self.rate
        sizes = self.states / self.spread[: len(self.names)]
        sizes = jnp.where(np.array(self.positive), 1.0, sizes)
        return [jax.nn.relu(sizes[:, i] * values[:, i]) for i in self.decays]
