"""A Gaussian over the state, and what one observation makes of it: the Kalman update."""

import equinox as eqx
import jax.numpy as jnp
from jax import lax

from hybridsde._types import Array, Bool, Float, Scalar
from hybridsde.estimate.censored import Tail


class GaussianState(eqx.Module):
    """What is known of the state at one time."""

    mean: Float[Array, " state"]
    covariance: Float[Array, "state state"]


class Innovation(eqx.Module):
    """How one row differs from what was foretold: each component given those before it."""

    error: Float[Array, " obs"]
    variance: Float[Array, " obs"]
    seen: Bool[Array, " obs"]
    side: Float[Array, " obs"] | None = None
    """1 or −1 where a measurement is at its upper or lower limit; None: nothing has limits."""

    @property
    def log_prob(self) -> Scalar:
        """Ln p(y | what came before) = Σ −½ (e²/s + ln 2πs) over what was measured.

        At a limit it is the probability to be there or beyond.
        """
        each = -0.5 * (self.error**2 / self.variance + jnp.log(2 * jnp.pi * self.variance))
        if self.side is not None:
            tail = Tail.above(self.side * self.error / jnp.sqrt(self.variance))
            each = jnp.where(self.side != 0, tail.log_share, each)
        return jnp.sum(jnp.where(self.seen, each, 0.0))


class Limits(eqx.Module):
    """Where a row is at the limits of its sensors, and what was foretold without limits."""

    side: Float[Array, " obs"]
    """1 or −1 at an upper or lower limit, else 0."""
    gap: Float[Array, " obs"]
    """What the limits of states took from what was foretold."""


def update(
    state: GaussianState,
    matrix: Float[Array, "obs state"],
    sd: Float[Array, " obs"],
    y: Float[Array, " obs"],
    observed: Bool[Array, " obs"],
    told: Bool[Array, ""] | bool = True,
    limits: Limits | None = None,
) -> tuple[GaussianState, Innovation]:
    """The state given y = C h + ε, ε ~ N(0, diag σ²), and how y differs from what was foretold.

    Components have independent noise, so they are taken in one at a time: with s = cᵀPc + σ²,
    m ← m + Pc (y − cᵀm)/s and P ← P − Pc cᵀP/s. No matrix is inverted; a missing one changes
    nothing. A row that is not `told` is only compared: the state stays as it was, and each
    component is judged by itself.

    At a limit, y says that it is there or beyond: m ← m ± Pc λ/√s and P ← P − δ Pc cᵀP/s, with λ
    and δ of `Tail`.
    """

    def take_in(carry, x):
        m, p = carry
        c, y, seen, sd, limit = x
        pc = p @ c
        s = jnp.maximum(c @ pc, 0.0) + sd**2  # rounding may leave P a little indefinite
        error = y - c @ m
        pull, narrowing = error, 1.0
        if limit is not None:
            root = jnp.sqrt(s)
            at_end = limit.side != 0
            error = error - jnp.where(at_end, limit.gap, 0.0)
            tail = Tail.above(limit.side * error / root)
            pull = jnp.where(at_end, limit.side * root * tail.hazard, error)
            narrowing = jnp.where(at_end, tail.narrowing, 1.0)
        gain = jnp.where(seen & told, pc / s, 0.0)
        m, p = m + gain * pull, p - narrowing * jnp.outer(gain, pc)
        return (m, 0.5 * (p + p.T)), (error, s)

    rows = (matrix, y, observed, sd, limits)
    start = (state.mean, state.covariance)
    (m, p), (error, s) = lax.scan(take_in, start, rows, unroll=min(len(y), 4))
    side = None if limits is None else limits.side
    return GaussianState(m, p), Innovation(error, s, observed, side)
