"""Rows that a filter is not told are forecast from the last one that it was."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

from helpers import linear_model, one_series
from hybridsde.estimate import GaussianState, filtered, update
from hybridsde.estimate.filter import _filter, first_state
from hybridsde.simulate import EulerMaruyama


@pytest.mark.parametrize("until", [0, 2, 9])
@pytest.mark.slow
def test_untold_rows_are_forecast_many_rows_ahead(until):
    """dx = −½x dt + G dW in Euler steps of one: m ← m/2, P ← P/4 + G²."""
    g, sd = 0.3, 0.2
    model = linear_model(-0.5, diffusion=g, noise=sd)
    y = np.array([1.0, 0.4, 0.5, 0.1, -0.2, 0.3])
    series = one_series(y[:, None])
    sde = model.driven_by(model.network.mean())
    first = first_state(model, model.typical(), series)
    found, _ = _filter(model, sde, EulerMaruyama(), series, None, jnp.asarray(until), first)
    m, p, expected = y[0], 0.0, []
    for k in range(1, 6):
        m, p = 0.5 * m, 0.25 * p + g**2
        expected.append(norm.logpdf(y[k], m, np.sqrt(p + sd**2)))
        if k <= until:
            gain = p / (p + sd**2)
            m, p = m + gain * (y[k] - m), (1 - gain) * p
    np.testing.assert_allclose(jax.vmap(lambda row: row.log_prob)(found), expected, rtol=1e-4)


def test_a_row_that_is_not_told_leaves_the_state_alone():
    state = GaussianState(jnp.array([1.0, 2.0]), jnp.array([[1.0, 0.3], [0.3, 2.0]]))
    given = (jnp.eye(2), jnp.full(2, 0.5), jnp.array([0.0, 3.0]), jnp.ones(2, bool))
    after, compared = update(state, *given, False)
    np.testing.assert_array_equal(after.mean, state.mean)
    np.testing.assert_array_equal(after.covariance, state.covariance)
    alone = norm.logpdf([0.0, 3.0], [1.0, 2.0], np.sqrt([1.25, 2.25])).sum()
    np.testing.assert_allclose(compared.log_prob, alone, rtol=1e-5)


@pytest.mark.slow
def test_looking_ahead_costs_half_of_the_rows_on_average(getkey):
    """With every row told the two agree; on average they do not."""
    model = linear_model(-0.5, diffusion=0.3, noise=0.2)
    batch = jax.tree.map(
        lambda leaf: jnp.stack([leaf] * 8), one_series(np.linspace(1, 0, 12)[:, None])
    )
    key = getkey()
    told, ahead = (
        filtered(model, EulerMaruyama(), batch, samples=1, ahead=one, key=key).log_likelihood[0]
        for one in (False, True)
    )
    same = np.isclose(told, ahead, rtol=1e-5)
    assert same.any()
    assert not same.all()
