"""What a fit chooses by looking at data and physics."""

import numpy as np
import pytest

import hybridsde as hs
from hybridsde.hybrid.first_guess import INSIDE


def swing(rate=2.0, rows=50, count=4, offset=0.0, noise=0.01) -> hs.Trajectories:
    rng = np.random.default_rng(0)
    t = 0.1 * np.arange(rows)
    phases = rng.uniform(0, 6, count)
    values = [np.stack([np.cos(rate * t + p), -rate * np.sin(rate * t + p)], 1) for p in phases]
    values = [y + noise * rng.normal(size=y.shape) for y in values]
    return hs.Trajectories.from_arrays([offset + t] * count, values, states=("x", "v"))


def settled(*equations, data=None, **settings):
    physics = hs.equations(*equations) if equations else hs.NoPhysics()
    model = hs.HybridSDE(states=("x", "v"), physics=physics, **settings)
    return model.settled(swing() if data is None else data).numerics


@pytest.mark.slow
def test_blank_rows_change_neither_step_nor_origin():
    data = swing()
    t = np.sort(np.concatenate([data.times[0], data.times[0][:-1] + 0.03]))
    values, seen = np.zeros((4, len(t), 2)), np.zeros((4, len(t), 2), bool)
    rows = np.searchsorted(t, data.times[0])
    values[:, rows], seen[:, rows] = data.values, True
    blank = hs.Trajectories.from_arrays(
        [t] * 4, list(values), states=("x", "v"), observed=list(seen)
    )
    one, other = settled(data=data), settled(data=blank)
    assert one.step == pytest.approx(other.step, rel=1e-5)


def test_fast_oscillations_of_the_equations_shorten_the_steps():
    slow, fast = settled("dx = v", "dv = -x"), settled("dx = v", "dv = -400*x")
    assert slow.step is not None
    assert fast.step is not None
    assert fast.step == pytest.approx(0.25 / 20, rel=0.01)
    assert fast.step < slow.step
    assert fast.why is not None
    assert "oscillation" in fast.why


def test_stiff_equations_get_an_implicit_scheme():
    found = settled("dv = 1000*(x - v)")
    assert found.scheme == "Rosenbrock"
    assert found.why is not None
    assert "stiff" in found.why


def test_equations_that_cannot_be_resolved_are_refused_with_the_step():
    with pytest.raises(hs.InputError, match=r"needs steps of 2.5e-05"):
        settled("dx = v", "dv = -1e8*x")


@pytest.mark.parametrize(("offset", "origin"), [(0.0, 0.0), (1.7e9, 1.7e9)])
def test_the_origin_of_time_moves_where_single_precision_would_blur(offset, origin):
    assert settled(data=swing(offset=offset)).origin == origin


@pytest.mark.slow
def test_learned_parameters_begin_where_least_squares_puts_them():
    physics = hs.equations("dx = v", "dv = -k*x", k=hs.Bounded.of(1.0, 0.1, 20.0))
    declared = hs.HybridSDE(states=("x", "v"), physics=physics, learned="network")
    model = declared.settled(swing())
    assert float(model.physics.parameters["k"].value) == pytest.approx(4.0, rel=0.02)


@pytest.mark.slow
def test_an_unmeasured_state_is_found_on_its_own_scale():
    """x' = v/100, so that v has a hundred times the size of what one would guess."""
    data = swing()
    position = hs.Trajectories.from_arrays(
        list(data.times), [y[:, :1] for y in data.values], states=("x",)
    )
    physics = hs.equations("dx = v/100", "dv = -400*x")
    model = hs.HybridSDE(states=("x", "v"), observed=("x",), physics=physics).settled(position)
    mean, sd = (model.numerics.typical or {})["v"]
    assert abs(mean) < 40
    assert sd == pytest.approx(200 / np.sqrt(2), rel=0.2)


@pytest.mark.parametrize("ends", [(0.05, 0.2), 0.1])
def test_a_first_guess_obeys_a_declared_start(ends):
    """Least squares alone would begin s near 3, since the rate of infection is given too low."""
    times = np.linspace(0, 4, 40)
    i = 0.01 * np.exp(1.5 * times) / (1 + 0.01 * np.exp(1.5 * times))
    data = hs.Trajectories.from_arrays([times] * 3, [i[:, None]] * 3, states=("i",))
    model = hs.HybridSDE(
        states=("s", "i"),
        observed=("i",),
        physics=hs.equations("ds = -b*s*i", "di = b*s*i", b=0.5),
        start={"s": ends},
        learned="network",
    ).settled(data)
    mean, _ = (model.numerics.typical or {})["s"]
    assert 0.0 < mean <= 0.2


def test_what_is_settled_stays():
    model = hs.HybridSDE(states=("x", "v")).settled(swing())
    assert model.settled(swing(rate=5.0)).numerics == model.numerics


def test_a_first_guess_stays_inside_the_range_of_a_parameter():
    """What grows asks dx = −kx for a negative k: least squares would end at the limit, for good."""
    rows = np.linspace(0, 2, 30)
    data = hs.Trajectories.from_arrays(
        [rows] * 3, [np.exp(0.5 * rows)[:, None] * a for a in (1, 2, 3)], states=("x",)
    )
    physics = hs.equations("dx = -k*x", k=hs.Bounded.of(1.0, 0.2, 3.0))
    settled = hs.HybridSDE(states=("x",), physics=physics, learned="network").settled(data)
    parameter = settled.physics.parameters["k"]
    assert float(parameter.raw) == -INSIDE
    assert float(parameter.value) < 0.3


@pytest.mark.parametrize("ends", [(0.0, 1000.0), (0.1, 6.0), (4.9, 1e4)])
def test_a_first_guess_is_right_near_the_end_of_a_range(ends):
    rows = np.linspace(0, 1, 30)
    data = hs.Trajectories.from_arrays(
        [rows] * 3, [np.exp(-5 * rows)[:, None] * a for a in (1, 2, 3)], states=("x",)
    )
    physics = hs.equations("dx = -k*x", k=hs.Bounded.of(np.clip(6.0, *ends) * 0.99, *ends))
    settled = hs.HybridSDE(states=("x",), physics=physics, learned="network").settled(data)
    assert float(settled.physics.parameters["k"].value) == pytest.approx(5.0, rel=0.05)
