"""The solver's time grid: observation intervals cut into sub-steps."""

import equinox as eqx
import jax.numpy as jnp

from hybridsde._types import Array, Float


class Grid(eqx.Module):
    """Where each step of one series starts, how long it is, and the inputs there."""

    t: Float[Array, " step"]
    dt: Float[Array, " step"]
    u: Float[Array, "step input"]

    @classmethod
    def refine(
        cls,
        times: Float[Array, " time"],
        steps: Float[Array, " interval"],
        inputs: Float[Array, "time input"],
        substeps: int,
        interpolation: str = "held",
    ) -> "Grid":
        """Cut every interval into equal sub-steps.

        Inputs are held from each time to the next, or change linearly between them; a sub-step
        takes those at its middle.
        """
        dt = jnp.repeat(steps / substeps, substeps)
        offset = jnp.tile(jnp.arange(substeps, dtype=dt.dtype), len(steps)) * dt
        t = jnp.repeat(times[:-1], substeps) + offset
        u = jnp.repeat(inputs[:-1], substeps, axis=0)
        if interpolation == "linear":
            middle = (jnp.tile(jnp.arange(substeps, dtype=dt.dtype), len(steps)) + 0.5) / substeps
            u = u + middle[:, None] * jnp.repeat(jnp.diff(inputs, axis=0), substeps, axis=0)
        return cls(t, dt, u)
