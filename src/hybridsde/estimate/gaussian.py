"""A Gaussian over the state, and what one observation makes of it: the Kalman update."""

import equinox as eqx
import jax.numpy as jnp
from jax import lax

from hybridsde._types import Array, Bool, Float, Scalar


class GaussianState(eqx.Module):
    """What is known of the state at one time."""

    mean: Float[Array, " state"]
    covariance: Float[Array, "state state"]


def update(
    state: GaussianState,
    matrix: Float[Array, "obs state"],
    sd: Float[Array, " obs"],
    y: Float[Array, " obs"],
    observed: Bool[Array, " obs"],
    told: Bool[Array, ""] | bool = True,
) -> tuple[GaussianState, Scalar]:
    """The state given y = C h + ε, ε ~ N(0, diag σ²), and ln p(y | what came before).

    Components have independent noise, so they are taken in one at a time: with s = cᵀPc + σ²,
    m ← m + Pc (y − cᵀm)/s and P ← P − Pc cᵀP/s. No matrix is inverted; a missing one changes
    nothing. A row that is not `told` is only compared: the state stays as it was, and each
    component is judged by itself.
    """

    def take_in(carry, x):
        m, p, total = carry
        c, y, seen, sd = x
        pc = p @ c
        s = jnp.maximum(c @ pc, 0.0) + sd**2  # rounding may leave P a little indefinite
        error = y - c @ m
        gain = jnp.where(seen & told, pc / s, 0.0)
        log_prob = -0.5 * (error**2 / s + jnp.log(2 * jnp.pi * s))
        p = p - jnp.outer(gain, pc)
        return (m + gain * error, 0.5 * (p + p.T), total + jnp.where(seen, log_prob, 0.0)), None

    start = (state.mean, state.covariance, jnp.zeros((), y.dtype))
    rows = (matrix, y, observed, sd)
    (m, p, total), _ = lax.scan(take_in, start, rows, unroll=min(len(y), 4))
    return GaussianState(m, p), total
