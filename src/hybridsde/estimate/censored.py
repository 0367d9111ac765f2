"""What a measurement at a limit says: that the quantity is there or beyond.

With y* ~ N(m, s) foretold as if there were no limit c above, α = (c − m)/√s and the hazard
λ = φ(α)/Φ(−α) of a standard normal (Tobin 1958):

    P(y* ≥ c) = Φ(−α),   E[y* | y* ≥ c] = m + √s λ,   Var[y* | y* ≥ c] = s (1 − δ),   δ = λ(λ − α)
"""

import equinox as eqx
import jax.numpy as jnp
from jax.scipy.special import log_ndtr

from hybridsde._types import Array, Float

FAR = 8.0
"""From here on the tail is taken from its asymptotic series: λ ≈ α + 1/α − 2/α³ + 10/α⁵."""
SAME = 1e-6
"""A measurement is at a limit if it differs from it by no more than this share of it, or of one."""


class Tail(eqx.Module):
    """The part of a standard normal above α."""

    log_share: Float[Array, "*shape"]
    """ln Φ(−α)."""
    hazard: Float[Array, "*shape"]
    """λ."""
    narrowing: Float[Array, "*shape"]
    """δ, between zero and one; also −∂²ln Φ(−α)/∂α²."""

    @classmethod
    def above(cls, alpha: Float[Array, "*shape"]) -> "Tail":
        """For any α; nothing is lost where the part is tiny."""
        near, far = jnp.minimum(alpha, FAR), jnp.maximum(alpha, FAR)
        log_share = log_ndtr(-alpha)
        close = jnp.exp(-0.5 * near**2 - 0.5 * jnp.log(2 * jnp.pi) - log_ndtr(-near))
        beyond = 1 / far - 2 / far**3 + 10 / far**5
        excess = jnp.where(alpha > FAR, beyond, close - near)
        hazard = jnp.where(alpha > FAR, far + beyond, close)
        return cls(log_share, hazard, jnp.clip(hazard * excess, 0.0, 1.0))


def at_limit(
    y: Float[Array, "*batch obs"], limits: tuple[tuple[float, float], ...]
) -> Float[Array, "*batch obs"]:
    """1 where a measurement is at its upper limit, −1 at its lower one, 0 between them."""
    low, high = jnp.asarray(limits, y.dtype).T
    room = [SAME * jnp.maximum(jnp.where(jnp.isfinite(end), jnp.abs(end), 0.0), 1.0)
            for end in (low, high)]  # fmt: skip
    return jnp.where(y >= high - room[1], 1.0, jnp.where(y <= low + room[0], -1.0, 0.0))
