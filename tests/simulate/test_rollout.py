"""Paths and path KL against closed forms."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from helpers import (
    assert_mean_close,
    assert_variance_close,
    linear_model,
    regular_batch,
    single_rollout,
    strong_order,
    tiny_model,
    wiggles,
)
from hybridsde import EulerMaruyama, Trajectories, known_drift
from hybridsde.data import Batch, Grid
from hybridsde.model import LearnedDrift, Scale
from hybridsde.model.diffusion import constant_diffusion, function_diffusion
from hybridsde.model.drift import KnownDrift, make_gate
from hybridsde.model.network import ZeroNetwork
from hybridsde.model.sde import SDE
from hybridsde.simulate import simulate

OU = known_drift(lambda x, a: {"x": -a * x}, a=1.0)
"""The prior process: rate a = 1. With the learned −b x it becomes rate κ = 1.5."""


def ou_path_kl(steps: int, a=1.0, kappa=1.5, g=0.5, h0=1.0, horizon=1.0) -> float:
    """E ½ Σ b²h²Δt/G² of the Euler scheme: second moments m ← (1 − κΔt)²m + G²Δt."""
    dt, b, m, total = horizon / steps, kappa - a, h0**2, 0.0
    for _ in range(steps):
        total += m
        m = (1 - kappa * dt) ** 2 * m + g**2 * dt
    return b**2 * dt / (2 * g**2) * total


@pytest.mark.long
@pytest.mark.parametrize(
    ("steps", "printed"),
    [
        (10, 0.202638),
        (50, 0.189825),
        pytest.param(1000, 0.186986, marks=pytest.mark.slow),
    ],
)
@pytest.mark.slow
def test_ou_path_kl(steps, printed, getkey):
    np.testing.assert_allclose(ou_path_kl(steps), printed, atol=5e-7)
    model = linear_model(-0.5, physics=OU, diffusion=0.5)
    batch = regular_batch(steps, 1.0)
    paths = simulate(model, EulerMaruyama(), batch, samples=20_000, key=getkey())
    assert_mean_close(paths.kl[:, 0], printed)


def test_ou_path_kl_in_the_limit():
    """The closed form of the audit, approached by the Euler sums at first order."""
    a, kappa, g, h0, horizon = 1.0, 1.5, 0.5, 1.0, 1.0
    decay = (1 - np.exp(-2 * kappa * horizon)) / (2 * kappa)
    limit = (kappa - a) ** 2 / (2 * g**2) * (h0**2 * decay + g**2 / (2 * kappa) * (horizon - decay))
    np.testing.assert_allclose(limit, 0.186838, atol=5e-7)
    np.testing.assert_allclose(ou_path_kl(100_000), limit, rtol=1e-5)


@pytest.mark.parametrize("steps", [1, 7, 100])
@pytest.mark.slow
def test_constant_drift_path_kl_for_any_step(steps, getkey):
    c, g, horizon = 0.3, 0.5, 2.0
    model = linear_model(0.0, [c], diffusion=g)
    paths = simulate(model, EulerMaruyama(), regular_batch(steps, horizon), samples=3, key=getkey())
    np.testing.assert_allclose(paths.kl, c**2 * horizon / (2 * g**2), rtol=1e-5)
    np.testing.assert_allclose(paths.kl, 0.36, rtol=1e-5)


@pytest.mark.slow
def test_path_kl_is_zero_without_a_learned_drift(getkey):
    model = tiny_model(hidden=None).init(Batch.of(wiggles()), key=getkey())
    paths = simulate(model, EulerMaruyama(), Batch.of(wiggles()), samples=2, key=getkey())
    assert (paths.kl == 0).all()


@pytest.mark.slow
def test_ou_moments(getkey):
    """Mean and variance of the Euler scheme, exactly known for a linear SDE."""
    steps, kappa, g = 20, 1.5, 0.5
    dt = 1.0 / steps
    paths = simulate(
        linear_model(-kappa, diffusion=g),
        EulerMaruyama(),
        regular_batch(steps, 1.0),
        samples=20_000,
        key=getkey(),
    )
    shrink = 1 - kappa * dt
    end = paths.states[:, 0, -1, 0]
    assert_mean_close(end, shrink**steps)
    assert_variance_close(end, g**2 * dt * (1 - shrink ** (2 * steps)) / (1 - shrink**2))


@pytest.mark.long
@pytest.mark.slow
def test_endpoint_strong_order_on_geometric_brownian_motion(getkey):
    """Theorem 2 at the end point: E|h_T − h̃_T| ≤ R Δt^½, on one Brownian path per sample."""
    mu, sigma, horizon, finest, samples = 1.0, 0.8, 1.0, 512, 4000
    states = ("x",)
    growth = known_drift(lambda x: {"x": mu * x})
    sde = SDE(
        LearnedDrift(ZeroNetwork(outputs=1), Scale.identity(1, 0), autonomous=True),
        KnownDrift(growth, make_gate(None, states, states), states, ()),
        function_diffusion(lambda h, t: sigma * h, states),
    )
    dw = jnp.sqrt(horizon / finest) * jr.normal(getkey(), (samples, finest, 1))
    exact = jnp.exp((mu - sigma**2 / 2) * horizon + sigma * dw.sum(1)[:, 0])
    counts = np.array([8, 16, 32, 64, 128])

    def error(count: int) -> float:
        times = jnp.linspace(0.0, horizon, count + 1)
        grid = Grid.refine(times, jnp.diff(times), jnp.zeros((count + 1, 0)), 1)
        coarse = dw.reshape(samples, count, -1, 1).sum(2)
        end = jax.vmap(
            lambda one: single_rollout(sde, EulerMaruyama(), grid, jnp.ones(1), one).states[-1, 0]
        )(coarse)
        return float(jnp.abs(end - exact).mean())

    slope = strong_order(horizon / counts, [error(int(count)) for count in counts])
    assert abs(slope - EulerMaruyama.strong_order) < 0.1


@pytest.mark.slow
def test_substeps_equal_a_finer_grid(getkey):
    """Five sub-steps of 0.2 are the path of a grid of 0.04, read at every fifth point."""
    sde = linear_model(-1.0, diffusion=0.5).draw(key=getkey())
    coarse, fine = jnp.linspace(0, 1, 6), jnp.linspace(0, 1, 26)
    dw = 0.2 * jr.normal(getkey(), (25, 1))
    with_substeps = single_rollout(
        sde,
        EulerMaruyama(substeps=5),
        Grid.refine(coarse, jnp.diff(coarse), jnp.zeros((6, 0)), 5),
        jnp.ones(1),
        dw,
    )
    plain = single_rollout(
        sde,
        EulerMaruyama(),
        Grid.refine(fine, jnp.diff(fine), jnp.zeros((26, 0)), 1),
        jnp.ones(1),
        dw,
    )
    np.testing.assert_allclose(with_substeps.states, plain.states[::5], rtol=1e-5)
    np.testing.assert_allclose(with_substeps.kl, plain.kl, rtol=1e-5)


def test_grid_holds_inputs_and_counts_time():
    grid = Grid.refine(
        jnp.array([0.0, 1.0, 3.0]), jnp.array([1.0, 2.0]), jnp.array([[5.0], [6.0], [7.0]]), 2
    )
    np.testing.assert_allclose(grid.t, [0.0, 0.5, 1.0, 2.0])
    np.testing.assert_allclose(grid.dt, [0.5, 0.5, 1.0, 1.0])
    np.testing.assert_allclose(grid.u[:, 0], [5, 5, 6, 6])


def test_grid_interpolates_inputs_at_the_middle_of_its_steps():
    times = jnp.array([0.0, 1.0, 3.0])
    inputs = jnp.array([[5.0], [6.0], [2.0]])
    grid = Grid.refine(times, jnp.diff(times), inputs, 2, "linear")
    middles = grid.t + grid.dt / 2
    np.testing.assert_allclose(grid.u[:, 0], np.interp(middles, times, inputs[:, 0]))


@pytest.mark.slow
def test_padding_moves_nothing(getkey):
    """A short series beside a long one: the state stays, and no path KL is added."""
    t, y = np.linspace(0, 1, 11), np.ones((11, 1))
    both = Batch.of(Trajectories.from_arrays([t[:4], t], [y[:4], y], states=["x"]))
    model = linear_model(-1.0, diffusion=0.5)
    paths = simulate(model, EulerMaruyama(), both, samples=4, key=getkey())
    np.testing.assert_array_equal(
        paths.states[:, 0, 3:], jnp.broadcast_to(paths.states[:, 0, 3:4], (4, 8, 1))
    )
    moved = np.asarray(paths.states[:, 0, :3, 0])
    np.testing.assert_allclose(paths.kl[:, 0], (moved**2).sum(1) * 0.1 / (2 * 0.25), rtol=1e-4)


def test_scalar_diagonal_and_matrix_give_the_same_paths(getkey):
    sde = linear_model(-jnp.eye(2), diffusion=0.5).draw(key=getkey())
    times = jnp.linspace(0, 1, 11)
    grid = Grid.refine(times, jnp.diff(times), jnp.zeros((11, 0)), 1)
    dw = 0.3 * jr.normal(getkey(), (10, 2))
    results = [
        single_rollout(
            SDE(sde.learned, sde.known, constant_diffusion(value, ("x", "y"))),
            EulerMaruyama(),
            grid,
            jnp.ones(2),
            dw,
        )
        for value in (0.5, [0.5, 0.5], 0.5 * np.eye(2))
    ]
    for other in results[1:]:
        np.testing.assert_allclose(other.states, results[0].states, rtol=1e-5)
        np.testing.assert_allclose(other.kl, results[0].kl, rtol=1e-5)


@pytest.mark.parametrize(
    ("weights", "expected"), [("path", 0.2**2 * 1.0**2), ("local", 0.2**2 * 1.0 / 50)]
)
@pytest.mark.slow
def test_epistemic_variance_of_held_and_redrawn_weights(weights, expected, getkey):
    """Constant drift θ ~ N(0, s²), s = 0.2, T = 1, K = 50: s²T² held, s²TΔt redrawn."""
    model = linear_model(0.0, [0.0], bias_sd=0.2, diffusion=1e-6, weights=weights)
    batch = regular_batch(50, 1.0, start=(0.0,))
    paths = simulate(model, EulerMaruyama(), batch, samples=20_000, key=getkey())
    assert_variance_close(paths.states[:, 0, -1, 0], expected)


@pytest.mark.slow
def test_paths_of_one_draw_share_weights_and_differ_in_noise(getkey):
    model = linear_model(0.0, [0.0], bias_sd=1.0, diffusion=1e-4)
    batch = regular_batch(5, 1.0, start=(0.0,))
    paths = simulate(model, EulerMaruyama(), batch, samples=2, paths=3, key=getkey())
    ends = np.asarray(paths.states[:, 0, -1, 0]).reshape(2, 3)
    assert np.ptp(ends, axis=1).max() < 1e-2
    assert (np.ptp(ends, axis=1) > 0).all()
    assert abs(ends[0].mean() - ends[1].mean()) > 0.05


@pytest.mark.slow
def test_inputs_reach_physics_and_network(getkey):
    t = np.linspace(0, 1, 5)
    u = [np.full((5, 1), value) for value in (0.0, 1.0)]
    data = Trajectories.from_arrays(
        [t, t], [np.zeros((5, 1))] * 2, states=["x"], inputs=u, input_names=["heat"]
    )
    model = tiny_model(
        states=["x"],
        inputs=["heat"],
        physics=known_drift(lambda heat: {"x": 3.0 * heat}),
        diffusion=1e-6,
        hidden=None,
    ).init(Batch.of(data), key=getkey())
    paths = simulate(model, EulerMaruyama(), Batch.of(data), samples=1, key=getkey())
    np.testing.assert_allclose(paths.states[0, :, -1, 0], [0.0, 3.0], atol=1e-4)


def test_substeps_must_be_positive():
    with pytest.raises(ValueError, match="`substeps`"):
        EulerMaruyama(substeps=0)
