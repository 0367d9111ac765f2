"""Positive states: logarithms inside, raw units outside."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hybridsde as hs
from hybridsde.data import Batch
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


def test_values_of_zero_or_less_count_as_missing():
    values = [v.copy() for v in VALUES]
    values[1][3, 0] = 0.0
    data = hs.Trajectories.from_arrays(TIMES, values, states=("x", "y"))
    with pytest.warns(hs.InputNotice, match="1 values of positive states.*'x'"):
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
    mse = np.mean((np.exp(np.log(x) + 0.1) - x) ** 2)
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
