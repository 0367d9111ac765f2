"""Every estimator of states against the dense joint Gaussian, and where states are not Gaussian."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import hybridsde as hs
from hybridsde.data import Batch
from hybridsde.estimate.choices import ESTIMATORS, estimator_of
from hybridsde.estimate.estimator import Record
from hybridsde.estimate.kalman import SigmaPointKalman
from hybridsde.estimate.particles import EnsembleKalman, Particles
from hybridsde.forecast.states import heavy_tails
from hybridsde.simulate import EulerMaruyama

DRAWS, ROWS, STEP = 400, 12, 0.1
GAUSSIAN = ("extended", "cubature", "unscented", "parallel")
MANY = {"ensemble": EnsembleKalman(4000), "particles": Particles(2000)}


def spring():
    """A damped spring whose velocity is hidden; a value and a whole row are missing."""
    rng = np.random.default_rng(0)
    values = np.cos(2 * STEP * np.arange(ROWS))[:, None] + 0.1 * rng.normal(size=(ROWS, 1))
    seen = np.ones((ROWS, 1), bool)
    seen[[3, 7]] = False
    data = hs.Trajectories.from_arrays(
        [STEP * np.arange(ROWS)], [values], observed=[seen], states=("x",)
    )
    model = hs.HybridSDE(
        states=("x", "v"),
        observed=("x",),
        physics=hs.equations("dx = v", "dv = -4*x - 0.5*v"),
        hidden=None,
        diffusion=(0.2, 0.4),
        noise=0.1,
    )
    return model, data


def dense(built, batch):
    """Means and covariances of all states given all rows, and ln p(Y), by one large Gaussian."""
    a = np.eye(2) + STEP * np.array([[0.0, 1.0], [-4.0, -0.5]])
    q = np.diag([0.2, 0.4]) ** 2 * STEP
    series = jax.tree.map(lambda leaf: leaf[0], batch)
    zero = jnp.zeros(built.start_normals)
    m0 = np.asarray(built.initial_state(built.typical(), series, zero), float)
    s = np.asarray(
        jax.jacfwd(lambda e: built.initial_state(built.typical(), series, e))(zero), float
    )
    means, covariance = [m0], np.zeros((2 * ROWS, 2 * ROWS))
    covariance[:2, :2] = s @ s.T
    for k in range(1, ROWS):
        means.append(a @ means[-1])
        here, before = slice(2 * k, 2 * k + 2), slice(2 * k - 2, 2 * k)
        covariance[here, : 2 * k] = a @ covariance[before, : 2 * k]
        covariance[: 2 * k, here] = covariance[here, : 2 * k].T
        covariance[here, here] = a @ covariance[before, before] @ a.T + q
    mean = np.concatenate(means)
    rows = [k for k in range(1, ROWS) if batch.observed[0, k, 0]]
    c = np.zeros((len(rows), 2 * ROWS))
    c[np.arange(len(rows)), [2 * k for k in rows]] = 1
    y = np.asarray(batch.values[0, rows, 0], float)
    spread = c @ covariance @ c.T + 0.01 * np.eye(len(rows))
    gain = covariance @ c.T @ np.linalg.inv(spread)
    error = y - c @ mean
    after = covariance - gain @ c @ covariance
    log_prob = -0.5 * (
        error @ np.linalg.solve(spread, error)
        + np.linalg.slogdet(spread)[1]
        + len(rows) * np.log(2 * np.pi)
    )
    return (mean + gain @ error).reshape(ROWS, 2), np.diag(after).reshape(ROWS, 2), log_prob


def estimate(estimator, *, smooth):
    model, data = spring()
    batch = Batch.of(data)
    built = model.init(batch, key=jr.key(0))
    series = jax.tree.map(lambda leaf: leaf[0], batch)
    run = eqx.filter_jit(
        lambda key: estimator(
            Record(built, built.typical(), EulerMaruyama(), series),
            draws=DRAWS,
            smooth=smooth,
            key=key,
        )
    )
    return run(jr.key(1)), dense(built, batch)


SLOW = ("unscented", "ensemble")
NAMES = [pytest.param(n, marks=[pytest.mark.slow] if n in SLOW else []) for n in ESTIMATORS]


@pytest.mark.parametrize("name", NAMES)
def test_smoothed_paths_are_those_of_the_joint_gaussian(name):
    """Means within 5 standard errors of 400 draws, variances within 40 %, a little for particles.

    The evidence of Gaussian estimators is exact; that of samples within 0.3.
    """
    found, (mean, variance, log_prob) = estimate(MANY.get(name) or estimator_of(name), smooth=True)
    paths = np.asarray(found.paths, float)
    sd = np.sqrt(variance)
    room = 5 / np.sqrt(DRAWS) + (0.0 if name in GAUSSIAN else 0.1)
    assert np.all(np.abs(paths.mean(0) - mean) < room * sd)
    assert np.all(np.abs(np.log(paths.var(0) / variance)) < 0.4)
    exact = 2e-3 if name in GAUSSIAN else 0.3
    assert abs(float(found.log_prob) - log_prob) < exact


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cubature", "parallel", "particles"])
def test_filtered_draws_end_where_smoothed_ones_do(name):
    """At the last row both are given everything; 5 standard errors of 400 draws."""
    found, (mean, variance, _) = estimate(MANY.get(name) or estimator_of(name), smooth=False)
    last = np.asarray(found.paths[:, -1], float)
    assert np.all(np.abs(last.mean(0) - mean[-1]) < 0.35 * np.sqrt(variance[-1]))


def test_particles_see_two_wells_where_a_gaussian_cannot():
    """From the top of a hill between two wells, dx = 4(x − x³), a state goes to one or the other.

    Nothing is measured after the first row: particles end in both wells, each near ±1.
    """
    times = np.array([0.0, 0.5, 1.0, 1.5, 2.0])
    seen = np.array([True, False, False, False, False])[:, None]
    data = hs.Trajectories.from_arrays([times], [np.zeros((5, 1))], observed=[seen], states=("x",))
    model = hs.HybridSDE(
        states=("x",),
        physics=hs.equations("dx = 4*(x - x^3)"),
        hidden=None,
        diffusion=0.3,
        noise=0.05,
    )
    batch = Batch.of(data)
    built = model.init(batch, key=jr.key(0))
    series = jax.tree.map(lambda leaf: leaf[0], batch)
    run = eqx.filter_jit(
        lambda key: Particles(200)(
            Record(built, built.typical(), EulerMaruyama(10), series),
            draws=200,
            smooth=True,
            key=key,
        )
    )
    found = run(jr.key(2))
    last = np.asarray(found.paths[:, -1, 0])
    assert 0.3 < np.mean(last > 0) < 0.7
    assert np.mean(np.abs(np.abs(last) - 1) < 0.5) > 0.9


def test_auto_says_what_it_took_and_why():
    model, data = spring()
    run = hs.fit(model, data, training=hs.Training(epochs=1))
    found = run.filter(data, draws=8)
    assert found.estimator == "extended"
    assert "Gaussian" in found.why
    assert run.smooth(data, estimator="cubature", draws=8).estimator == "cubature"


def test_rules_and_names_that_are_not_known():
    with pytest.raises(ValueError, match="cubature, unscented"):
        SigmaPointKalman("simpson")
    with pytest.raises(hs.InputError, match="extended"):
        estimator_of("extendet")


def test_heavy_tails_are_named_and_light_ones_are_not():
    rng = np.random.default_rng(0)
    assert heavy_tails(rng.normal(size=2000)) is None
    assert "kurtosis" in (heavy_tails(rng.standard_t(3, size=2000)) or "")
    assert heavy_tails(rng.standard_t(3, size=20)) is None
