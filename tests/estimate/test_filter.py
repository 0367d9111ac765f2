"""The filtered likelihood against a dense Gaussian, and what only it can learn."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers import tiny_model
from hybridsde import (
    EmpiricalBayes,
    EulerMaruyama,
    Fixed,
    Heun,
    HybridSDE,
    Trajectories,
    equations,
)
from hybridsde.data import Batch
from hybridsde.estimate import filtered
from hybridsde.estimate.filter import first_state

RATES = np.array([[-0.8, 1.0], [-1.2, -0.3]])
SPREAD, NOISE = np.array([0.3, 0.2]), np.array([0.15, 0.25])


def linear(getkey, observed=None, noise=NOISE):
    """dx = Ax dt + G dW with gaps, unequal steps and one padded series."""
    rng = np.random.default_rng(1)
    times = [np.array([0, 0.1, 0.25, 0.3, 0.5]), np.array([0, 0.2, 0.3])]
    values = [rng.normal(size=(len(t), 2)) for t in times]
    seen = [rng.uniform(size=v.shape) < 0.7 for v in values]
    for mask in seen:
        mask[0] = True
    data = Trajectories.from_arrays(times, values, states=("x", "y"), observed=seen)
    model = HybridSDE(
        states=("x", "y"),
        physics=equations("dx = a*x + b*y", "dy = c*x + d*y", a=-0.8, b=1.0, c=-1.2, d=-0.3),
        diffusion=SPREAD,
        noise=noise,
        hidden=None,
        start="uncertain",
    )
    return data, model.init(Batch.of(data), key=getkey())


def dense_log_likelihood(data, row, substeps):
    """Ln p(y_1..n) of the discretised system from its joint Gaussian, built state by state."""
    length = int(data.lengths[row])
    times, y, seen = (array[row, :length] for array in (data.times, data.values, data.observed))
    mean, cov = y[0], np.diag(NOISE**2)
    means, maps, covs = [mean], [np.eye(2)], [cov]
    for dt in np.diff(times):
        step, noise = np.eye(2), np.zeros((2, 2))
        for _ in range(substeps):
            one = np.eye(2) + RATES * dt / substeps
            step = one @ step
            noise = one @ noise @ one.T + np.diag(SPREAD**2) * dt / substeps
        mean, cov = step @ mean, step @ cov @ step.T + noise
        means.append(mean)
        covs.append(cov)
        maps.append(step)
    size = 2 * length
    joint = np.zeros((size, size))
    for i in range(length):
        across = covs[i]
        for j in range(i, length):
            joint[2 * i : 2 * i + 2, 2 * j : 2 * j + 2] = across
            joint[2 * j : 2 * j + 2, 2 * i : 2 * i + 2] = across.T
            if j + 1 < length:
                across = across @ maps[j + 1].T
    joint += np.diag(np.tile(NOISE**2, length))
    kept = np.flatnonzero(seen[1:].ravel()) + 2
    error = (y.ravel() - np.concatenate(means))[kept]
    block = joint[np.ix_(kept, kept)]
    return -0.5 * (
        error @ np.linalg.solve(block, error)
        + np.linalg.slogdet(block)[1]
        + len(kept) * np.log(2 * np.pi)
    )


@pytest.mark.parametrize("substeps", [1, 3])
def test_equals_the_joint_gaussian_of_a_linear_system(substeps, getkey):
    """Irregular steps, missing values and padding; float32 leaves four digits."""
    data, model = linear(getkey)
    found = filtered(model, EulerMaruyama(substeps), Batch.of(data), samples=2, key=getkey())
    expected = [dense_log_likelihood(data, row, substeps) for row in range(2)]
    np.testing.assert_allclose(found.log_likelihood, [expected, expected], rtol=2e-4)
    assert (found.kl == 0).all()


def test_a_start_that_is_measured_with_noise(getkey):
    data, model = linear(getkey)
    state = first_state(model, model.typical(), jax.tree.map(lambda leaf: leaf[0], Batch.of(data)))
    np.testing.assert_allclose(state.mean, data.values[0, 0], rtol=1e-6)
    np.testing.assert_allclose(state.covariance, np.diag(NOISE**2), rtol=1e-5)


@pytest.mark.slow
def test_every_parameter_of_a_network_model_has_a_finite_gradient(getkey):
    data, _ = linear(getkey)
    batch = Batch.of(data)
    model = tiny_model(diffusion="learn", noise="learn", start="uncertain").init(
        batch, key=getkey()
    )
    objective = EmpiricalBayes(estimator="filtered", solver=Heun())

    @eqx.filter_jit
    @eqx.filter_grad
    def gradient(model):
        return objective(model, batch, 2, key=jax.random.key(0)).loss

    found = gradient(model)
    assert all(jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(found))
    assert jnp.abs(found.diffusion.sd.factor.raw).min() > 0
    assert jnp.abs(found.observation.sd.factor.raw).min() > 0


@pytest.mark.slow
def test_the_path_kl_does_not_move_the_diffusion(getkey):
    data, _ = linear(getkey)
    batch = Batch.of(data)
    model = tiny_model(diffusion="learn").init(batch, key=getkey())

    def kl(model):
        return filtered(model, EulerMaruyama(), batch, samples=1, key=jax.random.key(0)).kl.sum()

    found = eqx.filter_grad(kl)(model)
    assert (found.diffusion.sd.factor.raw == 0).all()
    assert jnp.abs(found.network.posterior.mean.layers[-1].weight).max() > 0


def test_a_fixed_diffusion_stays_fixed(getkey):
    _, model = linear(getkey)
    assert isinstance(model.diffusion.sd, Fixed)
