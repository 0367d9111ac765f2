"""Batches made on the device against those moved there."""

import jax
import jax.numpy as jnp
import jax.random as jr
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


def test_random_windows_are_windows_of_what_was_recorded():
    t = np.arange(12.0)
    rows = [12, 5, 3]
    data = Trajectories.from_arrays(
        [t[:n] for n in rows], [(100 * s + t[:n])[:, None] for s, n in enumerate(rows)]
    )
    found = set()
    for seed in range(40):
        cut = Batch.of(data).random_windows(4, key=jr.key(seed))
        assert cut.values.shape == (3, 4, 1)
        first = np.asarray(cut.times[:, 0])
        found.add(tuple(first))
        np.testing.assert_allclose(cut.times[0], first[0] + np.arange(4))
        np.testing.assert_allclose(cut.values[0, :, 0], cut.times[0])
        np.testing.assert_allclose(cut.steps[:2], 1.0)
        assert cut.recorded[:2].all()
        assert cut.recorded[2].tolist() == [True, True, True, False]  # shorter: all of it
    starts = np.array(list(found))
    assert set(starts[:, 0]) == set(range(9))
    assert set(starts[:, 1]) == {0, 1}
