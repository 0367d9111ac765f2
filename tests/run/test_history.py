"""Forecasts, states and updates from the whole past of a record, on a system with closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hybridsde as hs
from helpers import assert_mean_close, assert_variance_close, untrained_run, wiggles
from hybridsde.baselines import LinearGaussian, Persistence, VectorAutoregression
from hybridsde.hybrid.history import chosen_weights, weighed

RATES = np.array([[0.0, 1.0], [-4.0, -0.3]])
SPREAD, NOISE, STEP, ROWS = np.array([0.1, 0.4]), 0.1, 0.05, 40


def oscillator():
    """A damped spring of which the velocity is not measured; nothing is learned."""
    return hs.HybridSDE(
        states=("x", "v"),
        observed=("x",),
        physics=hs.equations("dx = v", "dv = -4*x - 0.3*v"),
        diffusion=SPREAD,
        noise=NOISE,
        hidden=None,
        standardise=False,
        start={"v": (-2.0, 2.0)},
    )


def recordings(count=3, seed=0):
    """Exactly as the model says, by Euler's rule, and the true states."""
    rng = np.random.default_rng(seed)
    h = np.stack([rng.normal(size=count), rng.normal(size=count)], 1)
    states = [h]
    for _ in range(ROWS - 1):
        h = h + STEP * h @ RATES.T + SPREAD * np.sqrt(STEP) * rng.normal(size=h.shape)
        states.append(h)
    truth = np.stack(states, 1)
    y = truth[..., :1] + NOISE * rng.normal(size=(count, ROWS, 1))
    times = [STEP * np.arange(ROWS)] * count
    return hs.Trajectories.from_arrays(times, list(y), states=("x",)), truth


def head(data, rows):
    """The first rows of every record, under its own name."""
    return data.cut([(n, 0, rows) for n in range(len(data))]).named(data.ids)


@pytest.fixture(scope="module")
def run():
    data, _ = recordings()
    euler = hs.EmpiricalBayes(solver=hs.EulerMaruyama())
    return hs.fit(oscillator(), data, objective=euler, training=hs.Training(epochs=1))


def kalman(y, rows):
    """Mean and covariance of both states after `rows` rows, by the textbook filter."""
    mean, cov = np.array([y[0], 0.0]), np.diag([NOISE**2, 1.0])
    step = np.eye(2) + STEP * RATES
    for value in y[1:rows]:
        mean, cov = step @ mean, step @ cov @ step.T + np.diag(SPREAD**2) * STEP
        gain = cov[:, 0] / (cov[0, 0] + NOISE**2)
        mean, cov = mean + gain * (value - mean[0]), cov - np.outer(gain, cov[0])
    return mean, cov


def test_a_forecast_goes_on_from_the_filtered_state(run):
    """Ten steps after 25 rows: mean and variance of both states within 5 standard errors."""
    data, _ = recordings()
    found = run.forecast(head(data, 25), steps=10, draws=4000, paths_per_weight=1)
    np.testing.assert_allclose(found.states["elapsed"][0], STEP * np.arange(1, 11), rtol=1e-6)
    for n in range(len(data)):
        mean, cov = kalman(data.values[n, :, 0], 25)
        for _ in range(10):
            step = np.eye(2) + STEP * RATES
            mean, cov = step @ mean, step @ cov @ step.T + np.diag(SPREAD**2) * STEP
        ends = found.states.values[:, n, -1]
        assert_mean_close(ends, mean)
        assert_variance_close(ends, np.diag(cov))


def test_one_row_is_the_old_meaning(run):
    data, _ = recordings()
    one = run.forecast(data.start(), data.times[:, 1:4], draws=16)
    two = run.forecast(head(data, 1), elapsed=STEP * np.arange(1, 4), draws=16)
    np.testing.assert_allclose(one.states.values, two.states.values, rtol=1e-4)


def test_records_of_different_lengths_each_go_on_after_their_own_end(run):
    data, _ = recordings()
    uneven = data.cut([(0, 0, 25), (1, 0, 7), (2, 0, 40)]).named(data.ids)
    found = run.forecast(uneven, steps=1, draws=4000, paths_per_weight=1)
    np.testing.assert_allclose(found.states["clock"][:, 0], uneven.ends + STEP, rtol=1e-6)
    for n, rows in enumerate((25, 7, 40)):
        mean, _ = kalman(data.values[n, :, 0], rows)
        assert_mean_close(found.states.values[:, n, 0], mean + STEP * RATES @ mean)


def test_filtered_states_and_evidence_of_a_record(run):
    data, _ = recordings()
    found = run.filter(data, estimator="extended", draws=4000)
    for n in range(len(data)):
        mean, cov = kalman(data.values[n, :, 0], ROWS)
        assert_mean_close(found.states.values[:, n, -1], mean)
        assert_variance_close(found.states.values[:, n, -1], np.diag(cov))
    errors = found.innovations.values[:, 1:]
    assert abs(errors.mean()) < 5 / np.sqrt(errors.size)
    assert abs((errors**2).mean() - 1) < 5 * np.sqrt(2 / errors.size)
    assert np.isfinite(found.log_evidence).all()


@pytest.mark.slow
def test_smoothing_finds_the_hidden_state_better_than_filtering(run):
    data, truth = recordings(count=20, seed=5)
    errors = {
        name: np.sqrt(np.mean((estimate.mean().values - truth)[:, 2:-2, 1] ** 2))
        for name, estimate in (
            ("filter", run.filter(data, estimator="extended", draws=64)),
            ("smooth", run.smooth(data, estimator="extended", draws=64)),
        )
    }
    assert errors["smooth"] < 0.9 * errors["filter"]


def test_missing_values_are_filled_in(run):
    data, truth = recordings()
    observed = data.observed.copy()
    observed[:, 10:14] = False
    gaps = hs.Trajectories.from_arrays(
        list(data.times), list(data.values), states=("x",), observed=list(observed)
    )
    found = run.smooth(gaps, estimator="extended", draws=400)
    mean, sd = found.observations.mean("draw").values, found.observations.std("draw").values
    error = (mean - truth[..., :1]) / sd
    assert np.abs(error[:, 10:14]).max() < 5
    assert sd[:, 12].min() > sd[:, 30].max()
    table = found.table()
    assert len(table) == 3 * ROWS * 2
    assert set(table["state"]) == {"x", "v"}


def test_row_by_row_equals_all_at_once(run):
    data, _ = recordings()
    live = run.follow(head(data, 20))
    for row in range(20, 30):
        live = live.update(data.cut([(n, row, row + 1) for n in range(3)]).named(data.ids))
    whole = run.follow(head(data, 30))
    np.testing.assert_allclose(live.ends.last.mean, whole.ends.last.mean, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(live.ends.log_evidence, whole.ends.log_evidence, rtol=1e-5)
    np.testing.assert_allclose(live.mean()[0], kalman(data.values[0, :, 0], 30)[0], rtol=1e-3)
    ahead = live.forecast(steps=2, draws=8)
    np.testing.assert_allclose(ahead.states["clock"][:, 0], data.times[:, 30], rtol=1e-6)


def test_one_more_row_compiles_nothing(run, caplog):
    data, _ = recordings()

    def new(row):
        return data.cut([(n, row, row + 1) for n in range(3)]).named(data.ids)

    live = run.follow(head(data, 20)).update(new(20))
    with jax.log_compiles(), caplog.at_level("WARNING", "jax"):
        for row in range(21, 25):
            live = live.update(new(row))
    assert not [one for one in caplog.messages if "Compiling" in one]


def test_what_cannot_be_followed_says_so(run):
    data, _ = recordings()
    live = run.follow(head(data, 20))
    with pytest.raises(hs.InputError, match="is known already"):
        live.update(data.cut([(n, 19, 20) for n in range(3)]).named(data.ids))
    with pytest.raises(hs.InputError, match="same records"):
        live.update(data.take([0]))
    other = hs.fit(Persistence(observed=("x",)), data)
    with pytest.raises(hs.InputError, match="cannot be updated"):
        other.follow(data)
    with pytest.raises(hs.InputError, match="no states apart"):
        other.smooth(data)


@pytest.mark.parametrize("name", ["hybrid", "var", "linear", "persistence"])
def test_rolling_origins_for_every_kind_of_forecaster(run, name):
    data, _ = recordings(count=4, seed=2)
    specs = {
        "var": VectorAutoregression(observed=("x",)),
        "linear": LinearGaussian(observed=("x",), states=2, iterations=5),
        "persistence": Persistence(observed=("x",)),
    }
    tested = run if name == "hybrid" else hs.fit(specs[name], recordings(count=6, seed=3)[0])
    table = tested.backtest(data, horizon=3, origins=4)
    assert set(table["lead"]) == {0, 1, 2, 3}
    assert set(table["origins"]) == {16}
    assert np.isfinite(table[["crps", "rmse", "coverage90"]].to_numpy()).all()


@pytest.mark.slow
def test_the_past_is_worth_something(run):
    """With the velocity hidden, all rows before forecast better than the last one alone."""
    data, _ = recordings(count=30, seed=7)
    table = run.backtest(data, horizon=5, origins=3, draws=100)
    starts = data.windows(6, 5)
    alone = run.score(starts, draws=100).loc["overall", "crps"]
    assert float(table.loc[0, "crps"]) < 0.8 * alone


def test_weights_count_by_how_well_they_explain_the_past(getkey):
    evidence = jnp.log(jnp.array([[0.7, 0.5], [0.2, 0.5], [0.1, 0.5]]))
    chosen = np.asarray(chosen_weights(evidence, 1000, key=getkey()))
    shares = np.stack([(chosen == k).mean(0) for k in range(3)])
    np.testing.assert_allclose(shares[:, 0], [0.7, 0.2, 0.1], atol=2e-3)
    np.testing.assert_allclose(shares[:, 1], 1 / 3, atol=2e-3)
    sure = -1e3 * jnp.arange(8.0)[:, None]
    left = np.asarray(chosen_weights(sure, 800, key=getkey()))
    assert len(np.unique(left)) >= 2  # tempered: never one alone


@pytest.mark.slow
def test_networks_and_local_weights_have_a_past_too():
    data = wiggles()
    for weights in ("path", "local"):
        model = hs.HybridSDE(states=("x", "y"), hidden=(4,), weights=weights)
        run = untrained_run(model)
        found = run.forecast(data, steps=3, draws=8)
        assert found.states.shape == (8, len(data), 3, 2)
        assert np.isfinite(found.states).all()
        assert np.isfinite(run.smooth(data, estimator="extended", draws=8).states).all()


@pytest.mark.slow
def test_a_bounded_state_stays_inside_on_the_way():
    data, _ = recordings()
    model = hs.HybridSDE(states=("x", "v"), observed=("x",), hidden=(4,), bounds={"v": (0.0, 1.0)})
    v = (
        untrained_run(model, data)
        .smooth(data, estimator="extended", draws=8)
        .states.sel(state="v")
        .values
    )
    assert v.min() >= 0
    assert v.max() <= 1


def test_draws_whose_filter_was_lost_are_left_out():
    """NaN and −∞ are no evidence; where nothing else is there, all draws count alike."""
    logs = jnp.array([[0.0, jnp.nan], [jnp.nan, jnp.nan], [-0.1, jnp.nan], [-jnp.inf, jnp.nan]])
    chosen = np.asarray(chosen_weights(logs, 400, key=jax.random.key(0)))
    assert set(chosen[:, 0]) == {0, 2}
    assert set(chosen[:, 1]) == {0, 1, 2, 3}


def test_a_lost_filter_spoils_no_mean():
    share, leaf = jnp.array([[0.75], [0.25], [0.0]]), jnp.array([[[1.0]], [[3.0]], [[jnp.nan]]])
    np.testing.assert_allclose(weighed(share, leaf), [[1.5]])


def test_forecasts_go_on_from_particles_where_a_gaussian_cannot():
    """From a hill between two wells: after rows without values the state is in one of them.

    The truth is a forecast from the first row over all the time. Tolerances are five standard
    errors of shares of the draws.
    """
    pytest.importorskip("cuthbert")
    wells = hs.HybridSDE(
        states=("x",),
        physics=hs.equations("dx = 4*(x - x^3)"),
        diffusion=0.4,
        noise=0.05,
        hidden=None,
        standardise=False,
    )
    times, draws = 0.05 * np.arange(31), 2000
    values, seen = np.zeros((31, 1)), np.zeros((31, 1), bool)
    seen[0] = True
    told = hs.Trajectories.from_arrays([times], [values], observed=[seen], states=("x",))
    path = hs.Trajectories.from_arrays([times], [np.sin(times)[:, None]], states=("x",))
    euler = hs.EmpiricalBayes(solver=hs.EulerMaruyama())
    run = hs.fit(wells, path, objective=euler, training=hs.Training(epochs=1))

    def elsewhere(forecast):
        """The share of paths that are in neither well at the end."""
        return float((np.abs(np.abs(forecast.states.values[:, 0, -1, 0]) - 1) > 0.5).mean())

    fine = 0.05 * np.arange(1, 32)
    truth = elsewhere(run.forecast(told.start(), elapsed=fine, draws=draws))
    after = {
        name: elsewhere(run.forecast(told, elapsed=fine[:1], draws=draws, estimator=name))
        for name in ("particles", "extended")
    }
    error = np.sqrt(truth * (1 - truth) / draws)
    assert abs(after["particles"] - truth) < 5 * np.sqrt(2) * error + 5 * np.sqrt(0.1 / 64)
    assert after["extended"] > truth + 0.1
    with pytest.raises(hs.InputError, match="must be auto"):
        run.forecast(told, steps=2, estimator="kalman")
