"""Units: physics sees raw states, the network sees numbers of order one."""

import equinox as eqx
import jax
import jax.numpy as jnp

from hybridsde._types import Array, Bool, Float
from hybridsde.data import Batch

CONSTANT = 1e-7
"""A column whose spread is below this share of its mean is constant but for rounding."""
ROUNDING = 1e-12
"""So is one whose spread is below this share of the widest column: rounding of the recorder."""


class Standardiser(eqx.Module):
    """Location and spread of columns: z = (x − mean)/sd."""

    mean: Float[Array, "*column"]
    sd: Float[Array, "*column"]

    @classmethod
    def identity(cls, *shape: int) -> "Standardiser":
        """Raw units."""
        return cls(jnp.zeros(shape), jnp.ones(shape))

    @classmethod
    def of(
        cls,
        values: Float[Array, "series time column"],
        observed: Bool[Array, "series time #column"],
    ) -> "Standardiser":
        """Measured on what was observed; a spread of one where a column never changes."""
        mean = jnp.nan_to_num(jnp.mean(values, (0, 1), where=observed))
        sd = jnp.nan_to_num(jnp.std(values, (0, 1), where=observed))
        widest = jnp.max(sd, initial=0.0)
        varies = (sd > CONSTANT * jnp.abs(mean)) & (sd > ROUNDING * widest)
        return cls(mean, jnp.where(varies, sd, 1.0))

    def __call__(self, x: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
        """Numbers of order one."""
        return (x - self.mean) / self.sd

    def inverse(self, z: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
        """Raw units."""
        return self.mean + self.sd * z


class Scale(eqx.Module):
    """Units of states, time, inputs and rates.

    The network reads standardised numbers; its output is multiplied by `rate`, a typical |dh/dt|.
    """

    states: Standardiser
    time: Standardiser
    inputs: Standardiser
    rate: Float[Array, " state"]

    @classmethod
    def identity(cls, states: int, inputs: int) -> "Scale":
        """Raw units everywhere."""
        return cls(
            Standardiser.identity(states),
            Standardiser.identity(),
            Standardiser.identity(inputs),
            jnp.ones(states),
        )

    @classmethod
    def of(cls, batch: Batch, lift: Float[Array, "state obs"]) -> "Scale":
        """Measured on the training data; `lift` carries observations back to states.

        A state that no observation informs gets mean 0, spread 1 and a middling rate.
        """
        measured = Standardiser.of(batch.values, batch.observed)
        rate = _rate(batch, measured.sd)
        sd = jnp.sqrt(lift**2 @ measured.sd**2)
        seen = sd > 0
        recorded = batch.recorded[..., None]
        clock = Standardiser.of(batch.times[..., None], recorded)
        return cls(
            Standardiser(lift @ measured.mean, jnp.where(seen, sd, 1.0)),
            Standardiser(clock.mean[0], clock.sd[0]),
            Standardiser.of(batch.inputs, recorded),
            jnp.where(seen, jnp.sqrt(lift**2 @ rate**2), jnp.mean(rate / measured.sd)),
        )


class _Slopes(eqx.Module):
    """Difference quotients between consecutive observed values of each column."""

    slope: Float[Array, "series step obs"]
    dt: Float[Array, "series step obs"]
    seen: Bool[Array, "series step obs"]

    @classmethod
    def of(cls, batch: Batch) -> "_Slopes":
        """Observed rows are moved to the front of every column first, so gaps are bridged."""
        order = jnp.argsort(~batch.observed, axis=1, stable=True)
        t = jnp.take_along_axis(jnp.broadcast_to(batch.elapsed[..., None], order.shape), order, 1)
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
    sd = Standardiser.of(batch.values, batch.observed).sd
    return jnp.mean(_rate(batch, sd) / sd)


def rough_diffusion(batch: Batch, lift: Float[Array, "state obs"]) -> Float[Array, " state"]:
    """A first guess at a diagonal G from how much neighbouring slopes disagree.

    For a Wiener process of spread G, v_{k+1} − v_k has variance G²(1/Δt_k + 1/Δt_{k+1}). Curvature
    of the drift and observation noise are counted in, so the guess errs on the large side. It is at
    least what moves a path by a thousandth of the spread of the data while they last. A state that
    no observation informs gets the mean guess, in units of its own spread.
    """
    v = _Slopes.of(batch)
    expected = 1 / v.dt[:, 1:] + 1 / v.dt[:, :-1]
    square = jnp.diff(v.slope, axis=1) ** 2 / expected
    guess = jnp.sqrt(jnp.mean(square, (0, 1), where=v.seen[:, 1:]))
    sd = Standardiser.of(batch.values, batch.observed).sd
    least = 1e-3 * sd / jnp.sqrt(batch.steps.sum(1).max())
    guess = jnp.where(jnp.isfinite(guess) & (guess > least), guess, least)
    lifted = jnp.sqrt(lift**2 @ guess**2)
    return jax.lax.stop_gradient(jnp.where(lifted > 0, lifted, jnp.mean(guess / sd)))
