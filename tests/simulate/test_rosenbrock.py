"""The implicit scheme: second order, stable where Heun's rule is not."""

import jax.numpy as jnp
import numpy as np
import pytest

import hybridsde as hs
from helpers import single_rollout, strong_order
from hybridsde.data import Grid
from hybridsde.model import physics_sde
from hybridsde.simulate import Heun, Rosenbrock
from hybridsde.simulate.solver import IMPLICIT


def end(physics, solver, steps, h0, horizon=1.0):
    sde = physics_sde(physics, 1e-6, tuple(f"x{n}" for n in range(len(h0))))
    times = jnp.linspace(0.0, horizon, steps + 1)
    grid = Grid.refine(times, jnp.diff(times), jnp.zeros((steps + 1, 0)), 1)
    return single_rollout(sde, solver, grid, jnp.array(h0), jnp.zeros((steps, len(h0)))).states[-1]


@pytest.mark.slow
def test_second_order_on_a_nonlinear_drift():
    physics = hs.equations("dx0 = -x0^2")
    steps = np.array([4, 8, 16, 32])
    errors = [abs(float(end(physics, Rosenbrock(), n, [1.0])[0]) - 0.5) for n in steps]
    assert strong_order(1 / steps, errors) == pytest.approx(2, abs=0.25)


def test_stiff_decay_is_stable_with_steps_of_a_tenth():
    """Rate 1000: x0 follows x1, which decays slowly."""
    physics = hs.equations("dx0 = 1000*(x1 - x0)", "dx1 = -x1")
    stiff = end(physics, Rosenbrock(), 10, [0.0, 1.0])
    np.testing.assert_allclose(stiff, np.exp(-1.0), rtol=0.01)
    explicit = end(physics, Heun(), 10, [0.0, 1.0])
    assert not np.allclose(explicit[0], np.exp(-1.0), rtol=0.5)


def test_the_stationary_variance_of_a_stiff_state_is_the_one_that_is_stated():
    """2z/(1 + az)² of G²/2λ, z = λΔt, up to what is left of the state after a step."""
    rate, g, dt = 2000.0, 0.3, 0.1
    sde = physics_sde(hs.equations("dx0 = -2000*x0"), g, ("x0",))
    zero = jnp.zeros(1)
    found = Rosenbrock().transition(sde, jnp.zeros(()), zero, jnp.zeros(0), jnp.asarray(dt), None)
    a, b = float(found.by_state[0, 0]), float(found.by_noise[0, 0])
    assert abs(a) < 0.05
    z = rate * dt
    share = b**2 * dt / (1 - a**2) / (g**2 / (2 * rate))
    assert share == pytest.approx(2 * z / (1 + IMPLICIT * z) ** 2, rel=0.01)


def test_the_transition_is_the_slope_of_the_step():
    physics = hs.equations("dx0 = -3*x0 + x1", "dx1 = -x0")
    sde = physics_sde(physics, 0.3, ("x0", "x1"))
    dt, h = jnp.asarray(0.1), jnp.array([0.2, -0.1])
    a = jnp.array([[-3.0, 1.0], [-1.0, 0.0]])
    for solver in (Heun(), Rosenbrock()):
        found = solver.transition(sde, jnp.zeros(()), h, jnp.zeros(0), dt, None)
        np.testing.assert_allclose(found.mean, found.by_state @ h, rtol=1e-3)
    explicit = Heun().transition(sde, jnp.zeros(()), h, jnp.zeros(0), dt, None)
    np.testing.assert_allclose(
        explicit.by_state, jnp.eye(2) + dt * a + 0.5 * dt**2 * a @ a, rtol=1e-3
    )
    np.testing.assert_allclose(explicit.by_noise, 0.3 * np.eye(2), rtol=1e-6)


@pytest.mark.parametrize("size", [1.0, 1e3, 1e9])
def test_slopes_are_bounded_where_moves_are(size):
    """Heun's rule on a drift that explodes: a covariance that passes many steps stays a number."""
    sde = physics_sde(hs.equations("dx0 = 10*x0^3"), 0.3, ("x0",))
    h, dt = jnp.array([size]), jnp.asarray(0.1)
    found = Heun().transition(sde, jnp.zeros(()), h, jnp.zeros(0), dt, None)
    assert abs(float(found.mean[0]) - size) <= 5.0 + 1e-6 * size
    assert 1.0 <= float(found.by_state[0, 0]) < 10.0
