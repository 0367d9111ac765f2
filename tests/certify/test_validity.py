"""Certificates fail no more often than they say, and the refused ones do fail.

Two hundred repetitions as one program. A binomial test must not reject the stated probability at
0.01; seeds are fixed, so it stays what it is. `benchmarks/certificates.py` does the same with
trained networks.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from scipy import stats

from helpers import linear_model
from hybridsde.certify import bounds
from hybridsde.certify.bounds import Offset
from hybridsde.certify.inequalities import choose_offset, conformal_rank, unexpected_bernstein
from hybridsde.certify.losses import IntervalMiss, TruncatedError
from hybridsde.certify.sampling import Hypothesis, sample_losses
from hybridsde.data import Batch
from hybridsde.hybrid import SDEForecaster
from hybridsde.model import gaussian_kl
from hybridsde.simulate import EulerMaruyama

DELTA, N, REPETITIONS, STEPS, DT = 0.05, 16, 200, 8, 0.25
LOSSES = (TruncatedError(1.0), IntervalMiss())
PRIOR, SD = -0.5, 0.2
"""A prior over the rate of relaxation that is off: the truth is −1."""


pytestmark = pytest.mark.long


def record(count, *, key):
    """Ornstein–Uhlenbeck paths of rate 1 and diffusion 0.5, measured with error 0.1."""
    start, noise, seen = jr.split(key, 3)
    h = jr.normal(start, (count, 1))
    steps = jr.normal(noise, (STEPS, count, 1))

    def step(h, dw):
        h = h - h * DT + 0.5 * jnp.sqrt(DT) * dw
        return h, h

    _, path = jax.lax.scan(step, h, steps)
    states = jnp.concatenate([h[None], path]).swapaxes(0, 1)
    return Batch.regular(states + 0.1 * jr.normal(seen, states.shape), DT)


def losses(rate, batch, draws, *, key):
    model = linear_model(0.0, weight_sd=SD, diffusion=0.5, noise=0.1)
    weight = jnp.reshape(rate, (1, 1))
    model = eqx.tree_at(lambda m: m.network.posterior.mean.layers[0].weight, model, weight)
    forecaster = SDEForecaster(model, EulerMaruyama())
    return sample_losses(forecaster, batch, LOSSES, Hypothesis(), draws, key=key)


@pytest.fixture(scope="module")
def repetitions():
    """Losses on the bound set and on fresh trajectories, the posterior chosen on the bound set."""

    def one(key):
        data, choose, sample, fresh, judge = jr.split(key, 5)
        batch = record(N, key=data)
        candidates = jnp.array([PRIOR, -0.9, -1.2])
        risks = jax.vmap(lambda rate: losses(rate, batch, 4, key=choose)[0].mean())(candidates)
        rate = candidates[jnp.argmin(risks)]
        kl = gaussian_kl(rate, jnp.array(SD), jnp.array(PRIOR), jnp.array(SD))
        after = losses(rate, record(400, key=fresh), 1, key=judge).mean((1, 2))
        return losses(rate, batch, 40, key=sample), kl, after

    x, kl, truth = jax.jit(lambda keys: jax.lax.map(one, keys, batch_size=20))(
        jr.split(jr.key(0), REPETITIONS)
    )
    return np.asarray(x, float), np.asarray(kl, float), np.asarray(truth, float)


def p_value(failed):
    return stats.binomtest(int(failed.sum()), len(failed), DELTA, alternative="greater").pvalue


@pytest.mark.parametrize("loss", range(len(LOSSES)), ids=[loss.name for loss in LOSSES])
def test_pac_bayes_bounds_hold(loss, repetitions):
    x, kl, truth = (repetitions[0][:, loss], repetitions[1], repetitions[2][:, loss])
    assert (kl > 0).mean() > 0.5  # the posterior does move
    mean, square = float(x[:50].mean()), float((x[:50] ** 2).mean())
    offset = Offset(*choose_offset(mean, square, N, 0.9 * DELTA))
    x, kl, truth = x[50:], kl[50:], truth[50:]  # the offset comes from other repetitions
    found = {
        "kl": bounds.kl_bound(x, kl, DELTA),
        "ub": bounds.ub_bound(x, kl, DELTA, offset=offset),
        "catoni": bounds.catoni_bound(x, kl, DELTA),
    }
    for name, bound in found.items():
        assert p_value(bound.value < truth) > 0.01, name
        np.testing.assert_allclose(sum(bound.parts.values()), bound.value, rtol=1e-9)
        assert np.median(bound.value) < 1


def test_dropping_the_confidence_would_be_noticed(repetitions):
    """The same check does reject the empirical risk itself."""
    x, _, truth = repetitions
    assert p_value(x[:, 1].mean((-2, -1)) < truth[:, 1]) < 1e-6


def test_hold_out_bounds_hold():
    def one(key):
        data, sample, fresh, judge = jr.split(key, 4)
        x = losses(jnp.array(-0.9), record(N, key=data), 1, key=sample)
        return x[..., 0], losses(jnp.array(-0.9), record(400, key=fresh), 1, key=judge).mean((1, 2))

    x, truth = jax.jit(lambda keys: jax.lax.map(one, keys, batch_size=20))(
        jr.split(jr.key(1), REPETITIONS)
    )
    x, risk = np.asarray(x, float), np.asarray(truth, float).mean(0)
    for bound in (bounds.betting_bound, bounds.holdout_kl_bound):
        for loss in range(len(LOSSES)):
            assert p_value(bound(x[:, loss], DELTA).value < risk[loss]) > 0.01


def slow_losses(relaxation, count, runs, rng):
    """Losses along a slow process, what was to be expected of each, and the stationary risk."""
    rho = np.exp(-1 / relaxation)
    now, before, after = rng.normal(size=runs), [], []
    for _ in range(count):
        before.append(now)
        now = rho * now + np.sqrt(1 - rho**2) * rng.normal(size=runs)
        after.append(now)
    nodes, weights = np.polynomial.hermite_e.hermegauss(101)
    weights = weights / weights.sum()
    spread = np.sqrt(1 - rho**2)
    expected = sum(
        w * np.minimum(1, (rho * np.array(before) + spread * x) ** 2 / 4)
        for x, w in zip(nodes, weights, strict=True)
    )
    stationary = float(np.sum(weights * np.minimum(1, nodes**2 / 4)))
    return np.minimum(1, np.array(after) ** 2 / 4).T, expected.T, stationary


def test_windows_of_a_slow_process_break_the_bound_for_independent_trajectories():
    """That is why they are refused under dependence="iid"."""
    rng = np.random.default_rng(0)
    x, expected, stationary = slow_losses(100, 100, 1000, rng)
    failed = bounds.holdout_kl_bound(x, DELTA).value < stationary
    assert failed.mean() > 0.2
    assert p_value(failed) < 1e-6
    a, eta = choose_offset(stationary, 0.2, 100, DELTA)
    z = x + Offset(a, eta).factor * (x - a) ** 2
    promised = unexpected_bernstein(z.mean(-1), 0.0, 100, DELTA, eta=eta)
    assert p_value(promised < expected.mean(-1)) > 0.01


def test_the_best_of_many_models_needs_the_union():
    misses = np.random.default_rng(1).binomial(50, 0.2, size=(500, 100))
    x = (np.arange(50) < misses[..., None]).astype(float)
    best = x[np.arange(500), misses.argmin(1)]
    assert (bounds.clopper_pearson_bound(best, DELTA).value < 0.2).mean() > 0.5
    assert (
        p_value(bounds.clopper_pearson_bound(best, DELTA, models_compared=100).value < 0.2) > 0.01
    )


def test_conformal_bands_hold_what_they_say():
    """Scores of any law: mean coverage 90 %, and rarely less with the rank of confidence."""
    rng = np.random.default_rng(2)
    scores, fresh = np.sort(rng.gamma(2, size=(2000, 50)), -1), rng.gamma(2, size=100_000)
    ranks = [conformal_rank(50, 0.1, delta) or 0 for delta in (None, DELTA)]
    plain, sure = (np.searchsorted(np.sort(fresh), scores[:, r - 1]) / len(fresh) for r in ranks)
    assert abs(plain.mean() - 46 / 51) < 5 * plain.std() / np.sqrt(2000) + 0.005
    assert (plain < 0.9).mean() > 0.2  # on average only
    assert p_value(sure < 0.9) > 0.01
