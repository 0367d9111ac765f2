"""Sampled paths that left every number: a drift that explodes has no number after a while."""

import jax.numpy as jnp
from jax import lax

from hybridsde._types import Array, Float
from hybridsde.model import Standardiser

FAR = 1000.0
"""Spreads from the mean at which such a path is held: outside every plausible range."""


def held_far_out(
    states: Float[Array, "sample series time state"], usual: Standardiser
) -> Float[Array, "sample series time state"]:
    """Paths of which no number is left stay far out on the side where they were last.

    They are then counted among the draws that left every plausible range, and cut off there, where
    one that is no number would spoil every score. A path that never was a number stays none.
    """
    there = jnp.isfinite(states)
    rows = jnp.arange(states.shape[2])[:, None]
    last = lax.cummax(jnp.where(there, rows, -1), axis=2)
    before = jnp.take_along_axis(states, jnp.maximum(last, 0), 2)
    side = jnp.where(before < usual.mean, -1.0, 1.0)
    far = jnp.where(last < 0, jnp.nan, usual.mean + FAR * side * usual.sd)
    return jnp.where(there, states, far)
