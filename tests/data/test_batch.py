"""Batches made on the device against those moved there."""

import jax
import jax.numpy as jnp
import numpy as np

from hybridsde import Trajectories
from hybridsde.data import Batch


def test_regular_batches_equal_those_of_a_recording():
    """Two series of three observations, 0.5 apart, the first at observation 4."""
    values = np.arange(12.0).reshape(2, 3, 2)
    times = 0.5 * (4 + np.arange(6.0)).reshape(2, 3)
    recorded = Batch.of(Trajectories.from_arrays(list(times), list(values), states=["x", "y"]))
    regular = Batch.regular(jnp.asarray(values, jnp.float32), 0.5, first=4)
    for one, other in zip(jax.tree.leaves(regular), jax.tree.leaves(recorded), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
