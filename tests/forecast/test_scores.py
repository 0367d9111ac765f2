"""Scores against closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from helpers import assert_mean_close
from hybridsde.forecast import SCORES, crps, gaussian_nll, mixture_nll
from hybridsde.forecast.scores import interval, score


def gaussian_crps(y: float) -> float:
    """CRPS of N(0, 1) at y: y(2Φ(y) − 1) + 2φ(y) − 1/√π."""
    return y * (2 * stats.norm.cdf(y) - 1) + 2 * stats.norm.pdf(y) - 1 / np.sqrt(np.pi)


def test_crps_of_a_gaussian_is_unbiased(getkey):
    """Means over many small samples: the pairwise form has no bias even at n = 5."""
    draws = jax.random.normal(getkey(), (20_000, 5))
    for y in (-1.0, 0.3, 2.5):
        scores = jax.vmap(lambda one, y=y: crps(one, jnp.array(y)))(draws)
        assert_mean_close(scores, gaussian_crps(y))


def test_crps_equals_its_pairwise_definition(getkey):
    draws = jax.random.normal(getkey(), (7, 3))
    y = jnp.array([0.1, -2.0, 5.0])
    pairs = jnp.abs(draws[:, None] - draws).sum((0, 1)) / (7 * 6)
    np.testing.assert_allclose(crps(draws, y), jnp.abs(draws - y).mean(0) - pairs / 2, rtol=1e-5)


def test_crps_is_exact_and_not_negative_beside_draws_that_exploded(getkey):
    """Two draws of a hundred at 10⁹ on either side, in single precision."""
    draws = jax.random.normal(getkey(), (100, 40)).at[:2].set(jnp.array([[1e9], [-3e9]]))
    y = jnp.linspace(-3, 3, 40)
    x, there = np.asarray(draws, float), np.asarray(y, float)
    pairs = np.abs(x[:, None] - x).sum((0, 1)) / (100 * 99)
    np.testing.assert_allclose(crps(draws, y), np.abs(x - there).mean(0) - pairs / 2, rtol=1e-5)
    assert (crps(draws, y) >= 0).all()


def test_gaussian_nll_against_scipy(getkey):
    means = jax.random.normal(getkey(), (9, 4, 2))
    sd = jnp.array([0.3, 0.5])
    values = jnp.ones((4, 2))
    spread = np.sqrt(np.asarray(means).var(0, ddof=1) + np.asarray(sd) ** 2)
    oracle = -stats.norm(np.asarray(means).mean(0), spread).logpdf(1.0)
    np.testing.assert_allclose(gaussian_nll(means, sd, values), oracle, rtol=1e-4)


def test_mixture_nll_against_scipy(getkey):
    means = jax.random.normal(getkey(), (9, 4, 2))
    sd = jnp.array([0.3, 0.5])
    values = jnp.zeros((4, 2))
    density = stats.norm(np.asarray(means), np.asarray(sd)).pdf(0.0).mean(0)
    np.testing.assert_allclose(mixture_nll(means, sd, values), -np.log(density), rtol=1e-4)


def test_interval_covers_what_it_says(getkey):
    draw_key, value_key = jax.random.split(getkey())
    draws = jax.random.normal(draw_key, (1000, 5000))
    values = jax.random.normal(value_key, (5000,))
    low, high = interval(draws)
    covered = ((low <= values) & (values <= high)).astype(float)
    assert_mean_close(covered, 0.9)


def test_score_leaves_out_what_is_missing(getkey):
    """Nonsense behind the mask changes nothing, and overall pools all columns."""
    means = jax.random.normal(getkey(), (11, 3, 5, 2))
    draws = means + 0.1
    sd = jnp.array([0.2, 0.4])
    values = jnp.zeros((3, 5, 2))
    observed = jnp.ones((3, 5, 2), bool).at[0, 2, 1].set(False).at[1, :, 0].set(False)

    def scores(values):
        densities = {
            "nll": mixture_nll(means, sd, values),
            "nll_gaussian": gaussian_nll(means, sd, values),
        }
        return score(means, draws, values, densities, observed)

    table = scores(values)
    wild = jnp.where(observed, values, 1e6)
    for name, column in scores(wild).items():
        np.testing.assert_allclose(column, table[name], rtol=1e-5, err_msg=name)
    errors = (np.asarray(means).mean(0)) ** 2
    seen = np.asarray(observed)
    np.testing.assert_allclose(table["mse"][1], errors[..., 1][seen[..., 1]].mean(), rtol=1e-5)
    np.testing.assert_allclose(table["mse"][2], errors[seen].mean(), rtol=1e-5)
    np.testing.assert_allclose(table["rmse"], np.sqrt(table["mse"]), rtol=1e-6)
    assert set(table) == {*SCORES, "mse_sample"}
    spread = np.asarray(means).var(0)
    np.testing.assert_allclose(table["mse_sample"][2], (errors + spread)[seen].mean(), rtol=1e-4)
