"""A Gaussian over the state, and what one observation makes of it: the Kalman update."""

import equinox as eqx
import jax.numpy as jnp
from jax import lax

from hybridsde._types import Array, Bool, Float, Scalar


class GaussianState(eqx.Module):
    """What is known of the state at one time."""

    mean: Float[Array, " state"]
    covariance: Float[Array, "state state"]


class Innovation(eqx.Module):
    """How one row differs from what was foretold: each component given those before it."""

    error: Float[Array, " obs"]
    variance: Float[Array, " obs"]
    seen: Bool[Array, " obs"]

    @property
    def log_prob(self) -> Scalar:
        """Ln p(y | what came before) = Σ −½ (e²/s + ln 2πs) over what was measured."""
        each = -0.5 * (self.error**2 / self.variance + jnp.log(2 * jnp.pi * self.variance))
        return jnp.sum(jnp.where(self.seen, each, 0.0))


def update(
    state: GaussianState,
    matrix: Float[Array, "obs state"],
    sd: Float[Array, " obs"],
    y: Float[Array, " obs"],
    observed: Bool[Array, " obs"],
    told: Bool[Array, ""] | bool = True,
) -> tuple[GaussianState, Innovation]:
    """The state given y = C h + ε, ε ~ N(0, diag σ²), and how y differs from what was foretold.

    Components have independent noise, so they are taken in one at a time: with s = cᵀPc + σ²,
    m ← m + Pc (y − cᵀm)/s and P ← P − Pc cᵀP/s. No matrix is inverted; a missing one changes
    nothing. A row that is not `told` is only compared: the state stays as it was, and each
    component is judged by itself.
    """

    def take_in(carry, x):
        m, p = carry
        c, y, seen, sd = x
        pc = p @ c
        s = jnp.maximum(c @ pc, 0.0) + sd**2  # rounding may leave P a little indefinite
        error = y - c @ m
        gain = jnp.where(seen & told, pc / s, 0.0)
        p = p - jnp.outer(gain, pc)
        return (m + gain * error, 0.5 * (p + p.T)), (error, s)

    rows = (matrix, y, observed, sd)
    start = (state.mean, state.covariance)
    (m, p), (error, s) = lax.scan(take_in, start, rows, unroll=min(len(y), 4))
    return GaussianState(m, p), Innovation(error, s, observed)
