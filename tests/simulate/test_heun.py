"""Heun's rule: its order without noise, its bound, and its moments with noise."""

import jax.numpy as jnp
import numpy as np
import pytest

from helpers import assert_mean_close, assert_variance_close, linear_model, regular_batch
from hybridsde import EulerMaruyama, Heun, equations
from hybridsde.model.sde import physics_sde
from hybridsde.simulate import simulate

ROTATION = physics_sde(equations("dx = y", "dy = -x"), 1e-6, ("x", "y"))


def end(solver, steps, horizon=1.0):
    """Where the noiseless rotation is after `horizon`."""
    h, dt, zero = jnp.array([1.0, 0.0]), jnp.asarray(horizon / steps), jnp.zeros(2)
    for _ in range(steps):
        h, _ = solver.step(ROTATION, jnp.zeros(()), h, jnp.zeros(0), dt, zero, None)
    return np.asarray(h)


def test_second_order_without_noise():
    exact = np.array([np.cos(1), -np.sin(1)])
    steps = np.array([4, 8, 16])
    errors = [np.abs(end(Heun(), n) - exact).max() for n in steps]
    assert np.polyfit(np.log(1 / steps), np.log(errors), 1)[0] == pytest.approx(2, abs=0.25)


def test_oscillations_do_not_grow_as_under_euler():
    ours, theirs = (np.linalg.norm(end(s, 200, 20.0)) for s in (Heun(), EulerMaruyama()))
    assert ours == pytest.approx(1, abs=0.02)
    assert theirs > 2


def test_paths_stay_finite_where_euler_explodes():
    cubic = physics_sde(equations("dx = -x^3"), 1.0, ("x",))
    h = {Heun: jnp.array([30.0]), EulerMaruyama: jnp.array([30.0])}
    for solver in h:
        for _ in range(50):
            h[solver], _ = solver().step(
                cubic, jnp.zeros(()), h[solver], jnp.zeros(0), jnp.asarray(0.05), jnp.zeros(1), None
            )
    assert np.abs(h[Heun]).max() < 30
    assert not np.isfinite(h[EulerMaruyama]).all()


@pytest.mark.slow
def test_moments_of_an_ornstein_uhlenbeck_process(getkey):
    """m ← a m, v ← a² v + G²Δt with a = 1 − κΔt + (κΔt)²/2, within five standard errors."""
    steps, kappa, g = 20, 1.5, 0.5
    a, m, v = 1 - kappa / steps + (kappa / steps) ** 2 / 2, 1.0, 0.0
    for _ in range(steps):
        m, v = a * m, a**2 * v + g**2 / steps
    assert m == pytest.approx(np.exp(-kappa), rel=2e-3)
    model = linear_model(-kappa, diffusion=g)
    paths = simulate(model, Heun(), regular_batch(steps, 1.0), samples=20_000, key=getkey())
    last = paths.states[:, 0, -1, 0]
    assert_mean_close(last, m)
    assert_variance_close(last, v)


@pytest.mark.slow
def test_the_path_kl_is_that_of_the_drift_at_the_start(getkey):
    model = linear_model(0.0, [0.7], diffusion=0.5)
    paths = simulate(model, Heun(), regular_batch(10, 1.0), samples=4, key=getkey())
    np.testing.assert_allclose(paths.kl, 0.5 * (0.7 / 0.5) ** 2, rtol=1e-5)
