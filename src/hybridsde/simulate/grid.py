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
    ) -> "Grid":
        """Cut every interval into equal sub-steps; inputs are held from each time to the next."""
        dt = jnp.repeat(steps / substeps, substeps)
        offset = jnp.tile(jnp.arange(substeps, dtype=dt.dtype), len(steps)) * dt
        t = jnp.repeat(times[:-1], substeps) + offset
        return cls(t, dt, jnp.repeat(inputs[:-1], substeps, axis=0))
