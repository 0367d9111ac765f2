"""Autoregressions against least squares, precedents against copies of what is asked for."""

from dataclasses import replace

import numpy as np
import pytest

import hybridsde as hs
from hybridsde.baselines import Analogues, VectorAutoregression

A1, A2 = np.array([[0.5, 0.2], [-0.3, 0.6]]), np.array([[0.2, 0.0], [0.1, 0.1]])
B = np.array([0.7, -0.2])


def driven(count=6, rows=400, seed=0) -> hs.Trajectories:
    """A VAR(2) with an input."""
    rng = np.random.default_rng(seed)
    u = np.repeat(rng.normal(size=(count, rows // 10)), 10, 1)
    y = np.zeros((count, rows, 2))
    for k in range(2, rows):
        noise = 0.1 * rng.normal(size=(count, 2))
        y[:, k] = 0.3 + y[:, k - 1] @ A1.T + y[:, k - 2] @ A2.T + u[:, k - 1, None] * B + noise
    return hs.Trajectories.from_arrays(
        [np.arange(rows - 20.0)] * count,
        list(y[:, 20:]),
        states=("a", "b"),
        inputs=list(u[:, 20:, None]),
        input_names=("u",),
    )


def test_a_known_autoregression_is_recovered():
    declared = VectorAutoregression(observed=("a", "b"), inputs=("u",), order=2)
    found = hs.fit(declared, driven()).forecaster
    weights = np.asarray(found.weights.value)
    expected = np.concatenate([A1.T, A2.T, B[None], [[0.3, 0.3]]])
    error = 5 / np.sqrt(6 * 378)  # standard errors are at most about 1/√n in these units
    np.testing.assert_allclose(weights, expected, atol=error)
    covariance = np.asarray(found.root.value) @ np.asarray(found.root.value).T
    np.testing.assert_allclose(np.diag(covariance), 0.01, rtol=5 * np.sqrt(2 / (6 * 378)))


def test_the_order_is_chosen_by_forecasts():
    declared = VectorAutoregression(observed=("a", "b"), inputs=("u",))
    weights = np.asarray(hs.fit(declared, driven()).forecaster.weights.value)
    assert np.abs(weights[2:4]).max() > 0.1
    assert np.abs(weights[4:16]).max() < 0.15


def test_a_precedent_that_is_the_same_is_followed():
    t = 0.1 * np.arange(80)
    data = hs.Trajectories.from_arrays(
        [t] * 5, [np.stack([np.sin(t + p), np.cos(t + p)], 1) for p in range(5)], states=("x", "y")
    )
    run = hs.fit(Analogues(observed=("x", "y"), neighbours=4), data)
    asked = data.take([2]).windows(20, 20)
    scores = run.score(asked)
    assert scores.loc["overall", "rmse"] < 0.08


def test_the_mean_curve_is_that_of_recordings_with_similar_starts():
    t = np.arange(10.0)
    slopes = [1.0, 1.1, 0.9, 5.0, 5.1, 4.9, 1.0, 5.0, 1.0]
    data = hs.Trajectories.from_arrays(
        [t] * 9, [(s + s * t)[:, None] for s in slopes], states=("x",)
    )
    run = hs.fit(Analogues(observed=("x",), first_rows=True, neighbours=4), data)
    forecast = run.forecast(data.take([3]).start(), t[1:], draws=400)
    np.testing.assert_allclose(forecast.states.mean("draw")[0, -1], 50.0, rtol=0.05)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: Analogues(observed=("x",), neighbours=0), "neighbours"),
        (lambda: VectorAutoregression(observed=("x",), order=0), "order"),
    ],
)
def test_settings_are_checked(wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong()


def test_a_clock_may_jitter_by_a_few_per_cent():
    """By 2 s in 5 min, as loggers do; not by a tenth of the interval."""
    data, rng = driven(2, 60), np.random.default_rng(1)
    declared = VectorAutoregression(observed=("a", "b"), inputs=("u",), order=1)
    shaken = replace(data, times=data.times + rng.uniform(-1, 1, data.times.shape) / 150)
    run = hs.fit(declared, shaken)
    assert run.metadata.interval == pytest.approx(1, rel=0.01)
    later = shaken.times[:, 5:9]
    run.forecast(shaken.start(5), later, inputs=shaken.inputs[:, 5:9], draws=4)
    shaken.times[0, 30] += 0.1
    with pytest.raises(ValueError, match="allows for 5 % of it, but a step of the data is"):
        hs.fit(declared, shaken)
