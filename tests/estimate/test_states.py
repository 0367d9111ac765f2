"""Filtered and smoothed states against dense joint Gaussians and another library, to 1e-5."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from statsmodels.tsa.statespace.kalman_smoother import KalmanSmoother

from helpers import assert_mean_close
from hybridsde import EulerMaruyama, HybridSDE, Trajectories, equations
from hybridsde.data import Batch
from hybridsde.estimate.estimator import Record
from hybridsde.estimate.kalman import ExtendedKalman
from hybridsde.estimate.states import backward_paths, factor, smoothed

RATES = np.array([[-0.8, 1.0], [-1.2, -0.3]])
SPREAD, NOISE = np.array([0.3, 0.2]), 0.15
START = (0.4, 1.5)
"""Mean and spread of the hidden start, in its own units."""


def hidden_velocity(times):
    """dx = Ax dt + G dW of which only the first component is measured, with gaps."""
    rng = np.random.default_rng(3)
    values = rng.normal(size=(len(times), 1))
    seen = rng.uniform(size=values.shape) < 0.8
    seen[0] = True
    data = Trajectories.from_arrays([times], [values], states=("x",), observed=[seen])
    model = HybridSDE(
        states=("x", "y"),
        observed=("x",),
        physics=equations("dx = a*x + b*y", "dy = c*x + d*y", a=-0.8, b=1.0, c=-1.2, d=-0.3),
        diffusion=SPREAD,
        noise=NOISE,
        hidden=None,
        start={"y": (START[0] - 2 * START[1], START[0] + 2 * START[1])},
        standardise=False,
    )
    return data, model


def found_states(data, model):
    """The track of the only series, in double precision."""
    batch = Batch.of(data)
    built = model.init(batch, key=jr.key(0))
    series = jax.tree.map(lambda leaf: leaf[0], batch)
    sde = built.driven_by(built.network.mean())
    record = Record(built, sde, EulerMaruyama(), series)
    return eqx.filter_jit(lambda: ExtendedKalman().track(record))()


def joint(data):
    """Mean and covariance of all states of the discretised system, before any later row."""
    times, y = data.times[0], data.values[0]
    mean = np.array([y[0, 0], START[0]])
    cov = np.diag([NOISE**2, START[1] ** 2])
    means, covs, maps = [mean], [cov], [np.eye(2)]
    for dt in np.diff(times):
        step = np.eye(2) + RATES * dt
        mean, cov = step @ mean, step @ cov @ step.T + np.diag(SPREAD**2) * dt
        means.append(mean)
        covs.append(cov)
        maps.append(step)
    rows = len(times)
    whole = np.zeros((2 * rows, 2 * rows))
    for i in range(rows):
        across = covs[i]
        for j in range(i, rows):
            whole[2 * i : 2 * i + 2, 2 * j : 2 * j + 2] = across
            whole[2 * j : 2 * j + 2, 2 * i : 2 * i + 2] = across.T
            if j + 1 < rows:
                across = across @ maps[j + 1].T
    return np.concatenate(means), whole


def conditioned(data, until):
    """The same given the measured rows from the second to `until`; and ln p of these."""
    mean, cov = joint(data)
    kept = [2 * k for k in range(1, until + 1) if data.observed[0, k, 0]]
    y = np.array([data.values[0, k // 2, 0] for k in kept])
    block = cov[np.ix_(kept, kept)] + NOISE**2 * np.eye(len(kept))
    error, gain = y - mean[kept], cov[:, kept] @ np.linalg.inv(block)
    log_prob = -0.5 * (
        error @ np.linalg.solve(block, error)
        + np.linalg.slogdet(block)[1]
        + len(kept) * np.log(2 * np.pi)
    )
    return mean + gain @ error, cov - gain @ cov[kept], log_prob


TIMES = np.cumsum([0, 0.1, 0.15, 0.05, 0.3, 0.1, 0.2, 0.1])


def test_filter_smoother_and_evidence_equal_the_joint_gaussian():
    with jax.enable_x64(True):
        data, model = hidden_velocity(TIMES)
        found = found_states(data, model)
        last = len(TIMES) - 1
        whole = smoothed(found)
        mean, cov, log_prob = conditioned(data, last)
        np.testing.assert_allclose(found.log_prob.sum(), log_prob, rtol=1e-7)
        np.testing.assert_allclose(whole.mean.reshape(-1), mean, rtol=1e-6, atol=1e-8)
        for k in range(len(TIMES)):
            block = slice(2 * k, 2 * k + 2)
            np.testing.assert_allclose(whole.covariance[k], cov[block, block], rtol=1e-5, atol=1e-8)
            until, spread, _ = conditioned(data, k)
            np.testing.assert_allclose(found.whole.mean[k], until[block], rtol=1e-6, atol=1e-8)
            np.testing.assert_allclose(
                found.whole.covariance[k], spread[block, block], rtol=1e-6, atol=1e-9
            )


def test_another_library_says_the_same():
    times = 0.1 * np.arange(20)
    with jax.enable_x64(True):
        data, model = hidden_velocity(times)
        found = found_states(data, model)
        whole = smoothed(found)
        ours = float(found.log_prob.sum())
    peer = KalmanSmoother(k_endog=1, k_states=2)
    peer.bind(np.where(data.observed[0, 1:], data.values[0, 1:], np.nan))
    step = np.eye(2) + 0.1 * RATES
    noise = np.diag(SPREAD**2) * 0.1
    peer["design"], peer["obs_cov"] = np.array([[1.0, 0.0]]), np.array([[NOISE**2]])
    peer["transition"], peer["state_cov"], peer["selection"] = step, noise, np.eye(2)
    mean, cov = joint(data)
    peer.initialize_known(mean[2:4], cov[2:4, 2:4])
    theirs = peer.smooth()
    np.testing.assert_allclose(ours, theirs.llf, rtol=1e-6)
    np.testing.assert_allclose(whole.mean[1:], theirs.smoothed_state.T, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(
        whole.covariance[1:], np.moveaxis(theirs.smoothed_state_cov, -1, 0), rtol=1e-5, atol=1e-8
    )


def test_sampled_paths_have_the_smoothed_moments_and_hang_together():
    """Means within 5 standard errors; the correlation of neighbours is that of the joint."""
    draws = 20_000
    data, model = hidden_velocity(TIMES)
    found = found_states(data, model)
    normals = jr.normal(jr.key(1), (draws, len(TIMES), 2))
    paths = np.asarray(jax.jit(jax.vmap(lambda one: backward_paths(found, one)))(normals), float)
    mean, cov, _ = conditioned(data, len(TIMES) - 1)
    flat = paths.reshape(draws, -1)
    assert_mean_close(flat, mean, standard_errors=5)
    spread = np.sqrt(np.diag(cov))
    z = (flat - mean) / spread
    expected = cov / np.outer(spread, spread)
    error = np.sqrt((1 + expected**2) / draws)
    assert (np.abs(z.T @ z / draws - expected) < 5 * error).all()


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_a_singular_covariance_has_a_factor(rank):
    roots = jnp.array([[1e3, 0.0], [0.2, 1e-2]])[:, :rank]
    p = roots @ roots.T
    s = factor(p)
    np.testing.assert_allclose(s @ s.T, p, rtol=1e-4, atol=1e-5 * float(jnp.max(p, initial=1.0)))
