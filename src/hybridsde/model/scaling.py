"""Units: physics sees raw states, the network sees numbers of order one."""

import equinox as eqx
import jax
import jax.numpy as jnp

from hybridsde._types import Array, Bool, Float
from hybridsde.data import Batch


class Scale(eqx.Module):
    """Location and spread of states, rates, time and inputs.

    The network reads (h − m)/s and its output is multiplied by `rate`, a typical |dh/dt|.
    """

    state_mean: Float[Array, " state"]
    state_sd: Float[Array, " state"]
    rate: Float[Array, " state"]
    time_mean: Float[Array, ""]
    time_sd: Float[Array, ""]
    input_mean: Float[Array, " input"]
    input_sd: Float[Array, " input"]

    @classmethod
    def identity(cls, states: int, inputs: int) -> "Scale":
        """Raw units everywhere."""
        zero, one = jnp.zeros(()), jnp.ones(())
        return cls(
            jnp.zeros(states),
            jnp.ones(states),
            jnp.ones(states),
            zero,
            one,
            jnp.zeros(inputs),
            jnp.ones(inputs),
        )

    @classmethod
    def of(cls, batch: Batch, lift: Float[Array, "state obs"]) -> "Scale":
        """Measured on the training data; `lift` carries observations back to states.

        A state that no observation informs gets mean 0, spread 1 and a middling rate.
        """
        mean, sd = _moments(batch.values, batch.observed)
        rate = _rate(batch, sd)
        state_sd = jnp.sqrt(lift**2 @ sd**2)
        seen = state_sd > 0
        recorded = batch.recorded[..., None]
        input_mean, input_sd = _moments(batch.inputs, recorded)
        time_mean, time_sd = _moments(batch.times[..., None], recorded)
        return cls(
            lift @ mean,
            jnp.where(seen, state_sd, 1.0),
            jnp.where(seen, jnp.sqrt(lift**2 @ rate**2), jnp.mean(rate / sd)),
            time_mean[0],
            time_sd[0],
            input_mean,
            input_sd,
        )

    def states(self, h: Float[Array, "*batch state"]) -> Float[Array, "*batch state"]:
        """Standardised states."""
        return (h - self.state_mean) / self.state_sd

    def time(self, t: Float[Array, ""]) -> Float[Array, ""]:
        """Standardised time."""
        return (t - self.time_mean) / self.time_sd

    def inputs(self, u: Float[Array, " input"]) -> Float[Array, " input"]:
        """Standardised inputs."""
        return (u - self.input_mean) / self.input_sd


def _moments(
    values: Float[Array, "series time column"], observed: Bool[Array, "series time #column"]
) -> tuple[Float[Array, " column"], Float[Array, " column"]]:
    """Mean and standard deviation of what was observed; 1 where there is no spread."""
    mean = jnp.mean(values, (0, 1), where=observed)
    sd = jnp.std(values, (0, 1), where=observed)
    return jnp.nan_to_num(mean), jnp.where(sd > 0, sd, 1.0)


class _Slopes(eqx.Module):
    """Difference quotients between consecutive observed values of each column."""

    slope: Float[Array, "series step obs"]
    dt: Float[Array, "series step obs"]
    seen: Bool[Array, "series step obs"]

    @classmethod
    def of(cls, batch: Batch) -> "_Slopes":
        """Observed rows are moved to the front of every column first, so gaps are bridged."""
        order = jnp.argsort(~batch.observed, axis=1, stable=True)
        since_start = jnp.pad(jnp.cumsum(batch.steps, 1), [(0, 0), (1, 0)])[..., None]
        t = jnp.take_along_axis(jnp.broadcast_to(since_start, order.shape), order, 1)
        y = jnp.take_along_axis(batch.values, order, 1)
        seen = jnp.take_along_axis(batch.observed, order, 1)[:, 1:]
        dt = jnp.where(seen, jnp.diff(t, axis=1), 1.0)
        return cls(jnp.where(seen, jnp.diff(y, axis=1) / dt, 0.0), dt, seen)


def _rate(batch: Batch, sd: Float[Array, " obs"]) -> Float[Array, " obs"]:
    """A typical |dy/dt|, without the share of the noise.

    Slopes v two steps apart share neither Wiener nor observation noise, so E[v_k v_{k+2}] is the
    mean square of the drift alone. It is kept between a hundredth and all of the mean square of
    v. Without any slope, a standard deviation per duration of the recordings.
    """
    v = _Slopes.of(batch)
    raw = jnp.mean(v.slope**2, (0, 1), where=v.seen)
    apart = v.slope[:, 2:] * v.slope[:, :-2]
    square = jnp.mean(apart, (0, 1), where=v.seen[:, 2:])
    square = jnp.where(jnp.isfinite(square), square, raw)
    rate = jnp.sqrt(jnp.clip(square, 0.01 * raw, raw))
    return jnp.where(rate > 0, rate, sd / batch.steps.sum(1).max())


def typical_rate(batch: Batch) -> Float[Array, ""]:
    """How fast observations change, in units of their spreads per unit of time."""
    _, sd = _moments(batch.values, batch.observed)
    return jnp.mean(_rate(batch, sd) / sd)


def rough_diffusion(batch: Batch, lift: Float[Array, "state obs"]) -> Float[Array, " state"]:
    """A first guess at a diagonal G from how much neighbouring slopes disagree.

    For a Wiener process of spread G, v_{k+1} − v_k has variance G²(1/Δt_k + 1/Δt_{k+1}). Curvature
    of the drift and observation noise are counted in, so the guess errs on the large side. A
    state that no observation informs gets the mean guess, in units of its own spread.
    """
    v = _Slopes.of(batch)
    expected = 1 / v.dt[:, 1:] + 1 / v.dt[:, :-1]
    square = jnp.diff(v.slope, axis=1) ** 2 / expected
    guess = jnp.sqrt(jnp.mean(square, (0, 1), where=v.seen[:, 1:]))
    _, sd = _moments(batch.values, batch.observed)
    guess = jnp.where(jnp.isfinite(guess) & (guess > 1e-3 * sd), guess, 1e-3 * sd)
    lifted = jnp.sqrt(lift**2 @ guess**2)
    return jax.lax.stop_gradient(jnp.where(lifted > 0, lifted, jnp.mean(guess / sd)))
