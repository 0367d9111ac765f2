"""A measurement at a limit says that the quantity is there or beyond."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm, truncnorm

import hybridsde as hs
from hybridsde.data import Batch
from hybridsde.estimate.censored import Tail, at_limit
from hybridsde.estimate.gaussian import GaussianState, Limits, update
from hybridsde.hybrid.scoring import LogLikelihood
from hybridsde.simulate import EulerMaruyama


@pytest.mark.parametrize("double", [False, True])
def test_the_tail_of_a_normal_is_that_of_scipy(double):
    alpha = np.array([-30.0, -5.0, -1.0, 0.0, 0.7, 3.0, 7.9, 8.1, 12.0, 30.0])
    with jax.enable_x64(double):
        tail = Tail.above(jnp.asarray(alpha))
        tail = jax.tree.map(np.asarray, tail)
    beyond = truncnorm(alpha, np.inf)
    np.testing.assert_allclose(tail.log_share, norm.logsf(alpha), rtol=2e-5, atol=3e-8)
    np.testing.assert_allclose(tail.hazard, beyond.mean(), rtol=3e-4, atol=1e-6)
    # Above 12 scipy's variance is rounding; the series says 1 − 1/α² + 6/α⁴.
    near = alpha < 10
    np.testing.assert_allclose(1 - tail.narrowing[near], beyond.var()[near], atol=2e-3)
    np.testing.assert_allclose(
        tail.narrowing[~near], 1 - 1 / alpha[~near] ** 2 + 6 / alpha[~near] ** 4, atol=2e-3
    )


def test_measurements_at_limits_are_found():
    limits = ((0.0, 10.0), (-np.inf, 5.0), (-np.inf, np.inf))
    rows = jnp.array([[0.0, -9.0, 3.0], [10.0, 5.0, 1e9], [9.999, 4.999, 0.0], [11.0, 6.0, 0.0]])
    expected = [[-1, 0, 0], [1, 1, 0], [0, 0, 0], [1, 1, 0]]
    np.testing.assert_array_equal(at_limit(rows, limits), expected)


@pytest.mark.parametrize(("side", "limit"), [(1.0, 0.9), (-1.0, -0.2), (1.0, 4.0)])
def test_the_state_beyond_a_limit_has_the_moments_of_the_truncated_gaussian(side, limit):
    """Against sums over a fine grid of (x, y): y + ε, ε ~ N(0, σ²), is at its limit."""
    mean, covariance = np.array([0.5, 0.3]), np.array([[0.8, 0.5], [0.5, 0.6]])
    sd = 0.2
    axis = np.linspace(-7, 8, 1201)
    x, y = np.meshgrid(axis, axis, indexing="ij")
    density = multivariate_normal(mean, covariance).pdf(np.stack([x, y], -1))
    weight = density * norm.cdf(side * (y - limit) / sd)
    share = weight.sum() / density.sum()
    expected = np.array([(weight * one).sum() for one in (x, y)]) / weight.sum()
    apart = np.stack([x - expected[0], y - expected[1]])
    spread = np.einsum("aij,bij,ij->ab", apart, apart, weight) / weight.sum()
    found, innovation = update(
        GaussianState(jnp.asarray(mean, float), jnp.asarray(covariance, float)),
        jnp.array([[0.0, 1.0]]),
        jnp.array([sd]),
        jnp.array([limit]),
        jnp.array([True]),
        limits=Limits(jnp.array([side]), jnp.zeros(1)),
    )
    np.testing.assert_allclose(innovation.log_prob, np.log(share), rtol=1e-3)
    np.testing.assert_allclose(found.mean, expected, rtol=1e-3)
    np.testing.assert_allclose(found.covariance, spread, rtol=5e-3, atol=1e-4)


def levels(limit, rows=400, count=2, *, middle=1.8, seed=0):
    """dx = −(x − m) dt + 0.5 dW in exact steps of 0.2, noise 0.05, shown up to a limit."""
    rng = np.random.default_rng(seed)
    decay = np.exp(-0.2)
    spread = 0.5 * np.sqrt((1 - decay**2) / 2)
    x, out = np.full(count, middle), []
    for _ in range(rows):
        out.append(x)
        x = middle + decay * (x - middle) + spread * rng.normal(size=count)
    shown = np.minimum(np.stack(out, 1) + 0.05 * rng.normal(size=(count, rows)), limit)
    return hs.Trajectories.from_arrays(
        [0.2 * np.arange(rows)] * count, list(shown[..., None]), states=("x",)
    )


def spec(**more) -> hs.HybridSDE:
    physics = hs.equations(
        "dx = k*(m - x)", k=hs.Bounded.of(0.5, 0.05, 5.0), m=hs.Bounded.of(1.0, 0.0, 5.0)
    )
    return hs.HybridSDE(states=("x",), physics=physics, exact=("x",), learned="library", **more)


def test_gradients_of_the_log_likelihood_know_limits():
    declared = spec(saturates={"x": (0.0, 2.0)})
    batch = Batch.of(levels(2.0, rows=40))
    model = declared.init(batch, key=jax.random.key(0))
    likelihood = LogLikelihood(model, model.network.mean(), EulerMaruyama(), batch)
    theta = likelihood.start.copy()
    found = likelihood(theta)
    for k in range(likelihood.coefficients, len(theta)):
        step = np.zeros(len(theta))
        step[k] = 1e-5
        slope = (likelihood(theta + step).value - likelihood(theta - step).value) / 2e-5
        np.testing.assert_allclose(found.gradient[k], slope, rtol=1e-4, atol=1e-4)
    told = np.isfinite(found.innovations)
    assert told.sum() < np.asarray(batch.observed)[:, 1:].sum()  # those at the limit are no errors


def middle_of(declared: hs.HybridSDE, data: hs.Trajectories) -> tuple[float, float]:
    """The fitted m and its standard error."""
    found = (hs.fit(declared, data).metadata.parameters or {})["m"]
    return float(found["value"] or np.nan), float(found["error"] or np.nan)


@pytest.mark.slow
def test_a_level_above_its_sensor_is_found():
    """A third of the rows is at the limit; five standard errors of the estimate."""
    data = levels(2.0)
    assert 0.25 < (data.values >= 2).mean() < 0.45
    value, error = middle_of(spec(saturates={"x": (-np.inf, 2.0)}), data)
    assert abs(value - 1.8) < 5 * error
    assert error < 0.08
    assert middle_of(spec(), data)[0] < 1.8 - 0.05


@pytest.mark.slow
def test_a_tank_that_overflows_stays_full():
    """Water flows in faster than out: paths and forecasts stop at the rim, and leave it later."""
    full = hs.HybridSDE(
        states=("level",),
        inputs=("u",),
        physics=hs.equations("dlevel = u - 0.5"),
        bounds={"level": (0, 2)},
        diffusion=0.01,
        noise=0.01,
        hidden=None,
    )
    times = 0.1 * np.arange(60)
    u = np.where(times < 4, 1.0, 0.0)
    level = np.minimum(1 + 0.5 * times, 2) - np.where(times > 4, 0.5 * (times - 4), 0)
    data = hs.Trajectories.from_arrays(
        [times], [level[:, None]], states=("level",), inputs=[u[:, None]], input_names=("u",)
    )
    run = hs.fit(full, data, training=hs.Training(epochs=1))
    forecast = run.forecast(data.start(), elapsed=times[1:], inputs=u[None, 1:, None], draws=50)
    found = forecast.observations.values[:, 0, :, 0].mean(0)
    np.testing.assert_allclose(found, level[1:], atol=0.03)
