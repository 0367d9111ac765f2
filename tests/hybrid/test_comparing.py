"""A model is compared with a recording row by row, from afar, and as a simulation."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers import linear_model, one_series
from hybridsde.hybrid.comparing import NearAndFar, RowByRow, Simulation
from hybridsde.hybrid.scoring import LogLikelihood
from hybridsde.simulate import EulerMaruyama

Y = np.array([1.0, 0.4, 0.5, 0.1, -0.2, 0.3])
NORMALS = jnp.zeros(1)


@pytest.fixture(scope="module")
def model():
    """dx = −½x dt + G dW, in Euler steps of one: x ← x/2."""
    return linear_model(-0.5, diffusion=0.3, noise=0.2)


def compared(comparison, model, counted):
    sde = model.driven_by(model.network.mean())
    return comparison(model, sde, EulerMaruyama(), one_series(Y[:, None]), NORMALS, counted)


def test_a_simulation_is_the_flow_without_noise(model):
    found = compared(Simulation(jnp.array([0.7])), model, jnp.ones(6, bool))
    expected = Y[1:] - 0.5 ** np.arange(1, 6)
    np.testing.assert_allclose(found.error[:, 0], expected, atol=1e-6)
    np.testing.assert_allclose(found.variance, 0.49, rtol=1e-6)
    assert found.seen.all()


def test_rows_that_are_not_counted_are_not_compared_from_afar(model):
    counted = jnp.array([True, True, False, False, True, True])
    simulated = compared(Simulation(jnp.ones(1)), model, counted)
    np.testing.assert_array_equal(simulated.seen[:, 0], counted[1:])
    both = compared(NearAndFar(), model, counted)
    np.testing.assert_array_equal(both.seen[:, 0], [*[True] * 5, *counted[1:]])


def test_near_and_far_are_the_filter_and_forecasts_from_the_first_row(model):
    counted = jnp.ones(6, bool)
    near = compared(RowByRow(), model, counted)
    both = compared(NearAndFar(), model, counted)
    np.testing.assert_allclose(both.error[:5], near.error, rtol=1e-6)
    np.testing.assert_allclose(both.error[5:, 0], Y[1:] - 0.5 ** np.arange(1, 6), atol=1e-6)
    variance = [0.3**2 * sum(0.25**j for j in range(k)) + 0.2**2 for k in range(1, 6)]
    np.testing.assert_allclose(both.variance[5:, 0], variance, rtol=1e-5)


def test_every_recording_is_moved_by_its_own_start_alone(model):
    """Slopes that are put together from the parts of each recording are those of the whole."""
    model = eqx.tree_at(lambda m: m.start.spread.frozen, model, jnp.ones(()))
    batch = jax.tree.map(lambda leaf: jnp.stack([leaf] * 2), one_series(Y[:, None]))
    likelihood = LogLikelihood(
        model, model.network.mean(), EulerMaruyama(), batch, Simulation(jnp.ones(1))
    )
    assert likelihood.normals == 2
    point = likelihood.start + 0.1
    about = likelihood(point)
    step = 1e-5
    for i in range(len(point)):
        up, down = (likelihood(point + s * step * np.eye(len(point))[i]) for s in (1, -1))
        slope = (up.value - down.value) / (2 * step)
        np.testing.assert_allclose(about.gradient[i], slope, atol=1e-4)
    assert about.information[-1, -2] == 0
    assert about.information[-1, -1] > 1
