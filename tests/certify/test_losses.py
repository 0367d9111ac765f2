"""Losses in [0, 1], against their formulas."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hybridsde as hs
from hybridsde.certify.losses import LOSSES, band_score, fitting_draws, interval_rank
from hybridsde.forecast import crps

ALL = (
    hs.TruncatedError([1.0, 2.0]),
    hs.IntervalMiss(),
    hs.BandMiss(2.0),
    hs.ScaledCRPS([1.0, 2.0]),
    hs.TemperedLikelihood(0.5),
)


def example(seed=0, spread=1.0):
    rng = np.random.default_rng(seed)
    means = jnp.asarray(spread * rng.normal(size=(19, 6, 2)))
    draws = means + 0.1 * jnp.asarray(rng.normal(size=(19, 6, 2)))
    return means, draws, jnp.asarray(rng.normal(size=(6, 2))), jnp.ones((6, 2), bool)


def test_every_loss_has_a_name():
    assert {loss.name for loss in ALL} == set(LOSSES)


@pytest.mark.parametrize("loss", ALL, ids=lambda loss: loss.name)
def test_losses_stay_in_the_unit_interval(loss):
    for spread in (0.0, 1.0, 1e6):
        value = loss(*example(spread=spread))
        assert 0 <= value <= 1
    means, draws, values, seen = example()
    for wrong in (jnp.nan, jnp.inf):
        lost = loss(means.at[:, 2].set(wrong), draws.at[:, 2].set(wrong), values, seen)
        assert lost == 1 if loss.name != "interval" else lost >= 1 / 6  # that time is missed
    assert loss.describe()
    assert isinstance(loss.constants(), dict)


@pytest.mark.parametrize("loss", ALL, ids=lambda loss: loss.name)
def test_missing_values_count_nowhere(loss):
    means, draws, values, seen = example(1)
    seen = seen.at[3].set(False)
    far = values.at[3].set(1e3)
    assert loss(means, draws, far, seen) == loss(means, draws, values, seen)


def test_truncated_error():
    means, draws, values, seen = example(2, spread=0.1)
    scaled = (means.mean(0) - values) / jnp.array([1.0, 2.0])
    expected = min(1.0, float((scaled**2).mean()) / 4)
    found = hs.TruncatedError([1.0, 2.0], 2.0)(means, draws, values, seen)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_interval_miss_between_extremes_of_nineteen():
    means, draws, values, seen = example(3)
    outside = (values < draws.min(0)) | (values > draws.max(0))
    np.testing.assert_allclose(hs.IntervalMiss()(means, draws, values, seen), outside.mean())
    assert interval_rank(19, 0.9) == 1
    assert interval_rank(199, 0.9) == 10
    with pytest.raises(ValueError, match=r"no 0\.9 interval"):
        interval_rank(20, 0.9)
    assert fitting_draws(0.95, 19) == 39
    assert fitting_draws(0.9, 19, multiple=3) == 39
    with pytest.raises(ValueError, match="rounder level"):
        fitting_draws(0.9, 19, multiple=4)


def test_interval_of_a_right_forecast_is_missed_one_time_in_ten():
    """Exact for exchangeable draws: the value is one of 20, and 2 of them are extremes."""
    rng = np.random.default_rng(4)
    draws = jnp.asarray(rng.normal(size=(19, 4000, 2)))
    values, seen = jnp.asarray(rng.normal(size=(4000, 2))), jnp.ones((4000, 2), bool)
    missed = float(hs.IntervalMiss()(draws, draws, values, seen))
    assert abs(missed - 0.1) < 5 * np.sqrt(0.09 / 8000)


def test_band_miss_is_about_the_worst_time():
    _, draws, values, seen = example(5)
    score = band_score(draws, values, seen)
    by_hand = np.abs(values - draws.mean(0)) / np.std(np.asarray(draws), 0, ddof=1)
    np.testing.assert_allclose(score, by_hand.max(), rtol=1e-5)
    below, above = (
        hs.BandMiss(r)(draws, draws, values, seen) for r in (score * 0.99, score * 1.01)
    )
    assert (below, above) == (1, 0)


def test_scaled_crps():
    means, draws, values, seen = example(6, spread=0.3)
    expected = (crps(draws, values) / jnp.array([1.0, 2.0])).mean()
    found = hs.ScaledCRPS([1.0, 2.0])(means, draws, values, seen)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.slow
def test_tempered_likelihood_of_an_oracle():
    """With y ~ N(h, τ²) it tends to 1 − (1 + 1/KD)^{−KD/2}, 0.39 for many values."""
    rng = np.random.default_rng(7)
    size = 50
    values = jnp.asarray(rng.normal(size=(4000, size, 2)))
    loss = hs.TemperedLikelihood(1.0)
    zero, seen = jnp.zeros((1, size, 2)), jnp.ones((size, 2), bool)
    found = np.asarray(jax.vmap(lambda y: loss(zero, zero, y, seen))(values))
    expected = 1 - (1 + 1 / (2 * size)) ** (-size)
    assert abs(found.mean() - expected) < 5 * found.std() / np.sqrt(len(found))
