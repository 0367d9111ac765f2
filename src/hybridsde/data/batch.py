"""What a compiled program sees of the recordings: arrays of equal shape."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hybridsde._types import Array, Bool, Float
from hybridsde.data.trajectories import Trajectories


class Batch(eqx.Module):
    """Series as device arrays; a batch of them, or, mapped over `series`, a single one.

    Steps Δt are differences of the double-precision times, so single precision loses nothing
    where times are large and steps are small.
    """

    times: Float[Array, "*series time"]
    steps: Float[Array, "*series time-1"]
    values: Float[Array, "*series time obs"]
    observed: Bool[Array, "*series time obs"]
    inputs: Float[Array, "*series time input"]

    @classmethod
    def of(cls, data: Trajectories) -> "Batch":
        """Move recordings to the device."""
        return cls(
            times=jnp.asarray(data.times),
            steps=jnp.asarray(np.diff(data.times)),
            values=jnp.asarray(data.values),
            observed=jnp.asarray(data.observed),
            inputs=jnp.asarray(data.inputs),
        )

    def take(self, indices: Array) -> "Batch":
        """The series at these positions, in this order."""
        return jax.tree.map(lambda leaf: leaf[indices], self)

    @property
    def count(self) -> int:
        """How many series there are."""
        return self.times.shape[0]
