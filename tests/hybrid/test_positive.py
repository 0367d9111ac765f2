"""Positive states: logarithms inside, raw units outside."""

import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hybridsde as hs
from helpers import assert_mean_close
from hybridsde.data import Batch
from hybridsde.estimate.censored import at_limit
from hybridsde.forecast import AbstractForecaster, Prediction, evaluate
from hybridsde.model import AbstractObservation

RNG = np.random.default_rng(0)
TIMES = [0.1 * np.arange(20)] * 4
VALUES = [np.exp(RNG.normal(size=(20, 2)).cumsum(0) * 0.1) for _ in range(4)]
DATA = hs.Trajectories.from_arrays(TIMES, VALUES, states=("x", "y"))


class Same(AbstractForecaster):
    """Forecasts what it is told."""

    observation: AbstractObservation
    context: int = eqx.field(static=True)
    states: jax.Array

    def predict(self, batch, draws, *, paths_per_weight=1, key):
        return Prediction.of_states(self.observation, self.states)

    def spreads(self):
        return {}

    def describe(self):
        return "heart"


def declare(**changes):
    physics = hs.equations("dx = x*(1 - x) - x*y", "dy = y - 2")
    given = {"states": ("x", "y"), "physics": physics, "positive": ("x",), "hidden": (8,)}
    return hs.HybridSDE(**{**given, **changes})


@pytest.mark.slow
def test_the_rate_of_a_logarithm_is_the_relative_rate(getkey):
    model = declare()
    built = model.init(Batch.of(model.encode(DATA)), key=getkey())
    h = jnp.array([np.log(0.3), 1.7])
    rates = built.known(jnp.zeros(()), h, jnp.zeros(0))
    np.testing.assert_allclose(rates, [(1 - 0.3) - 1.7, 1.7 - 2], rtol=1e-5)


def test_equations_stay_finite_far_from_the_data(getkey):
    model = declare()
    built = model.init(Batch.of(model.encode(DATA)), key=getkey())
    assert jnp.isfinite(built.known(jnp.zeros(()), jnp.array([500.0, 1.0]), jnp.zeros(0))).all()


def with_a_zero():
    values = [v.copy() for v in VALUES]
    values[1][3, 0] = 0.0
    return hs.Trajectories.from_arrays(TIMES, values, states=("x", "y"))


def test_a_zero_is_read_as_below_the_smallest_value():
    data = with_a_zero()
    model = declare().settled(data)
    smallest = (1 - 1e-3) * data.values[..., 0][data.values[..., 0] > 0].min()
    assert model.smallest == {"x": pytest.approx(smallest)}
    with pytest.warns(hs.InputNotice, match="1 values of 'x'.*read as below"):
        batch = model.batch(data)
    assert batch.observed[1, 3, 0]
    ends = model.init(batch, key=jax.random.key(0)).observation.ends
    assert ends is not None
    side = np.asarray(at_limit(batch.values, ends))
    assert side[1, 3, 0] == -1
    assert np.abs(side).sum() == 1


def test_zeros_count_as_missing_where_nothing_is_known_of_their_size():
    data = with_a_zero()
    with pytest.warns(hs.InputNotice, match="1 values of 'x'.*read as missing"):
        encoded = declare().encode(data)
    assert not encoded.observed[1, 3, 0]
    assert encoded.observed.sum() == data.observed.sum() - 1
    np.testing.assert_allclose(encoded.values[0, :, 0], np.log(VALUES[0][:, 0]))
    np.testing.assert_array_equal(encoded.values[0, :, 1], VALUES[0][:, 1])


def test_densities_of_raw_values_are_those_of_a_lognormal(getkey):
    """−ln p(y) = −ln N(ln y; m, σ²) + ln y, for a sample that is one point."""
    model = declare(noise=0.3)
    built = model.init(Batch.of(model.encode(DATA)), key=getkey())
    batch = Batch.of(model.encode(DATA))
    states = jnp.broadcast_to(batch.values, (3, *batch.values.shape)) + 0.1
    scores = evaluate(Same(built.observation, 1, states), batch, 3, key=getkey())
    x = np.stack(VALUES)[:, 1:, 0]
    z = 0.1 / 0.3
    expected = 0.5 * z**2 + np.log(0.3) + 0.5 * np.log(2 * np.pi) + np.log(x).mean()
    np.testing.assert_allclose(scores["nll"][0], expected, rtol=1e-4)
    mse = np.mean((np.exp(np.log(x) + 0.1 + 0.3**2 / 2) - x) ** 2)  # the mean of a measurement
    np.testing.assert_allclose(scores["mse"][0], mse, rtol=1e-4)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"positive": ("q",)}, "`positive` names 'q'"),
        ({"observed": {"s": {"x": 1.0, "y": 1.0}}}, "measured directly"),
        ({"diffusion": "no"}, "`diffusion` must be one of learn, guess"),
        ({"noise": "no"}, "`noise` must be one of learn, guess"),
        ({"start": "last"}, "`start` must be one of first, uncertain"),
    ],
)
def test_bad_declarations(changes, message):
    with pytest.raises(ValueError, match=message):
        declare(**changes)


def test_a_logarithm_without_end_is_no_warning():
    """Such a draw is counted and cut off; see `say_implausible`."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = declare().raw_states(np.array([[1000.0, 5.0]]))
    np.testing.assert_array_equal(found, [[np.inf, 5.0]])


def test_one_wild_draw_decides_no_score(getkey):
    """It counts as the end of the plausible range, in every score that is an average of draws."""
    observation = declare(noise=0.1).init(declare().batch(DATA), key=getkey()).observation
    batch = declare().batch(DATA)
    rng = np.random.default_rng(3)
    states = jnp.asarray(
        np.asarray(batch.values) + 0.1 * rng.normal(size=(50, *batch.values.shape))
    )
    wild = states.at[0].set(80.0)
    ends = jnp.array([[0.0, 20.0], [-20.0, 20.0]])
    calm, other = (
        evaluate(Same(observation, 1, one), batch, 50, plausible=ends, key=getkey())
        for one in (states, wild)
    )
    assert float(other["implausible"][-1]) == pytest.approx(1 / 50)
    for name in ("rmse", "crps"):
        assert float(other[name][0]) < float(calm[name][0]) + 20 / 50
    assert np.isfinite(other["nll_gaussian"]).all()
    assert float(other["nll_gaussian"][0]) < 5


def test_the_mean_of_a_measurement_is_that_of_a_lognormal(getkey):
    """E exp(y + ε) = exp(y + σ²/2), against draws."""
    observation = declare(noise=0.5).init(declare().batch(DATA), key=getkey()).observation
    y = jnp.array([0.3, 2.0])
    drawn = observation.raw(y + 0.5 * jax.random.normal(getkey(), (20000, 2)))
    assert_mean_close(np.asarray(drawn), np.asarray(observation.expected(y, jnp.full(2, 0.5))))
    np.testing.assert_allclose(observation.numbers(observation.raw(y)), y, rtol=1e-6)
