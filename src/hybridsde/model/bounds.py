"""Limits that states cannot pass."""

import equinox as eqx
import jax.numpy as jnp

from hybridsde._types import Array, Float

MARGIN = 1e-2
"""Equations see a state no closer to a limit than this share of its spread."""


class Bounds(eqx.Module):
    """Lower and upper limits of all states, infinite where there is none.

    Paths stop at a limit until their drift leads them away (projected Euler steps of a reflected
    process: Pettersson 1995), and so do starts and the mean of a filter. Equations are asked a
    little inside, because √x has no slope at 0.
    """

    low: Float[Array, " state"]
    high: Float[Array, " state"]
    margin: Float[Array, " state"]

    def clip(self, h: Float[Array, "*batch state"]) -> Float[Array, "*batch state"]:
        """The nearest state inside."""
        return jnp.clip(h, self.low, self.high)

    def inside(self, h: Float[Array, "*batch state"]) -> Float[Array, "*batch state"]:
        """The nearest state that equations may be asked at."""
        return jnp.clip(h, self.low + self.margin, self.high - self.margin)
