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
        rate = _rate(batch)
        state_sd = jnp.sqrt(lift**2 @ sd**2)
        state_rate = jnp.sqrt(lift**2 @ rate**2)
        seen = state_sd > 0
        everywhere = jnp.ones(batch.inputs.shape, bool)
        input_mean, input_sd = _moments(batch.inputs, everywhere)
        valid = batch.observed.any(-1, keepdims=True)
        time_mean, time_sd = _moments(batch.times[..., None], valid)
        return cls(
            lift @ mean,
            jnp.where(seen, state_sd, 1.0),
            jnp.where(seen, state_rate, jnp.median(rate / sd)),
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


def _slopes(
    batch: Batch,
) -> tuple[Float[Array, "series step obs"], Bool[Array, "series step obs"]]:
    """Difference quotients, and where both of their ends were observed."""
    seen = batch.observed[:, 1:] & batch.observed[:, :-1]
    steps = jnp.where(batch.steps > 0, batch.steps, 1.0)
    slopes = jnp.diff(batch.values, axis=1) / steps[..., None]
    return jnp.where(seen, slopes, 0.0), seen


def _rate(batch: Batch) -> Float[Array, " obs"]:
    """A typical |dy/dt|, without the share of the noise.

    Slopes v two steps apart share neither Wiener nor observation noise, so E[v_k v_{k+2}] is the
    mean square of the drift alone. It is kept within a tenth and all of the raw mean square.
    """
    slopes, seen = _slopes(batch)
    raw = jnp.mean(slopes**2, (0, 1), where=seen)
    apart = slopes[:, 2:] * slopes[:, :-2]
    square = jnp.mean(apart, (0, 1), where=seen[:, 2:] & seen[:, :-2])
    square = jnp.where(jnp.isfinite(square), square, raw)
    rate = jnp.sqrt(jnp.clip(square, 0.01 * raw, raw))
    return jnp.where(rate > 0, rate, 1.0)


def rough_diffusion(batch: Batch, lift: Float[Array, "state obs"]) -> Float[Array, " state"]:
    """A first guess at a diagonal G from how much neighbouring slopes disagree.

    For a Wiener process of spread G, v_{k+1} − v_k has variance G²(1/Δt_k + 1/Δt_{k+1}). Curvature
    of the drift and observation noise are counted in, so the guess errs on the large side.
    """
    slopes, seen = _slopes(batch)
    inverse = jnp.where(batch.steps > 0, 1.0 / jnp.where(batch.steps > 0, batch.steps, 1.0), 1.0)
    expected = (inverse[:, 1:] + inverse[:, :-1])[..., None]
    square = jnp.diff(slopes, axis=1) ** 2 / expected
    guess = jnp.sqrt(jnp.mean(square, (0, 1), where=seen[:, 1:] & seen[:, :-1]))
    _, sd = _moments(batch.values, batch.observed)
    guess = jnp.where(jnp.isfinite(guess) & (guess > 1e-3 * sd), guess, 1e-3 * sd)
    lifted = jnp.sqrt(lift**2 @ guess**2)
    return jax.lax.stop_gradient(jnp.where(lifted > 0, lifted, jnp.mean(guess)))
