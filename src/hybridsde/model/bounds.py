"""Limits that states cannot pass."""

import equinox as eqx
import jax.numpy as jnp

from hybridsde._types import Array, Float

MARGIN = 1e-2
"""Equations see a state no closer to a limit than this share of its spread."""


class Bounds(eqx.Module):
    """Lower and upper limits of all states, infinite where there is none.

    Paths stop at a limit until their drift leads them away (projected Euler steps of a reflected
    process: Pettersson 1995), and so does the mean of a filter; starts are mirrored. Equations are
    asked a little inside, because √x has no slope at 0.
    """

    low: Float[Array, " state"]
    high: Float[Array, " state"]
    margin: Float[Array, " state"]

    def mirror(self, h: Float[Array, "*batch state"]) -> Float[Array, "*batch state"]:
        """Folded back inside, however far outside."""
        low, high = self.low, self.high
        both = jnp.isfinite(low) & jnp.isfinite(high)
        width = jnp.where(both, high - low, 1.0)
        base = jnp.where(jnp.isfinite(low), low, 0.0)
        turn = jnp.mod(h - base, 2 * width)
        folded = base + jnp.minimum(turn, 2 * width - turn)
        above = jnp.where(jnp.isfinite(low), base + jnp.abs(h - base), h)
        top = jnp.where(jnp.isfinite(high), high, 0.0)
        below = jnp.where(jnp.isfinite(high), top - jnp.abs(h - top), h)
        one_sided = jnp.where(jnp.isfinite(low), above, below)
        return jnp.where((h >= low) & (h <= high), h, jnp.where(both, folded, one_sided))

    def clip(self, h: Float[Array, "*batch state"]) -> Float[Array, "*batch state"]:
        """The nearest state inside."""
        return jnp.clip(h, self.low, self.high)

    def inside(self, h: Float[Array, "*batch state"]) -> Float[Array, "*batch state"]:
        """The nearest state that equations may be asked at."""
        return jnp.clip(h, self.low + self.margin, self.high - self.margin)
