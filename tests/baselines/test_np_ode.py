"""Gaussian-process vector fields: closed forms of field, prior, decoder and noise."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.distance import cdist
from scipy.stats import norm

import hybridsde as hs
from helpers import assert_mean_close, assert_variance_close, oscillations
from hybridsde._parameters import Fixed, Positive
from hybridsde.baselines import Climatology, NpODE, np_ode
from hybridsde.baselines.np_ode import (
    GaussianProcessODE,
    Kernel,
    LinearDecoder,
    LogDiffusion,
    spread_out,
)
from hybridsde.data import Batch
from hybridsde.fit import Training
from hybridsde.forecast import evaluate

pytestmark = pytest.mark.slow

NAMES = ("x", "v")
LENGTH, SIZE, RATE = np.array([0.7, 1.6]), 1.3, 2.0


def ragged(lengths=(8, 5), missing=True):
    """Irregular times, one missing value, and a series that needs padding."""
    rng = np.random.default_rng(5)
    times = [np.cumsum(rng.uniform(0.05, 0.15, n)) for n in lengths]
    mix = np.array([[1.0, 0.5], [0.0, 2.0]])
    values = [rng.normal(size=(len(t), 2)) @ mix + [1.0, -2.0] for t in times]
    seen = [np.ones((len(t), 2), bool) for t in times]
    seen[0][4, 1] = not missing
    return hs.Trajectories.from_arrays(times, values, observed=seen, states=NAMES)


def gram(x, y, length=LENGTH, size=SIZE):
    """α² exp(−½ |x − y|²/ℓ²)."""
    return size**2 * np.exp(-0.5 * cdist(x / length, y / length, "sqeuclidean"))


def kernel_of(points, length=LENGTH, size=SIZE):
    return Kernel(Fixed(jnp.asarray(points)), Positive.of(length), Positive.of(size))


@pytest.fixture(scope="module")
def numbers():
    """Inducing points, their whitened values, and places to look at."""
    rng = np.random.default_rng(3)
    return rng.normal(size=(6, 2)), rng.normal(size=(6, 2)), rng.normal(size=(4, 2))


def jittered(points, length=LENGTH, size=SIZE):
    return gram(points, points, length, size) + np_ode.JITTER * size**2 * np.eye(len(points))


def field(x, points, weights, length=LENGTH, size=SIZE):
    """K(x, Z) K(Z, Z)⁻¹ U with U = L V, in double precision."""
    k = jittered(points, length, size)
    u = np.linalg.cholesky(k) @ weights
    return gram(x, points, length, size) @ np.linalg.solve(k, u)


def constant_field(value, *, diffusion=None, noise=0.1, start=(0.5, -1.0), rows=5):
    """One inducing point and a length without end: f(x) = U everywhere. States are observed."""
    batch = Batch.of(
        hs.Trajectories.from_arrays(
            [np.array([0.0, 0.1, 0.3, 0.35, 0.6])[:rows]],
            [np.tile(np.asarray(start, float), (rows, 1))],
            states=NAMES,
        )
    )
    model = GaussianProcessODE(
        kernel=kernel_of(np.zeros((1, 2)), length=np.full(2, 1e4), size=1.0),
        weights=jnp.asarray(value, float)[None],
        diffusion=diffusion,
        observation=LinearDecoder(
            mean_value=Fixed(jnp.zeros(2)),
            basis=Fixed(jnp.eye(2)),
            lift=Fixed(jnp.eye(2)),
            sd=Fixed(jnp.full(2, noise)),
            names=NAMES,
            positive=(),
        ),
        rate=Fixed(jnp.asarray(RATE)),
        context=1,
        samples=1,
        tolerance=None,
    )
    return model, batch


def seen_at(kernel, x, weights):
    """F(x) of whitened values, as the model computes it."""
    return kernel(jnp.asarray(x), kernel.inducing.value) @ kernel.coloured(jnp.asarray(weights))


def test_the_field_is_the_conditional_mean(numbers):
    points, weights, x = numbers
    found = seen_at(kernel_of(points), x, weights)
    np.testing.assert_allclose(found, field(x, points, weights), rtol=1e-3, atol=1e-4)


def test_at_an_inducing_point_the_field_is_its_value(numbers, monkeypatch):
    """In double precision and almost without jitter."""
    points, values, _ = numbers
    monkeypatch.setattr(np_ode, "JITTER", 1e-12)
    with jax.enable_x64(True):
        kernel = kernel_of(points)
        lower = np.linalg.cholesky(gram(points, points) + 1e-12 * SIZE**2 * np.eye(6))
        found = seen_at(kernel, points, np.linalg.solve(lower, values))
    np.testing.assert_allclose(found, values, atol=1e-7)


def test_standard_normal_weights_have_the_covariance_of_the_kernel(numbers):
    """Whitening: Cov f(x) = K(x, Z) K(Z, Z)⁻¹ K(Z, x) for V ~ N(0, I)."""
    points, _, x = numbers
    features = np.asarray(seen_at(kernel_of(points), x, np.eye(6)))
    between = gram(x, points)
    expected = between @ np.linalg.solve(jittered(points), between.T)
    np.testing.assert_allclose(features @ features.T, expected, rtol=1e-3, atol=1e-4)


def test_triangular_algebra_is_that_of_numpy(numbers):
    """Factor, solution, and the derivative of both against finite differences."""
    points, weights, _ = numbers
    with jax.enable_x64(True):
        matrix = jittered(points)
        lower = np_ode.cholesky(jnp.asarray(matrix))
        np.testing.assert_allclose(lower, np.linalg.cholesky(matrix), atol=1e-10)
        found = np_ode.solve_transposed(lower, jnp.asarray(weights))
        np.testing.assert_allclose(found, np.linalg.solve(np.asarray(lower).T, weights), rtol=1e-8)

        def total(scale):
            lower = np_ode.cholesky(jnp.asarray(matrix) + scale * jnp.eye(6))
            return np_ode.solve_transposed(lower, jnp.asarray(weights)).sum()

        slope, small = jax.grad(total)(0.1), 1e-6
        ends = [
            np.linalg.solve(np.linalg.cholesky(matrix + a * np.eye(6)).T, weights).sum()
            for a in (0.1 + small, 0.1 - small)
        ]
        np.testing.assert_allclose(slope, (ends[0] - ends[1]) / (2 * small), rtol=1e-5)


def test_points_are_farthest_from_those_before_them():
    """Greedy farthest points, by numpy; unusable rows are far out, and never taken."""
    rng = np.random.default_rng(0)
    points, usable = rng.normal(size=(40, 3)).astype(np.float32), rng.random(40) < 0.6
    points[~usable] *= 100
    found = np.asarray(spread_out(jnp.asarray(points), jnp.asarray(usable), 8, key=jr.key(1)))
    chosen = cdist(found, points).argmin(1)
    assert usable[chosen].all()
    assert len(set(chosen)) == 8
    candidates = np.flatnonzero(usable)
    for count in range(1, 8):
        nearest = cdist(points[candidates], points[chosen[:count]]).min(1)
        assert candidates[nearest.argmax()] == chosen[count]


def test_the_first_point_depends_on_the_key_and_too_many_repeat():
    points, usable = jnp.arange(12.0).reshape(6, 2), jnp.array([1, 1, 0, 1, 0, 1], bool)
    firsts = {float(spread_out(points, usable, 1, key=jr.key(k))[0, 0]) for k in range(30)}
    assert firsts == {0.0, 2.0, 6.0, 10.0}
    many = np.asarray(spread_out(points, usable, 6, key=jr.key(0)))
    assert set(many[:, 0]) == {0.0, 2.0, 6.0, 10.0}


def test_without_components_states_are_standardised_observations():
    data = ragged()
    decoder = LinearDecoder.of(NpODE(observed=NAMES), Batch.of(data))
    states = decoder.states(jnp.asarray(data.values), jnp.asarray(data.observed))
    for column in range(2):
        seen = data.observed[..., column]
        known = data.values[..., column][seen]
        expected = (known - known.mean()) / known.std()
        np.testing.assert_allclose(states[..., column][seen], expected, rtol=1e-4, atol=1e-5)
        assert (np.asarray(states[..., column])[~seen] == 0).all()  # missing counts as the mean
    back = np.asarray(decoder.mean(states))
    np.testing.assert_allclose(back[data.observed], data.values[data.observed], rtol=1e-4)


def principal_components(values, count):
    """Mean, axes and standard deviations along them, from the covariance matrix."""
    mean = values.mean(0)
    variance, axes = np.linalg.eigh(np.cov(values.T, bias=True))
    order = np.argsort(variance)[::-1][:count]
    return mean, axes[:, order], np.sqrt(variance[order])


@pytest.mark.parametrize("lengths", [(8, 8), (8, 3)], ids=["full", "padded"])
def test_components_are_those_of_the_recorded_rows_with_unit_variance(lengths):
    data = ragged(lengths, missing=False)
    recorded = np.concatenate([y[:n] for y, n in zip(data.values, data.lengths, strict=True)])
    decoder = LinearDecoder.of(NpODE(observed=NAMES, components=1), Batch.of(data))
    mean, axes, sd = principal_components(recorded, 1)
    states = decoder.states(jnp.asarray(recorded), jnp.ones(recorded.shape, bool))
    expected = (recorded - mean) @ axes / sd
    sign = np.sign(expected[0] * np.asarray(states)[0])
    np.testing.assert_allclose(
        decoder.mean(states), mean + (recorded - mean) @ axes @ axes.T, atol=1e-4
    )
    np.testing.assert_allclose(states, sign * expected, atol=1e-4)
    np.testing.assert_allclose(np.asarray(states).std(), 1.0, atol=1e-4)


def test_the_loss_is_the_likelihood_of_the_path_and_the_price_of_the_field(numbers):
    """−mean ln p(Y | f) by scipy's solver, without the first rows, + ½ Σ V²/N."""
    data, (points, weights, _) = ragged(), numbers
    model, _ = constant_field((0.0, 0.0))
    decoder = LinearDecoder.of(NpODE(observed=NAMES, noise=(0.5, 0.8)), Batch.of(data))
    model = replace(
        model, kernel=kernel_of(points), weights=jnp.asarray(weights), observation=decoder
    )
    seen = data.observed
    mean = np.array([data.values[..., c][seen[..., c]].mean() for c in range(2)])
    spread = np.array([data.values[..., c][seen[..., c]].std() for c in range(2)])
    logs = []
    for n, rows in enumerate(data.lengths):
        t, y = data.times[n, :rows], data.values[n, :rows]
        x = solve_ivp(
            lambda _, x: RATE * field(x[None], points, weights)[0],
            (t[0], t[-1]),
            (y[0] - mean) / spread,
            t_eval=t,
            rtol=1e-9,
            atol=1e-10,
        ).y.T
        density = norm.logpdf(y, mean + spread * x, [0.5, 0.8])
        logs.append(density[1:][seen[n, 1:rows]].sum())
    price = 0.5 * (weights**2).sum() / 20
    terms = model.loss(Batch.of(data), 20, key=jr.key(0))
    np.testing.assert_allclose(terms.log_likelihood, np.mean(logs), rtol=1e-4)
    np.testing.assert_allclose(terms.complexity, price, rtol=1e-5)
    np.testing.assert_allclose(terms.loss, price - np.mean(logs), rtol=1e-4)


def test_a_diffusion_has_its_own_price():
    spread = LogDiffusion(Positive.of(0.1), jnp.array([[3.0]]))
    model, batch = constant_field((0.4, -0.2), diffusion=spread)
    terms = model.loss(batch, 4, key=jr.key(0))
    np.testing.assert_allclose(terms.complexity, 0.5 * (0.4**2 + 0.2**2 + 3.0**2) / 4, rtol=1e-5)


@pytest.mark.parametrize("diffusion", [None, LogDiffusion(Positive.of(1e-6), jnp.zeros((1, 1)))])
def test_a_constant_field_moves_by_its_rate(diffusion):
    """x(t) = x₀ + r U t, with and without diffusion."""
    model, batch = constant_field((0.4, -0.2), diffusion=diffusion)
    found = model.predict(batch, 1, key=jr.key(0)).means[0, 0]
    times = np.asarray(batch.times)[0]
    expected = np.array([0.5, -1.0]) + RATE * times[:, None] * [0.4, -0.2]
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_noise_without_a_field_grows_like_a_random_walk(getkey):
    """Var x(t) = r g₀² t in every dimension, independent increments; g₀ is scaled by e^{V_g}."""
    spread = LogDiffusion(Positive.of(0.6), jnp.full((1, 1), 0.5))
    model, batch = constant_field((0.0, 0.0), diffusion=spread)
    x = np.asarray(model.paths(batch, 0, 20_000, key=getkey())[:, 0], float)
    times = np.asarray(batch.times, float)[0]
    g = 0.6 * np.exp(0.5 / np.sqrt(1 + np_ode.JITTER))
    assert_mean_close(x[:, 1:], np.broadcast_to([0.5, -1.0], (4, 2)))
    assert_variance_close(x[:, 1:], np.tile(RATE * g**2 * times[1:, None], 2))
    steps = np.diff(x, axis=1)
    assert_mean_close(steps[:, 0] * steps[:, 1], 0.0)
    assert_mean_close(steps[..., 0] * steps[..., 1], 0.0)


def test_diffusion_depends_on_the_state_as_the_kernel_says(numbers, getkey):
    """One step from one start: mean x + r f Δt, variance r g(x)² Δt, ln g = ln g₀ + K K⁻¹ L V_g."""
    points, weights, _ = numbers
    spread = np.random.default_rng(8).normal(size=(6, 1))
    model, batch = constant_field((0.0, 0.0), rows=2)
    model = replace(
        model,
        kernel=kernel_of(points),
        weights=jnp.asarray(weights),
        diffusion=LogDiffusion(Positive.of(0.3), jnp.asarray(spread)),
    )
    x = np.asarray(model.paths(batch, 0, 20_000, key=getkey())[:, 0, 1], float)
    start, span = np.array([[0.5, -1.0]]), RATE * 0.1
    g = 0.3 * np.exp(field(start, points, spread)[0, 0])
    assert_mean_close(x, start[0] + span * field(start, points, weights)[0])
    assert_variance_close(x, np.full(2, g**2 * span))


def test_the_likelihood_of_noisy_paths_is_a_mean_over_them(getkey):
    """Σ_k ln E p(y_k | x_k), as in the paper: here ln N(y_k; x₀, σ² + r g₀² t_k).

    The mean of the logarithms would be highest without any diffusion.
    """
    spread = LogDiffusion(Positive.of(0.3), jnp.zeros((1, 1)))
    model, batch = constant_field((0.0, 0.0), diffusion=spread, noise=0.3)
    moved = batch.values + jnp.array([[0.0, 0.1, -0.2, 0.3, 0.5]])[..., None]
    batch = replace(batch, values=moved)
    variance = 0.3**2 + RATE * 0.3**2 * np.asarray(batch.times, float)[0, 1:, None]
    gap = np.asarray(moved - moved[:, :1], float)[0, 1:]
    expected = norm.logpdf(gap, 0, np.sqrt(variance)).sum()
    keys = jr.split(getkey(), 20)
    found = jax.vmap(lambda key: replace(model, samples=4000).loss(batch, 1, key=key))(keys)
    assert_mean_close(found.log_likelihood, expected)


def test_a_forecast_starts_at_the_last_given_row():
    model, batch = constant_field((0.4, -0.2))
    batch = replace(batch, values=batch.values + jnp.arange(5.0)[:, None])
    found = replace(model, context=3).predict(batch, 2, key=jr.key(0)).means
    assert found.shape == (2, 1, 5, 2)
    np.testing.assert_allclose(found[0, 0, :3], batch.values[0, :3], atol=1e-5)
    times = np.asarray(batch.times)[0]
    expected = np.asarray(batch.values)[0, 2] + RATE * (times[3:, None] - times[2]) * [0.4, -0.2]
    np.testing.assert_allclose(found[1, 0, 3:], expected, atol=1e-4)
    other = replace(batch, values=batch.values.at[:, 3:].set(99.0))
    np.testing.assert_array_equal(
        found, replace(model, context=3).predict(other, 2, key=jr.key(0)).means
    )


def test_training_begins_with_a_field_like_the_difference_quotients():
    """Before any training the field is that of the oscillator, within a fifth."""
    data = oscillations(16, noise=0.0)
    model = NpODE(observed=NAMES, inducing=20).init(Batch.of(data), key=jr.key(0))
    y = data.values[:, :-1].reshape(-1, 2)
    truth = np.stack([y[:, 1], -4 * y[:, 0] - 0.4 * y[:, 1]], 1)
    x = model.observation.states(jnp.asarray(y), jnp.ones(y.shape, bool))
    found = model.rate.value * seen_at(model.kernel, x, model.weights)
    found = np.asarray(found @ model.observation.basis.value.T)
    assert np.sqrt(((found - truth) ** 2).mean(0) / truth.var(0)).max() < 0.2


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_first_weights_are_those_of_double_precision(seed):
    """Many inducing points lie close, yet single precision finds the field that fits best.

    V = argmin |Φ V − slopes|² + λ |V|² with Φ = K(x, Z) L⁻ᵀ, of which the length is moderate.
    """
    data = oscillations(16)
    model = NpODE(observed=NAMES).init(Batch.of(data), key=jr.key(seed))
    x = (data.values - data.values.mean((0, 1))) / data.values.std((0, 1))
    slope = (np.diff(x, axis=1) / 0.1).reshape(-1, 2)
    slope /= np.sqrt((slope**2).mean())
    points, one = np.asarray(model.kernel.inducing.value, float), np.ones(2)
    lower = np.linalg.cholesky(jittered(points, one, 1.0))
    features = np.linalg.solve(lower, gram(points, x[:, :-1].reshape(-1, 2), one, 1.0)).T
    normal = features.T @ features + np_ode.RIDGE * np.eye(len(points))
    exact = np.linalg.solve(normal, features.T @ slope)
    np.testing.assert_allclose(features @ model.weights, features @ exact, atol=1e-2)
    np.testing.assert_allclose(np.linalg.norm(model.weights), np.linalg.norm(exact), rtol=0.01)


@pytest.mark.long
@pytest.mark.parametrize("diffusion", [False, True], ids=["npODE", "npSDE"])
@pytest.mark.long
def test_a_damped_oscillator_is_learned(diffusion):
    training = Training(epochs=60, batch_size=16, learning_rate=2e-2)
    train, test = Batch.of(oscillations(16)), Batch.of(oscillations(8, seed=1))
    declared = NpODE(observed=NAMES, inducing=16, diffusion=diffusion)
    fitted = declared.inference(train, training=training).fit(train, key=jr.key(0))
    trivial = Climatology(observed=NAMES, given=declared.context).init(train)
    found, yardstick = (
        evaluate(model, test, 20, key=jr.key(1)) for model in (fitted.model, trivial)
    )
    assert found["mse"][-1] < 0.1 * yardstick["mse"][-1]
    assert found["nll"][-1] < yardstick["nll"][-1] - 0.5
    assert not fitted.diverged
