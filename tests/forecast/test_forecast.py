import jax
import numpy as np
import pytest

from helpers import linear_model, regular_batch
from hybridsde import EulerMaruyama, Forecast
from hybridsde.forecast import future
from hybridsde.forecast.forecast import label
from hybridsde.hybrid import SDEForecaster


def nested(model, key, draws, per_weight, steps=50) -> Forecast:
    batch = regular_batch(steps, 1.0, start=(0.0,))
    forecaster = SDEForecaster(model, EulerMaruyama())
    states = np.asarray(future._sample(forecaster, batch, draws, per_weight, key).states)
    array = label(states, np.asarray(batch.times, float), np.zeros(1), ("0",), ("x",), "state")
    return Forecast(array, array.rename(state="obs"), per_weight)


@pytest.mark.parametrize(("weights", "epistemic"), [("path", 0.2**2), ("local", 0.2**2 / 50)])
def test_variance_is_split_by_the_law_of_total_variance(weights, epistemic, getkey):
    """dh = θ dt + G dW, θ ~ N(0, s²): aleatoric G²T; epistemic s²T², or s²TΔt when redrawn.

    Tolerances are five standard errors: a sample variance of n normals has relative error
    √(2/n), and the between-group variance carries the aleatoric part over M besides.
    """
    g, draws, per_weight = 0.1, 40_000, 4
    model = linear_model(0.0, [0.0], bias_sd=0.2, diffusion=g, weights=weights)
    split = (
        nested(model, getkey(), draws, per_weight).variance().isel(time=-1, trajectory=0, state=0)
    )
    groups = draws // per_weight
    assert abs(float(split.aleatoric) - g**2) < 5 * g**2 * np.sqrt(2 / (draws - groups))
    between = epistemic + g**2 / per_weight
    assert abs(float(split.epistemic) - epistemic) < 5 * between * np.sqrt(2 / groups)
    np.testing.assert_allclose(split.total, split.aleatoric + split.epistemic)


def test_chunks_of_draws_are_independent_and_complete(getkey, monkeypatch):
    monkeypatch.setattr(future, "ROWS_AT_ONCE", 100)
    states = nested(linear_model(0.0, diffusion=1.0), getkey(), 40, 2, steps=10).states
    ends = states.isel(time=-1).values.ravel()
    assert len(ends) == 40
    assert len(set(ends.tolist())) == 40


def test_labels_and_summaries(getkey):
    forecast = nested(linear_model(0.0, diffusion=1.0), getkey(), 40, 2, steps=10)
    assert forecast.states.dims == ("draw", "trajectory", "time", "state")
    np.testing.assert_allclose(forecast.states.time, np.linspace(0, 1, 11), rtol=1e-6)
    assert forecast.mean().dims == ("trajectory", "time", "state")
    assert forecast.quantile([0.1, 0.9]).sizes["quantile"] == 2


def test_time_axis_of_trajectories_with_their_own_clocks():
    draws = np.zeros((2, 2, 3, 1))
    clocks = np.array([[0.0, 1.0, 2.0], [10.0, 11.0, 12.0]])
    starts = np.array([-1.0, 9.0])
    shifted = label(draws, clocks, starts, ("a", "b"), ("x",), "state")
    np.testing.assert_array_equal(shifted.time, [1, 2, 3])
    np.testing.assert_array_equal(shifted.sel(trajectory="b").clock, clocks[1])
    irregular = label(draws, clocks**2, starts, ("a", "b"), ("x",), "state")
    np.testing.assert_array_equal(irregular.time, [0, 1, 2])
    np.testing.assert_array_equal(irregular.sel(trajectory="a").clock, [0, 1, 4])


def test_splitting_needs_several_paths_per_weight(getkey):
    for draws, count in ((10, 1), (4, 4)):
        with pytest.raises(ValueError, match="`paths_per_weight` of at least 2"):
            nested(linear_model(0.0), getkey(), draws, count).variance()


@pytest.mark.slow
def test_jitted_equals_not_jitted(getkey):
    model, key = linear_model(-1.0, diffusion=0.5), getkey()
    compiled = nested(model, key, 8, 2, steps=5).states.values
    with jax.disable_jit():
        plain = nested(model, key, 8, 2, steps=5).states.values
    np.testing.assert_allclose(compiled, plain, rtol=1e-5, atol=1e-6)
