"""Persistence and climatology against closed forms."""

from dataclasses import replace

import jax.random as jr
import numpy as np
import pytest
from scipy.stats import norm

import hybridsde as hs
from helpers import STANDARD_ERRORS, assert_mean_close, assert_variance_close
from hybridsde.baselines import Climatology, Persistence
from hybridsde.data import Batch

NAMES = ("a", "b")


def untidy(seed: int = 0) -> hs.Trajectories:
    """Series of different lengths at irregular times, with gaps and two very different units."""
    rng = np.random.default_rng(seed)
    lengths = (9, 6, 7)
    times = [np.cumsum(rng.uniform(0.1, 0.9, n)) for n in lengths]
    values = [[5, -300] + [1, 40] * rng.normal(size=(n, 2)).cumsum(0) for n in lengths]
    seen = [rng.uniform(size=(n, 2)) > 0.25 for n in lengths]
    for mask in seen:
        mask[0] = True
    return hs.Trajectories.from_arrays(times, values, states=NAMES, observed=seen)


def walks(series: int, seed: int, rate: float = 0.7) -> hs.Trajectories:
    """Random walks seen at irregular times."""
    rng = np.random.default_rng(seed)
    gaps = rng.uniform(0.1, 2.0, (series, 5))
    steps = rate * np.sqrt(gaps) * rng.normal(size=gaps.shape)
    times, values = (np.pad(np.cumsum(one, 1), [(0, 0), (1, 0)]) for one in (gaps, steps))
    return hs.Trajectories.from_arrays(list(times), list(values[..., None]), states=("a",))


def rates(data: hs.Trajectories) -> np.ndarray:
    """Root of the mean of Δy²/Δt over neighbours that were both seen."""
    squares = [[] for _ in data.states]
    for series in range(len(data)):
        for row in range(int(data.lengths[series]) - 1):
            dt = data.times[series, row + 1] - data.times[series, row]
            for column, found in enumerate(squares):
                if data.observed[series, row : row + 2, column].all():
                    found.append(np.diff(data.values[series, row : row + 2, column])[0] ** 2 / dt)
    return np.sqrt([np.mean(found) for found in squares])


def test_the_walk_has_the_spread_of_neighbouring_rows():
    data = untidy()
    run = hs.fit(Persistence(observed=NAMES), data)
    np.testing.assert_allclose(run.forecaster.observation.sd.value, rates(data), rtol=1e-5)
    assert run.history.empty


def test_persistence_scores_are_those_of_a_random_walk():
    train, test = untidy(), untidy(1)
    table = hs.fit(Persistence(observed=NAMES), train).score(test, draws=20)
    elapsed = (test.times - test.times[:, :1])[:, 1:, None]
    apart = np.sqrt(2) * np.stack(
        [np.std(train.values[..., c][train.observed[..., c]]) for c in range(2)]
    )
    sd = np.minimum(rates(train) * np.sqrt(np.where(elapsed > 0, elapsed, 1.0)), apart)
    first, later, seen = test.values[:, :1], test.values[:, 1:], test.observed[:, 1:]
    nll = -norm.logpdf(later, first, sd)
    wanted = np.mean(nll, (0, 1), where=seen)
    np.testing.assert_allclose(table.loc[list(NAMES), "nll"], wanted, rtol=1e-4)
    np.testing.assert_allclose(table.loc["overall", "nll"], np.mean(nll, where=seen), rtol=1e-4)
    error = np.mean((later - first) ** 2, (0, 1), where=seen)
    np.testing.assert_allclose(table.loc[list(NAMES), "mse"], error, rtol=1e-4)


def test_a_forecast_keeps_the_value_and_its_variance_grows_with_time():
    data = walks(50, 0)
    run = hs.fit(Persistence(observed=("a",)), data)
    elapsed = np.array([0.25, 1.0, 4.0])
    forecast = run.forecast(data.take([7]).start(), elapsed=elapsed, draws=4000)
    np.testing.assert_allclose(forecast.states, data.values[7, 0, 0], rtol=1e-6)
    seen = forecast.observations.to_numpy()[:, 0, :, 0]
    assert_mean_close(seen, data.values[7, 0, 0])
    assert_variance_close(seen, rates(data)[0] ** 2 * elapsed)


def given_rows(observed: list[list[bool]]) -> hs.Trajectories:
    """Four rows: three to be given and one to be forecast."""
    values = np.array([[1.0, 10], [2, 20], [3, 30], [4, 40]])
    seen = np.array([*observed, [True, True]])
    times = np.array([0.0, 1.0, 2.0, 2.25])
    return hs.Trajectories.from_arrays([times], [values], states=NAMES, observed=[seen])


def of_given(data: hs.Trajectories):
    """Mean and standard deviation that persistence forecasts for the row after three."""
    train = untidy()
    run = hs.fit(Persistence(observed=NAMES, given=3), train)
    found = run.forecaster.predict(Batch.of(data), 2, key=jr.key(0))
    return np.asarray(found.means)[:, 0, 3], np.asarray(found.sd)[0, 0, 3] / rates(train)


def test_the_last_seen_value_is_kept_where_given_values_are_missing():
    means, _ = of_given(given_rows([[True, True], [True, False], [False, False]]))
    np.testing.assert_array_equal(means, [[2, 10]] * 2)


def test_a_value_that_was_never_seen_counts_as_the_training_mean():
    data = untidy()
    means, _ = of_given(given_rows([[True, False], [True, False], [True, False]]))
    average = np.mean(data.values[..., 1], where=data.observed[..., 1])
    np.testing.assert_allclose(means, [[3, average]] * 2, rtol=1e-5)


def test_the_spread_counts_from_the_last_given_row():
    _, roots = of_given(given_rows([[True, True]] * 3))
    np.testing.assert_allclose(roots**2, [0.25, 0.25], rtol=1e-4)


def test_the_spread_counts_from_where_a_value_was_last_seen():
    _, roots = of_given(given_rows([[True, True], [True, False], [False, False]]))
    np.testing.assert_allclose(roots**2, [1.25, 2.25], rtol=1e-4)


@pytest.mark.slow
def test_persistence_covers_random_walks_as_often_as_it_says():
    run = hs.fit(Persistence(observed=("a",)), walks(2000, 0))
    test = walks(1000, 1)
    last = run.forecast(test.start(), test.times[:, -1:], draws=800).observations[:, :, 0, 0]
    low, high = np.quantile(last, [0.05, 0.95], 0)
    inside = (low <= test.values[:, -1, 0]) & (test.values[:, -1, 0] <= high)
    error = np.sqrt(0.9 * 0.1 / len(test))
    assert abs(inside.mean() - 0.9) < STANDARD_ERRORS * error


@pytest.fixture(scope="module")
def climate():
    return hs.fit(Climatology(observed=NAMES), untidy())


def moments(data: hs.Trajectories) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of every column, from what was seen alone."""
    columns = [data.values[..., c][data.observed[..., c]] for c in range(len(data.states))]
    return np.array([one.mean() for one in columns]), np.array([one.std() for one in columns])


def test_climatology_has_the_moments_of_the_training_rows(climate):
    mean, sd = moments(untidy())
    np.testing.assert_allclose(climate.forecaster.mean.value, mean, rtol=1e-5)
    np.testing.assert_allclose(climate.forecaster.observation.sd.value, sd, rtol=1e-4)


def test_climatology_scores_are_those_of_one_normal_distribution(climate):
    test = untidy(1)
    mean, sd = moments(untidy())
    table = climate.score(test, draws=20)
    later, seen = test.values[:, 1:], test.observed[:, 1:]
    wanted = {"nll": -norm.logpdf(later, mean, sd), "mse": (later - mean) ** 2}
    for name, scores in wanted.items():
        each = [*np.mean(scores, (0, 1), where=seen), np.mean(scores, where=seen)]
        np.testing.assert_allclose(table[name], each, rtol=1e-4)
    np.testing.assert_allclose(table["nll_gaussian"], table["nll"], rtol=1e-5)
    np.testing.assert_allclose(table["rmse"] ** 2, table["mse"], rtol=1e-5)


def test_crps_of_climatology_is_the_closed_form_on_average(climate):
    test = untidy(1)
    mean, sd = moments(untidy())
    z = (test.values[:, 1:] - mean) / sd
    closed = sd * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / np.sqrt(np.pi))
    wanted = np.mean(closed, (0, 1), where=test.observed[:, 1:])
    found = [climate.score(test, draws=20, seed=seed)["crps"][list(NAMES)] for seed in range(40)]
    assert_mean_close(np.array(found), wanted)


def test_climatology_forecasts_the_same_whatever_was_seen(climate):
    data = untidy(1)
    mean, sd = moments(untidy())
    forecast = climate.forecast(data.start(), elapsed=[0.5, 50.0], draws=3000)
    np.testing.assert_allclose(forecast.states, np.broadcast_to(mean, (3000, 3, 2, 2)), rtol=1e-5)
    seen = forecast.observations.to_numpy()
    assert_mean_close(seen, mean)
    assert_variance_close(seen, sd**2)


@pytest.mark.parametrize("kind", [Persistence, Climatology])
def test_a_column_that_never_changes_has_a_finite_score(kind):
    times = [np.arange(4.0)] * 2
    values = [np.stack([np.full(4, 3.0), np.arange(4.0)], 1)] * 2
    data = hs.Trajectories.from_arrays(times, values, states=NAMES)
    table = hs.fit(kind(observed=NAMES), data).score(data, draws=8)
    assert np.isfinite(table.to_numpy()).all()
    assert table.loc["a", "mse"] < 1e-12


@pytest.mark.parametrize("kind", [Persistence, Climatology])
@pytest.mark.parametrize("given", [0, -1])
def test_given_must_be_a_whole_number(kind, given):
    with pytest.raises(ValueError, match="`given` must be a whole number"):
        kind(observed=NAMES, given=given)


def test_persistence_remembers_what_the_last_row_does_not_hold():
    """Of a record whose last row lacks a value, the one before counts, and so does its age."""
    t = np.arange(4.0)
    y = np.array([[1.0, 5.0], [2.0, 6.0], [3.0, 7.0], [4.0, 0.0]])
    seen = np.ones((4, 2), bool)
    seen[3, 1] = False
    data = hs.Trajectories.from_arrays([t], [y], states=("a", "b"), observed=[seen])
    run = hs.fit(Persistence(observed=("a", "b")), data)
    found = run.forecast(data, steps=1, draws=4)
    np.testing.assert_allclose(found.states.values[0, 0, 0], [4.0, 7.0])
    draws = run.forecast(data, steps=1, draws=4000).observations.values[:, 0, 0]
    furthest = np.sqrt(2) * np.std([5.0, 6.0, 7.0])  # less than √2 of a walk of two steps
    np.testing.assert_allclose(draws.std(0), [1.0, furthest], rtol=0.06)


def test_a_walk_of_logarithms_goes_no_further_than_rows_lie_apart():
    """Else the mean of what cannot be negative grows without end: exp(r² t/2)."""
    rng = np.random.default_rng(0)
    values = np.exp(rng.normal(size=(4, 50, 1)))  # nothing to do with the row before
    data = hs.Trajectories.from_arrays([np.arange(50.0)] * 4, list(values), states=("a",))
    run = hs.fit(Persistence(observed=("a",), positive=("a",)), data)
    late = run.forecast(data.take([0]).start(), elapsed=[1.0, 400.0], draws=2000)
    logs = np.log(late.observations.to_numpy()[:, 0, :, 0])
    assert_variance_close(logs[:, 1], 2 * np.log(values).var())


def test_the_point_forecast_of_climatology_is_the_mean_of_what_cannot_be_negative():
    """E eʸ = exp(m + s²/2) of a lognormal distribution, and not its median."""
    rng = np.random.default_rng(1)
    logs = 0.8 * rng.normal(size=(3, 40, 1))
    data = hs.Trajectories.from_arrays([np.arange(40.0)] * 3, list(np.exp(logs)), states=("a",))
    table = hs.fit(Climatology(observed=("a",), positive=("a",)), data).score(data)
    mean = np.exp(logs.mean() + logs.var() / 2)
    error = np.mean((np.exp(logs[:, 1:]) - mean) ** 2)
    np.testing.assert_allclose(table.loc["a", "mse"], error, rtol=1e-3)


def test_inputs_are_taken_and_have_no_say():
    data, rng = untidy(), np.random.default_rng(0)
    u = rng.normal(size=(*data.times.shape, 1))
    driven = replace(data, inputs=u, input_names=("u",))
    for kind in (Persistence, Climatology):
        plain = hs.fit(kind(observed=NAMES), data).score(data)
        told = hs.fit(kind(observed=NAMES, inputs=("u",)), driven).score(driven)
        np.testing.assert_allclose(told.to_numpy(), plain.to_numpy(), rtol=1e-6)


def test_states_far_from_zero_are_cut_off_in_their_own_units():
    """What is plausible is kept about an offset, forecasts are not."""
    rng = np.random.default_rng(2)
    values = 1e6 + rng.normal(size=(3, 20, 1))
    data = hs.Trajectories.from_arrays([np.arange(20.0)] * 3, list(values), states=("a",))
    found = hs.fit(Climatology(observed=("a",)), data).forecast(
        data.start(), steps=None, elapsed=[1.0]
    )
    np.testing.assert_allclose(found.states, values.mean(), atol=0.5)
    np.testing.assert_allclose(found.observations, values.mean(), atol=8)
