"""The linear-Gaussian system against joint Gaussian distributions written out in full."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal

import hybridsde as hs
from helpers import STANDARD_ERRORS, assert_mean_close, assert_variance_close
from hybridsde._parameters import Fixed
from hybridsde.baselines import Climatology, LinearGaussian
from hybridsde.baselines.base import direct
from hybridsde.baselines.kalman import Matrices, Rows, StateSpace, smooth

PARTS = ("a", "b", "q", "c", "d", "m0", "p0")
INPUTS = 2
LENGTHS = (6, 4)
SIZES = [(2, 4), (1, 3), (2, 2), (3, 2)]
"""States and observations. The first two pairs are collapsed, the others are not."""


def matrices(states: int, obs: int, seed: int = 0) -> Matrices:
    """Any stable system."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(states, states))
    root_q, root_p = 0.4 * rng.normal(size=(2, states, states))
    return Matrices(
        a=0.9 * a / np.abs(np.linalg.eigvals(a)).max(),
        b=rng.normal(size=(states, INPUTS)),
        q=root_q @ root_q.T + 0.1 * np.eye(states),
        c=rng.normal(size=(obs, states)),
        d=rng.normal(size=obs),
        r=rng.uniform(0.1, 0.5, obs),
        m0=rng.normal(size=states),
        p0=root_p @ root_p.T + 0.2 * np.eye(states),
    )


def joint(m: Matrices, u: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean and covariance of x_0 … x_{T−1} as one vector, and the map to all y without d."""
    rows = len(u)
    states = len(m.a)
    mean, cov = [m.m0], np.zeros((rows, states, rows, states))
    marginal = m.p0
    for t in range(rows):
        block = marginal
        for later in range(t, rows):
            cov[later, :, t], cov[t, :, later] = block, block.T
            block = m.a @ block
        mean.append(m.a @ mean[-1] + m.b @ u[t])
        marginal = m.a @ marginal @ m.a.T + m.q
    size = rows * states
    return np.concatenate(mean[:-1]), cov.reshape(size, size), np.kron(np.eye(rows), m.c)


def condition(m: Matrices, y: np.ndarray, seen: np.ndarray, u: np.ndarray | None = None):
    """Mean and covariance of all states of a series given what was seen, and ln p of that."""
    mean, cov, design = joint(m, np.zeros((len(y), m.b.shape[1])) if u is None else u)
    which = seen.ravel()
    h = design[which]
    expected = h @ mean + np.tile(m.d, len(y))[which]
    spread = h @ cov @ h.T + np.diag(np.tile(m.r, len(y))[which])
    gain = np.linalg.solve(spread, h @ cov).T
    found = mean + gain @ (y.ravel()[which] - expected), cov - gain @ h @ cov
    return *found, multivariate_normal(expected, spread).logpdf(y.ravel()[which])


def recordings(obs: int, seed: int = 1):
    """Two series of different lengths, values missing at random, one row of them altogether."""
    rng = np.random.default_rng(seed)
    shape = (len(LENGTHS), max(LENGTHS))
    recorded = np.arange(shape[1]) < np.array(LENGTHS)[:, None]
    seen = (rng.uniform(size=(*shape, obs)) > 0.3) & recorded[..., None]
    seen[0, 2] = False
    seen[1, 0, 0] = False
    u = rng.normal(size=(*shape, INPUTS))
    return np.where(seen, rng.normal(size=(*shape, obs)), 0.0), seen, recorded, u


def rows_of(y: np.ndarray, seen: np.ndarray, recorded: np.ndarray, u: np.ndarray) -> Rows:
    """Numbers as they are."""
    size, inputs = y.shape[-1], u.shape[-1]
    units = (np.zeros(size), np.ones(size), np.zeros(inputs), np.ones(inputs))
    return Rows(y, seen, recorded, u, *units)


@pytest.fixture(scope="module", params=SIZES, ids=str)
def smoothed(request):
    """What `smooth` finds and what it should, series by series."""
    states, obs = request.param
    m, (y, seen, recorded, u) = matrices(states, obs), recordings(obs)
    wanted = [
        condition(m, y[n, :rows], seen[n, :rows], u[n, :rows]) for n, rows in enumerate(LENGTHS)
    ]
    return smooth(m, rows_of(y, seen, recorded, u)), wanted, states


def test_the_likelihood_is_that_of_the_joint_distribution(smoothed):
    found, wanted, _ = smoothed
    np.testing.assert_allclose(found.log_likelihood, sum(one[2] for one in wanted), rtol=1e-8)


def test_smoothed_moments_are_those_of_the_joint_distribution(smoothed):
    found, wanted, states = smoothed
    for n, (mean, cov, _) in enumerate(wanted):
        rows = LENGTHS[n]
        blocks = cov.reshape(rows, states, rows, states)
        own = found.rows[:, 0] == n
        np.testing.assert_array_equal(found.rows[own, 1], np.arange(rows))
        np.testing.assert_array_equal(found.first[own], np.arange(rows) == 0)
        np.testing.assert_allclose(found.mean[own], mean.reshape(rows, states), atol=1e-8)
        for t, index in enumerate(np.flatnonzero(own)):
            np.testing.assert_allclose(found.cov[index], blocks[t, :, t], atol=1e-8)
            if t + 1 < rows:
                np.testing.assert_allclose(found.cross[index], blocks[t + 1, :, t], atol=1e-8)


def of_model(model: StateSpace) -> Matrices:
    """A fitted system, in the units of the data."""
    arrays = {name: np.asarray(getattr(model, name).value, float) for name in PARTS}
    return Matrices(**arrays, r=np.asarray(model.observation.sd.value, float) ** 2)


def state_space(m: Matrices, context: int, names: tuple[str, ...]) -> StateSpace:
    """The same system as it is asked for forecasts."""
    arrays = {name: Fixed(jnp.asarray(getattr(m, name), float)) for name in PARTS}
    seen = direct(LinearGaussian(observed=names), jnp.asarray(np.sqrt(m.r), float))
    shift = Fixed(jnp.zeros(len(m.a)))
    return StateSpace(**arrays, shift=shift, observation=seen, context=context)


@pytest.mark.parametrize(("states", "obs"), SIZES[1:3])
def test_filtered_states_are_conditioned_on_the_rows_so_far(states, obs):
    m, (y, seen, _, u) = matrices(states, obs), recordings(obs)
    model = state_space(m, 1, tuple("abcd"[:obs]))
    for rows in (1, 5):
        mean, cov, _ = condition(m, y[0, :rows], seen[0, :rows], u[0, :rows])
        values, there, inputs = (jnp.asarray(one[0, :rows]) for one in (y, seen, u))
        found = model.filtered(values, there, jnp.ones(rows, bool), inputs)
        np.testing.assert_allclose(found.mean, mean[-states:], rtol=1e-4, atol=1e-5)
        wanted = cov[-states:, -states:]
        np.testing.assert_allclose(found.covariance, wanted, rtol=1e-4, atol=1e-5)


def simulated(m: Matrices, series: int, rows: int, seed: int) -> tuple[np.ndarray, ...]:
    """States and observations of a system."""
    rng = np.random.default_rng(seed)
    x = [rng.multivariate_normal(m.m0, m.p0, series)]
    for _ in range(rows - 1):
        x.append(x[-1] @ m.a.T + rng.multivariate_normal(np.zeros(len(m.a)), m.q, series))
    states = np.stack(x, 1)
    seen = states @ m.c.T + m.d
    return states, seen + np.sqrt(m.r) * rng.normal(size=seen.shape)


def swinging(obs: int = 3, damping: float = 0.95) -> Matrices:
    """A damped rotation, seen through several columns in very different units."""
    turn = damping * np.array([[np.cos(0.4), -np.sin(0.4)], [np.sin(0.4), np.cos(0.4)]])
    units = np.array([1.0, 100.0, 0.01])[:obs]
    rng = np.random.default_rng(3)
    return Matrices(
        a=turn,
        b=np.zeros((2, 0)),
        q=0.3**2 * np.eye(2),
        c=rng.normal(size=(obs, 2)) * units[:, None],
        d=np.array([3.0, -50.0, 0.2])[:obs],
        r=(0.3 * units) ** 2,
        m0=np.zeros(2),
        p0=np.eye(2),
    )


def as_data(y: np.ndarray, lengths: np.ndarray, missing: float = 0.0) -> hs.Trajectories:
    """Series of these lengths at steps of 0.5, some of their values missing."""
    rng = np.random.default_rng(5)
    values = [one[:rows] for one, rows in zip(y, lengths, strict=True)]
    seen = [rng.uniform(size=one.shape) >= missing for one in values]
    times = [0.5 * np.arange(rows) for rows in lengths]
    names = tuple("abc"[: y.shape[-1]])
    return hs.Trajectories.from_arrays(times, values, states=names, observed=seen)


@pytest.fixture(scope="module")
def gappy():
    """Recordings of a known system: different lengths, a fifth of the values missing."""
    _, y = simulated(swinging(), 12, 25, seed=0)
    return as_data(y, np.arange(14, 26), missing=0.2)


@pytest.mark.parametrize("states", [1, 2, 3, 4])
def test_every_iteration_raises_the_likelihood(gappy, states):
    model = LinearGaussian(observed=("a", "b", "c"), states=states, iterations=20)
    losses = hs.fit(model, gappy).history["loss"].to_numpy()
    assert len(losses) == 20
    assert np.isfinite(losses).all()
    assert (np.diff(losses) < 1e-6 * np.abs(losses[1:])).all()
    assert losses[0] - losses[-1] > 1.0


def test_the_loss_is_the_likelihood_of_the_fitted_system_in_units_of_the_spread(gappy):
    fewer, more = (
        hs.fit(LinearGaussian(observed=("a", "b", "c"), states=2, iterations=n), gappy)
        for n in (3, 4)
    )
    m, total = of_model(fewer.forecaster), 0.0
    for n, rows in enumerate(gappy.lengths):
        total += condition(m, gappy.values[n, :rows], gappy.observed[n, :rows])[2]
    spread = [gappy.values[..., c][gappy.observed[..., c]].std() for c in range(3)]
    standardised = total + gappy.observed.sum((0, 1)) @ np.log(spread)
    np.testing.assert_allclose(more.history["loss"].iloc[-1], -standardised / len(gappy), rtol=1e-4)


@pytest.fixture(scope="module")
def long_run():
    """A fit to enough recordings to know the system."""
    _, y = simulated(swinging(), 10, 40, seed=1)
    data = as_data(y, np.full(10, 40), missing=0.1)
    declared = LinearGaussian(observed=("a", "b", "c"), states=2, given=4)
    return hs.fit(declared, data)


def test_a_known_system_is_recovered(long_run):
    truth, found, rows = swinging(), of_model(long_run.forecaster), 10 * 40
    turns, wanted = (np.sort_complex(np.linalg.eigvals(m.a)) for m in (found, truth))
    error = np.sqrt((1 - np.abs(wanted) ** 2) / rows)  # of an eigenvalue, as of an AR(1)
    assert (np.abs(turns - wanted) < STANDARD_ERRORS * error).all()
    # Of a variance, relative to it; twice that, because Q must be told from R at the same time.
    error = 2 * np.sqrt(2 / rows)
    assert (np.abs(found.r / truth.r - 1) < STANDARD_ERRORS * error).all()


@pytest.fixture(scope="module")
def drawn(long_run):
    """Forecasts of two series after four rows with gaps."""
    _, y = simulated(swinging(), 2, 4, seed=2)
    start = as_data(y, np.array([4, 4]), missing=0.3)
    return start, long_run.forecast(start, 0.5 * np.arange(4, 9), draws=5000)


def test_forecasts_have_the_moments_of_the_closed_form(long_run, drawn):
    """x_{C−1} given C rows, carried on by A and Q and seen through C, d and R."""
    start, forecast = drawn
    m = of_model(long_run.forecaster)
    states, seen = (one.to_numpy() for one in (forecast.states, forecast.observations))
    assert states.shape == (5000, 2, 5, 3)
    for n in range(2):
        mean, cov, _ = condition(m, start.values[n], start.observed[n])
        mean, cov = mean[-2:], cov[-2:, -2:]
        for k in range(5):
            mean, cov = m.a @ mean, m.a @ cov @ m.a.T + m.q
            spread = np.diag(m.c @ cov @ m.c.T)
            assert_mean_close(states[:, n, k], m.c @ mean + m.d)
            assert_variance_close(states[:, n, k], spread)
            assert_mean_close(seen[:, n, k], m.c @ mean + m.d)
            assert_variance_close(seen[:, n, k], spread + m.r)


def test_neighbouring_rows_of_a_forecast_are_correlated(long_run, drawn):
    """Cov(x_{t+1}, x_t) = A P_t: paths are paths, not rows drawn one by one."""
    start, forecast = drawn
    m = of_model(long_run.forecaster)
    _, cov, _ = condition(m, start.values[0], start.observed[0])
    cov = m.a @ cov[-2:, -2:] @ m.a.T + m.q
    states = forecast.states.to_numpy()[:, 0]
    apart = states - states.mean(0)
    assert_mean_close(apart[:, 1] * apart[:, 0], np.diag(m.c @ m.a @ cov @ m.c.T))


def test_a_damped_oscillation_is_forecast_far_better_than_by_climatology():
    rng = np.random.default_rng(0)
    t = 0.5 * np.arange(20)
    phases = rng.uniform(0, 2 * np.pi, 16)[:, None]
    waves = np.exp(-0.05 * t)[:, None] * np.stack([np.cos(t + phases), np.sin(t + phases)], -1)
    values = waves + 0.02 * rng.normal(size=waves.shape)
    data = hs.Trajectories.from_arrays([t] * 16, list(values), states=("a", "b"))
    train, test = data.take(np.arange(8)), data.take(np.arange(8, 16))
    mse = [
        hs.fit(model, train).score(test, draws=100).loc["overall", "mse"]
        for model in (
            LinearGaussian(observed=("a", "b"), states=2, iterations=20),
            Climatology(observed=("a", "b")),
        )
    ]
    assert mse[0] < mse[1] / 20


def test_the_noise_cannot_be_set():
    with pytest.raises(TypeError, match="unexpected keyword argument 'noise'"):
        LinearGaussian(observed=("a",), noise=0.1)  # pyright: ignore[reportCallIssue]


def test_a_single_step_of_one_series_is_enough():
    data = as_data(np.array([[[1.0, 2.0], [2.0, 1.0]]]), np.array([2]))
    run = hs.fit(LinearGaussian(observed=("a", "b"), states=2, iterations=2), data)
    assert np.isfinite(run.history["loss"]).all()


@pytest.fixture(scope="module")
def driven():
    """Recordings of a rotation that an input in odd units drives, and a fit to them."""
    rng, m = np.random.default_rng(8), swinging(2)
    b, u = np.array([0.02, -0.01]), 300 + 50 * rng.normal(size=(12, 40))
    x = [rng.normal(size=(12, 2))]
    for row in range(39):
        noise = 0.3 * rng.normal(size=(12, 2))
        x.append(x[-1] @ m.a.T + (u[:, row, None] - 300) * b + noise)
    states = np.stack(x, 1)
    y = states @ m.c.T + m.d + np.sqrt(m.r) * rng.normal(size=(12, 40, 2))
    data = hs.Trajectories.from_arrays(
        [0.5 * np.arange(40)] * 12, list(y), states=("a", "b"), inputs=list(u[..., None]),
        input_names=("u",),
    )  # fmt: skip
    train, test = data.take(range(10)), data.take([10, 11])
    declared = LinearGaussian(observed=("a", "b"), inputs=("u",), states=2, given=4)
    return train, test, hs.fit(declared, train)


def test_an_input_is_worth_what_it_explains(driven):
    """Responses C A^k B do not depend on the coordinates of x; forecasts use what will be given."""
    train, test, run = driven
    m, found = swinging(2), of_model(run.forecaster)
    b = np.array([0.02, -0.01])
    for k in range(4):
        wanted = m.c @ np.linalg.matrix_power(m.a, k) @ b
        response = (found.c @ np.linalg.matrix_power(found.a, k) @ found.b)[:, 0]
        # Of a slope, from 10 × 39 rows; twice that, because x is not seen itself.
        error = 2 * np.sqrt(np.diag(m.c @ m.c.T) * 0.3**2 + m.r) / 50 / np.sqrt(390)
        assert (np.abs(response - wanted) < STANDARD_ERRORS * error).all()
    blind = replace(run.spec, inputs=())
    without = hs.fit(blind, replace(train, inputs=train.inputs[..., :0], input_names=()))
    unaware = without.score(replace(test, inputs=test.inputs[..., :0], input_names=()))
    assert run.score(test).loc["overall", "crps"] < 0.8 * unaware.loc["overall", "crps"]


def test_a_forecast_follows_inputs_of_the_future(driven):
    """The mean of y_{C+k} moves by C A^{k} B for one unit more of the first input."""
    _, test, run = driven
    start, found = test.take([0]).start(4), of_model(run.forecaster)
    times = test.times[:1, 3:4] + 0.5 * np.arange(1, 4)
    still = np.full((1, 3, 1), 300.0)
    pushed = [
        run.forecast(start, times, inputs=u, draws=20, seed=1).states.to_numpy()[:, 0]
        for u in (still, still + np.array([100.0, 0, 0])[:, None])
    ]
    moved = (pushed[1] - pushed[0])[0]
    np.testing.assert_allclose(moved[0], 0, atol=1e-3)
    for k in (0, 1):
        response = 100 * (found.c @ np.linalg.matrix_power(found.a, k) @ found.b)[:, 0]
        np.testing.assert_allclose(moved[k + 1], response, rtol=1e-3, atol=1e-3)
