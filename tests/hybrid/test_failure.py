"""Models that are wrong on purpose: what is said names the equation, the place and the remedy."""

import warnings
from dataclasses import replace

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import hybridsde as hs
from hybridsde.hybrid import SDEForecaster
from hybridsde.hybrid.failure import why_not_finite
from hybridsde.hybrid.free_run import Left
from hybridsde.hybrid.numerics import Numerics
from hybridsde.simulate import EulerMaruyama


def recordings(states, function, rows=12, ids=("a", "b"), seed=0):
    """What `function` gives of the time, with a little noise."""
    rng = np.random.default_rng(seed)
    t = np.linspace(0, 1.1, rows)
    values = [np.stack(function(t + k), -1) for k in range(len(ids))]
    noisy = [one + 0.01 * rng.normal(size=one.shape) for one in values]
    return hs.Trajectories.from_arrays([t] * len(ids), noisy, states=states, ids=ids)


def alone(*equations, states, hidden=(), **settings):
    """A model of known equations, nothing learned beside them."""
    known = {k: settings.pop(k) for k in list(settings) if k in ("k", "rate")}
    return hs.HybridSDE(
        states=states,
        observed=[one for one in states if one not in hidden],
        physics=hs.equations(*equations, **known),
        hidden=None,
        learned="library",
        **settings,
    )


def failed(model, data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises((hs.FitFailed, hs.InputError)) as error:
            hs.fit(model, data)
    return str(error.value)


def test_a_division_by_zero_at_a_recorded_row_names_the_row():
    data = recordings(("x",), lambda t: [2 + t])
    data.values[1, 4, 0] = 3.0
    said = failed(alone("dx = 1/(x - 3)", states=("x",)), data)
    assert "1/(x - 3) in dx is not finite at x = 3, row 5 of 'b' (time 0.4)" in said


def test_a_start_outside_the_domain_names_the_start_and_the_range_that_mends_it():
    data = recordings(("x",), lambda t: [np.log(1 + t)])
    equations = ("dx = log(z)", "dz = 1 - z")
    said = failed(alone(*equations, states=("x", "z"), hidden=("z",)), data)
    assert "log(z) in dx is not finite at z = -" in said
    assert "give it a range in `start` ([start] z = [low, high])" in said
    mended = alone(*equations, states=("x", "z"), hidden=("z",), start={"z": (0.5, 1.5)})
    hs.fit(mended, data)


def test_an_infinite_slope_names_the_equation_and_the_recording():
    """The drift is a number and so is the state: only the filter is lost."""
    data = recordings(("x",), lambda t: [np.maximum(0.0, t - 0.5) ** 2])
    data.values[:, 0, 0] = [0.5, 0.0]
    data.values[:, 1:, 0] = np.abs(data.values[:, 1:, 0])
    said = failed(alone("dx = sqrt(x)", states=("x",)), data)
    assert "sqrt(x) in dx has no finite slope at x = 0, at the start of 'b', row 1." in said
    assert "Declare `positive = ['x']`" in said


def test_a_step_that_is_too_long_for_the_equations_is_said():
    data = recordings(("x",), lambda t: [np.sin(3 * t)])
    model = alone(
        "dx = z",
        "dz = -900*(z - cos(3*t))",
        states=("x", "z"),
        hidden=("z",),
        autonomous=False,
        start={"z": 1.0},
        numerics=Numerics(origin=0.0, step=0.1, scheme="Heun", typical={"z": (0.0, 1.0)}),
    )
    with pytest.warns(hs.InputNotice, match=r"\(dx, dz\), which decay at a rate of 900.*is 0.1"):
        hs.fit(model, data)


def test_a_state_that_nothing_holds_back_names_its_equation_and_where_it_is_lost():
    data = recordings(("x",), lambda t: [np.sin(3 * t)], rows=40)
    equations = ("dx = z - x", "dz = 300*z")
    model = alone(*equations, states=("x", "z"), hidden=("z",), start={"z": (-1.0, 1.0)})
    batch = model.batch(data)
    untrained = SDEForecaster(model.init(batch, key=jr.key(0)), EulerMaruyama(substeps=1))
    untrained = eqx.tree_at(lambda f: f.model.start.default.raw, untrained, jnp.zeros(2))
    blind = replace(batch, observed=batch.observed.at[:, 1:].set(False))
    last = blind.observed.at[:, -1].set(True)
    said = why_not_finite(model, untrained, replace(blind, observed=last), data, data)
    assert "What is known of 'z' is lost at time" in said
    assert "of 'a', after row" in said
    assert "The slope of dz by z is 300 there." in said


def test_a_parameter_at_its_limit_is_said():
    data = recordings(("x",), lambda t: [np.exp(-3 * t)])
    model = alone("dx = -k*x", states=("x",), k=hs.Bounded.of(1.0, 0.5, 1.5))
    with pytest.warns(hs.InputNotice, match="'k' is at its limit 1.5: widen its range"):
        hs.fit(model, data)


def test_a_model_that_runs_away_says_so_before_anybody_forecasts():
    """Noise is taken for a motion, which nothing holds back."""
    data = recordings(("x",), lambda t: [0.1 * np.sin(20 * t)], rows=40)
    model = alone("dx = 8*x", states=("x",))
    with pytest.warns(hs.InputNotice, match="Left to itself .* of the draws of 'x', half of these"):
        run = hs.fit(model, data)
    assert run.metadata.leaves is not None
    found = Left.of(run.metadata.leaves["x"])
    assert found.share > 0.5
    assert 0 < found.after < 1.1


def test_a_model_that_stays_is_not_complained_of():
    data = recordings(("x",), lambda t: [np.exp(-3 * t)])
    run = hs.fit(alone("dx = -k*x", states=("x",), k=hs.Positive.of(1.0)), data)
    assert run.metadata.leaves is None
