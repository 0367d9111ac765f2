"""States stay inside their limits, and a learned drift near its data."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hybridsde as hs
from helpers import one_series, wiggles
from hybridsde.data import Batch
from hybridsde.model.bounds import Bounds
from hybridsde.model.reach import Reach
from hybridsde.model.scaling import Scale
from hybridsde.simulate import EulerMaruyama, simulate

BOUNDS = Bounds(
    jnp.array([0.0, -jnp.inf, 0.0, -jnp.inf]),
    jnp.array([10.0, 5.0, jnp.inf, jnp.inf]),
    jnp.full(4, 0.01),
)


def test_a_state_beyond_a_limit_stops_there():
    h = jnp.array([12.0, 7.0, -3.0, 99.0])
    np.testing.assert_allclose(BOUNDS.clip(h), [10.0, 5.0, 0.0, 99.0])
    np.testing.assert_allclose(BOUNDS.inside(h), [9.99, 4.99, 0.01, 99.0])


@pytest.mark.slow
def test_paths_and_measurements_stay_inside():
    data = hs.Trajectories.from_arrays(
        [np.arange(30.0)] * 3, [np.random.default_rng(n).uniform(0, 2, (30, 1)) for n in range(3)]
    )
    model = hs.HybridSDE(
        states=("x0",), bounds={"x0": (0, 2)}, hidden=(4,), diffusion=1.5, noise=0.5
    )
    batch = model.batch(data)
    built = model.init(batch, key=jax.random.key(0))
    paths = simulate(built, EulerMaruyama(), batch, samples=50, key=jax.random.key(1))
    states = np.asarray(paths.states)
    assert 0 <= states.min() < 0.1
    assert 1.9 < states.max() <= 2
    shown = built.observation.raw(jnp.array([[-1.0], [3.0]]))
    np.testing.assert_array_equal(shown, [[0.0], [2.0]])


@pytest.mark.slow
def test_the_learned_drift_fades_far_from_the_data_and_returns_to_them():
    batch = Batch.of(wiggles())
    scale = Scale.of(batch, jnp.eye(2))
    reach = Reach.of(batch, jnp.eye(2), scale, known=(True, False))
    inside = scale.states(batch.values[0, 0])
    share, pull = reach(inside, jnp.zeros(0))
    assert float(share) == 1
    assert not np.any(pull)
    share, pull = reach(reach.high + jnp.array([3.0, 3.0]), jnp.zeros(0))
    np.testing.assert_allclose(share, 1 / (1 + 18), rtol=1e-5)
    np.testing.assert_allclose(pull, [0.0, -3.0], atol=1e-5)


@pytest.mark.slow
def test_paths_that_start_far_out_come_back_where_nothing_is_known():
    data = wiggles()
    model = hs.HybridSDE(states=("x", "y"), hidden=(8,), diffusion=0.01, noise=0.01, start="first")
    built = model.init(Batch.of(data), key=jax.random.key(0))
    spread = built.scale.value.states.sd
    far = one_series(jnp.zeros((400, 2)) + 50 * spread)
    batch = jax.tree.map(lambda leaf: leaf[None], far)
    paths = simulate(built, EulerMaruyama(5), batch, samples=4, key=jax.random.key(1))
    ends = np.asarray(paths.states)[:, 0, -1] / np.asarray(spread)
    assert (np.abs(ends) < 8).all()
