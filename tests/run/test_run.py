"""The whole way: declare, fit, forecast, score."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

import hybridsde as hs
from helpers import plain_fit, tiny_model, tree_allclose, wiggles

TRAINING = hs.Training(epochs=30, batch_size=3, learning_rate=1e-2)


@pytest.fixture(scope="module")
def run() -> hs.Run:
    return plain_fit(tiny_model(), wiggles(), training=TRAINING, seed=1)


def test_history_has_every_term(run):
    assert list(run.history.columns) == [
        "loss",
        "log_likelihood",
        "path_kl",
        "weight_kl",
        "complexity",
    ]
    assert len(run.history) == 30
    assert run.history.index.name == "epoch"


def test_the_same_seed_gives_the_same_numbers(run):
    again = plain_fit(tiny_model(), wiggles(), training=TRAINING, seed=1)
    assert tree_allclose(
        again.forecaster.model.network, run.forecaster.model.network, rtol=0, atol=0
    )
    test = wiggles(seed=5)
    one, two = (r.forecast(test.start(), test.times, draws=8).states for r in (run, again))
    np.testing.assert_array_equal(one, two)


def test_forecast_from_any_start_on_any_grid(run):
    test = wiggles(seed=5)
    shared = run.forecast(test.start(), np.array([0.05, 0.5, 3.0]), draws=8)
    assert shared.states.shape == (8, 6, 3, 2)
    np.testing.assert_allclose(shared.states.time, [0.05, 0.5, 3.0])
    assert list(shared.observations.obs.values) == ["x", "y"]
    later = test.windows(4).take([1])
    ahead = run.forecast(later.start(), elapsed=np.array([0.0, 0.1]), draws=8)
    np.testing.assert_allclose(ahead.states.clock.values, [[0.4, 0.5]], rtol=1e-6)
    np.testing.assert_allclose(ahead.states.time.values, [0.0, 0.1], atol=1e-9)
    np.testing.assert_allclose(ahead.states.isel(time=0, draw=0), later.values[:, 0], rtol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "exactly one of `times`, `elapsed` and `steps`"),
        ({"times": [1.0], "elapsed": [1.0]}, "exactly one"),
        ({"times": [-1.0, 1.0]}, "for '0' entry 0 is -1 after 0"),
        ({"times": [1.0, 0.5]}, "for '0' entry 1 is 0.5 after 1"),
        ({"elapsed": [1.0, np.nan]}, "`elapsed` must be finite"),
        ({"times": [1.0], "draws": 10, "paths_per_weight": 4}, "multiple of `paths_per_weight`"),
        ({"times": [1.0], "inputs": np.zeros((1, 1, 1))}, r"`inputs` must be .*\(6, 1, 0\)"),
        ({"times": 1.0}, r"one grid for all, or one row .* has shape \(\)"),
        ({"times": np.ones((2, 3))}, r"each of the 6 trajectories, but has shape \(2, 3\)"),
        ({"times": [1.0], "draws": 0}, "`draws` must be a whole number"),
    ],
)
def test_bad_forecasts(run, arguments, message):
    with pytest.raises(ValueError, match=message):
        run.forecast(wiggles().start(), **arguments)


def test_scores_beat_persistence(run):
    test = wiggles(seed=5)
    table = run.score(test, draws=40)
    assert list(table.index) == ["x", "y", "overall"]
    still = ((test.values[:, 1:] - test.values[:, :1]) ** 2).mean()
    assert table.loc["overall", "mse"] < 0.3 * still
    assert np.isfinite(table.to_numpy()).all()


def test_score_equals_scoring_a_forecast_by_hand(run):
    test = wiggles(seed=5)
    ahead = run.forecast(test.start(), test.times[:, 1:], draws=2000, paths_per_weight=1)
    by_hand = ((ahead.states.values.mean(0) - test.values[:, 1:]) ** 2).mean()
    table = run.score(test, draws=2000)
    np.testing.assert_allclose(table.loc["overall", "mse"], by_hand, rtol=0.05)
    low, high = ahead.observations.quantile([0.05, 0.95], "draw").values
    np.testing.assert_allclose(table.loc["overall", "width90"], (high - low).mean(), rtol=0.02)


def test_one_row_steps_by_the_interval_of_the_training_rows(run):
    one = run.forecast(wiggles().start(), steps=2, draws=4)
    np.testing.assert_allclose(one.states["elapsed"][0], [0.1, 0.2], rtol=1e-5)
    older = replace(run, metadata=replace(run.metadata, usual_step=None))
    with pytest.raises(ValueError, match="no interval to step by"):
        older.forecast(wiggles().start(), steps=2, draws=4)


@pytest.mark.slow
def test_irregular_series_with_gaps_and_inputs_fit():
    """The common case: nothing about it is special."""
    rng = np.random.default_rng(3)
    times = [np.cumsum(rng.uniform(0.05, 0.3, n)) for n in (9, 14, 6)]
    values = [np.sin(t)[:, None] + 0.05 * rng.normal(size=(len(t), 1)) for t in times]
    observed = [rng.random(v.shape) > 0.2 for v in values]
    data = hs.Trajectories.from_arrays(
        times,
        values,
        states=["x"],
        observed=observed,
        inputs=[np.cos(t)[:, None] for t in times],
        input_names=["u"],
    )
    model = hs.HybridSDE(
        states=["x", "hidden"],
        observed=["x"],
        inputs=["u"],
        physics=hs.known_drift(lambda u: {"x": u}),
        hidden=(8,),
    )
    run = plain_fit(model, data, training=hs.Training(epochs=5), seed=0)
    assert np.isfinite(run.score(data, draws=20).to_numpy()).all()
    ahead = run.forecast(data.start(), elapsed=np.array([0.5]), draws=8, inputs=np.zeros((3, 1, 1)))
    with pytest.raises(hs.InputError, match="driven by u"):
        run.forecast(data.start(), data.times[:, 1:])
    whole, last = (
        run.forecast(data.start(), data.times[:, k:], draws=8, inputs=data).states for k in (1, -1)
    )
    np.testing.assert_array_equal(whole.isel(time=-1), last.isel(time=-1))
    assert ahead.states.sizes["state"] == 2
    assert ahead.observations.sizes["obs"] == 1


def test_forecast_where_the_first_row_is_not_complete(run):
    data = wiggles(seed=5)
    holes = data.observed.copy()
    holes[:, 0, 1] = False
    partial = hs.Trajectories.from_arrays(
        list(data.times), list(data.values), states=data.states, observed=list(holes)
    )
    ahead = run.forecast(partial.start(), elapsed=[0.1], draws=8)
    assert np.isfinite(ahead.states).all()


def test_singular_diffusion_functions_are_found_at_the_data():
    for function in (lambda h, t: 0.0 * h, lambda h, t: jnp.ones((2, 2))):
        model = tiny_model(diffusion=function)
        with pytest.raises(ValueError, match="singular at the start of series number 0"):
            hs.fit(model, wiggles(), training=TRAINING)


def test_scores_need_two_draws(run):
    with pytest.raises(ValueError, match="`draws` must be a whole number of at least 2"):
        run.score(wiggles(), draws=1)


def test_fit_checks_the_data_first():
    with pytest.raises(ValueError, match="observes x, y"):
        hs.fit(tiny_model(), wiggles(), validation=_renamed(), training=TRAINING)


def _renamed() -> hs.Trajectories:
    data = wiggles()
    return hs.Trajectories.from_arrays(list(data.times), list(data.values), states=["x", "w"])


def test_fan_chart_draws_every_observation(run):
    test = wiggles(seed=5)
    figure = run.forecast(test.start(), test.times[0, 1:], draws=8).plot(test, trajectories=2)
    assert len(figure.axes) == 4
    labels = figure.axes[0].get_legend_handles_labels()[1]
    assert labels == ["90 % interval", "50 % interval", "median", "recorded"]


def test_a_single_point_can_only_be_a_start(run):
    now = wiggles().start()
    assert run.forecast(now, elapsed=[0.1], draws=8).states.shape == (8, 6, 1, 2)
    for wrong in (run.score, lambda data: hs.fit(tiny_model(), data, training=TRAINING)):
        with pytest.raises(ValueError, match="Series '0' has one point"):
            wrong(now)
