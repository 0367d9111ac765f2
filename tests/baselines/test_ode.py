"""Ordinary differential equations: closed forms, order, gradients, maps over series and devices."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array
from scipy.linalg import expm

from helpers import strong_order
from hybridsde._devices import over_seeds
from hybridsde.baselines.ode import solve

pytestmark = pytest.mark.slow

MODES = {"one step": None, "adaptive": 1e-6}
DENSE = np.cumsum([0.0, *np.tile([0.02, 0.11, 0.05, 0.08], 5)])
"""Irregular times, close enough for single steps."""


class Swing(NamedTuple):
    position: Array
    velocity: Array


def swing(state: Swing, stiffness=4.0) -> Swing:
    """A damped oscillator: x″ = −k x − 0.6 x′."""
    return Swing(state.velocity, -stiffness * state.position - 0.6 * state.velocity)


def position(times, stiffness=4.0):
    """x(t) for x(0) = 1, x′(0) = 0."""
    frequency = np.sqrt(stiffness - 0.09)
    angle = frequency * times
    return np.exp(-0.3 * times) * (np.cos(angle) + 0.3 / frequency * np.sin(angle))


def generator(rate=0.0):
    """A stable matrix, not symmetric; `rate` moves one entry."""
    return np.array([[-0.3 + rate, 1.5, 0.0], [-1.5, -0.2, 0.4], [0.1, 0.0, -0.7]])


@pytest.mark.parametrize("tolerance", MODES.values(), ids=MODES)
def test_a_damped_oscillator_at_irregular_times(tolerance):
    """A tree of arrays is solved as a whole, and the first time is the start itself."""
    start = Swing(jnp.ones(()), jnp.zeros(()))
    found = solve(swing, start, jnp.asarray(DENSE), tolerance=tolerance)
    assert isinstance(found, Swing)
    assert found.position[0] == 1.0
    np.testing.assert_allclose(found.position, position(DENSE), atol=5e-6)


@pytest.mark.parametrize("tolerance", MODES.values(), ids=MODES)
def test_value_and_gradient_are_those_of_the_matrix_exponential(tolerance):
    """Times that do not begin at zero. ∂y(t)/∂y₀ = e^{At}; ∂y(t)/∂a by central differences."""
    times = 3.0 + DENSE
    start = np.array([1.0, -0.5, 2.0])

    def last(start, rate):
        a = jnp.asarray(generator()) + rate * jnp.zeros((3, 3)).at[0, 0].set(1.0)
        path = solve(lambda y: a @ y, start, jnp.asarray(times), tolerance=tolerance)
        return path[-1], path

    slopes = jax.jit(jax.jacrev(last, (0, 1), has_aux=True))
    (by_start, by_rate), path = slopes(jnp.asarray(start), 0.0)
    expected = np.stack([expm(generator() * (t - times[0])) @ start for t in times])
    np.testing.assert_allclose(path, expected, atol=1e-5)
    duration, small = times[-1] - times[0], 1e-5
    np.testing.assert_allclose(by_start, expm(generator() * duration), atol=2e-5)
    ends = [expm(generator(sign * small) * duration) @ start for sign in (1, -1)]
    np.testing.assert_allclose(by_rate, (ends[0] - ends[1]) / (2 * small), atol=3e-5)


def test_single_steps_are_of_order_five_or_more():
    """y′ = −y³, y(t) = (1 + 2t)^−½, in double precision, where rounding does not hide the order."""
    sizes, errors = 1.0 / np.array([4, 8, 16]), []
    with jax.enable_x64(True):
        for size in sizes:
            times = jnp.asarray(np.arange(0.0, 2.0 + size / 2, size))
            found = solve(lambda y: -(y**3), jnp.ones(()), times, tolerance=None)
            errors.append(abs(float(found[-1]) - 5**-0.5))
    assert strong_order(sizes, errors) > 4.8
    assert errors[0] < 1e-4


def test_adapted_steps_cross_long_gaps_as_closely_as_asked():
    times = np.array([0.0, 0.1, 6.0, 6.05, 11.0])

    def error(tolerance):
        start = Swing(jnp.ones(()), jnp.zeros(()))
        found = solve(swing, start, jnp.asarray(times), tolerance=tolerance).position
        return np.abs(found - position(times)).max()

    loose = error(1e-2)
    assert error(1e-6) < 2e-5 < loose < 0.1
    assert error(None) > 1.0  # single steps are too long here


def test_steps_that_run_out_give_no_number_and_no_error():
    """A field that explodes leaves numbers that are not finite, which training skips."""
    times = jnp.array([0.0, 0.5, 2.0])
    found = solve(lambda y: y**2, jnp.ones(()), times, tolerance=1e-4)
    np.testing.assert_allclose(found[1], 2.0, rtol=1e-3)  # 1/(1 − t)
    assert not np.isfinite(found[2])


@pytest.mark.parametrize("tolerance", [None])
def test_series_side_by_side_and_on_two_devices_are_as_alone(tolerance):
    """Every series has its own times and stiffness; on devices with gradients."""
    stiffness = np.array([1.0, 4.0, 9.0])
    dense = DENSE[:9]
    times = np.stack([0.5 * dense, dense, dense[-1] - dense[::-1]])

    def path(stiffness, times):
        start = Swing(jnp.ones(()), jnp.zeros(()))
        return solve(lambda s: swing(s, stiffness), start, times, tolerance=tolerance).position

    def one(stiffness, times):
        def last(stiffness):
            found = path(stiffness, times)
            return found[-1], found

        return jax.grad(last, has_aux=True)(stiffness)

    given = jnp.asarray(stiffness), jnp.asarray(times)
    mapped = jax.jit(jax.vmap(path))(*given)
    slopes, spread = jax.jit(lambda *args: over_seeds(one, *args))(*given)
    assert len(spread.sharding.device_set) == 2
    small = 1e-5
    for row, (k, t) in enumerate(zip(stiffness, times, strict=True)):
        np.testing.assert_allclose(mapped[row], position(t, k), atol=3e-5)
        np.testing.assert_allclose(spread[row], position(t, k), atol=3e-5)
        slope = (position(t[-1], k + small) - position(t[-1], k - small)) / (2 * small)
        np.testing.assert_allclose(slopes[row], slope, atol=1e-4)
