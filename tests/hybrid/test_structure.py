"""Exact equations, what a learned part may see, starts of unmeasured states, and their checks."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import hybridsde as hs
from helpers import one_series, wiggles
from hybridsde.data import Batch
from hybridsde.hybrid.build import library_terms
from hybridsde.hybrid.known_check import check_known
from hybridsde.physics.expression import text


def built(**settings):
    data = wiggles()
    model = hs.HybridSDE(
        states=("x", "y"), physics=hs.equations("dx = y"), last_layer=1.0, **settings
    )
    return model.init(Batch.of(data), key=jr.key(0))


def learned(model, h):
    sde = model.driven_by(model.network.mean())
    return np.asarray(sde.learned(jnp.zeros(()), jnp.asarray(h), jnp.zeros(0), None))


@pytest.mark.slow
def test_nothing_is_added_to_an_exact_equation():
    found = learned(built(exact=("x",)), [0.3, 0.2])
    assert found[0] == 0
    assert found[1] != 0
    far = learned(built(exact=("x",)), [300.0, 200.0])
    assert far[0] == 0


def test_a_learned_part_depends_on_nothing_that_it_does_not_see():
    model = built(sees={"y": ["y"]})
    one, other = learned(model, [0.3, 0.2]), learned(model, [-0.1, 0.2])
    assert one[1] == other[1]
    assert one[0] != other[0]
    assert learned(model, [0.3, 0.1])[1] != one[1]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"exact": ("y",)}, "which has no equation"),
        ({"sees": {"z": ["x"]}}, "the states are x, y"),
        ({"sees": {"y": ["u"]}}, "neither a state nor an input"),
        ({"sees": {"y": ["t"]}}, "autonomous = false"),
        ({"sees": {"x": ["y"]}, "exact": ("x",)}, "exact, so nothing is learned"),
        ({"bounds": {"x": (1, 0)}}, "a lower and a higher number"),
        ({"bounds": {"z": (0, 1)}}, "the states are x, y"),
        ({"bounds": {"x": (-2, -1)}, "positive": ("x",)}, "is `positive`, but its upper limit"),
        ({"start": {"x": "dose"}}, "neither 'infer' nor a column"),
        ({"start": {"x": (3, 1)}}, "a range such as"),
        ({"start": {"w": 1.0}}, "the states are x, y"),
        ({"far": "away"}, "must be one of fade, free"),
    ],
)
def test_what_is_wrong_is_said_at_once(settings, message):
    with pytest.raises(ValueError, match=message):
        hs.HybridSDE(states=("x", "y"), physics=hs.equations("dx = y"), **settings)


def test_a_share_is_positive_and_at_most_one():
    values = [np.linspace(0.1, 0.9, 9)[:, None]] * 2
    data = hs.Trajectories.from_arrays([np.arange(9.0)] * 2, values, states=("s",))
    spec = hs.HybridSDE(states=("s",), positive=("s",), bounds={"s": (0, 1)})
    model = spec.init(spec.batch(data), key=jr.key(0))
    assert model.bounds is not None
    assert model.bounds.value.high == 0.0
    assert model.bounds.value.low == -jnp.inf


@pytest.mark.parametrize(
    ("start", "expected", "spread"),
    [(5.0, 5.0, 0.0), ((2.0, 6.0), 4.0, 1.0), ("dose", 7.0, 0.0)],
)
@pytest.mark.slow
def test_an_unmeasured_state_starts_where_it_is_declared(start, expected, spread):
    data = hs.Trajectories.from_arrays(
        [np.arange(6.0)] * 2, [np.random.default_rng(0).normal(size=(6, 1))] * 2, states=("x",),
        inputs=[np.full((6, 1), 7.0)] * 2, input_names=("dose",),
    )  # fmt: skip
    model = hs.HybridSDE(
        states=("x", "z"), observed=("x",), inputs=("dose",), start={"z": start}, hidden=(4,)
    )
    made = model.init(Batch.of(data), key=jr.key(0))
    series = one_series(data.values[0], None, data.inputs[0])
    draws = jax.vmap(lambda e: made.initial_state(made.typical(), series, e))(
        jr.normal(jr.key(1), (4000, 2))
    )
    np.testing.assert_allclose(draws[:, 1].mean(), expected, atol=5 * spread / np.sqrt(4000) + 1e-5)
    np.testing.assert_allclose(draws[:, 1].std(), spread, rtol=0.1, atol=1e-6)
    if start == "dose":
        assert made.sees is not None
        assert not any(row[2] for row in made.sees)


@pytest.mark.slow
def test_a_range_is_in_the_units_of_a_state_that_is_measured_but_not_at_the_start():
    rng = np.random.default_rng(0)
    data = hs.Trajectories.from_arrays(
        [np.arange(6.0)] * 2, [100 + 5 * rng.normal(size=(6, 1)) for _ in range(2)], states=("x",)
    )
    model = hs.HybridSDE(states=("x",), start={"x": (40.0, 60.0)}, hidden=(4,))
    made = model.init(Batch.of(data), key=jr.key(0))
    series = one_series(data.values[0], np.zeros((6, 1), bool))
    draws = jax.vmap(lambda e: made.initial_state(made.typical(), series, e))(
        jr.normal(jr.key(1), (4000, 1))
    )
    np.testing.assert_allclose(draws.mean(), 50.0, atol=5 * 5.0 / np.sqrt(4000))
    np.testing.assert_allclose(draws.std(), 5.0, rtol=0.1)


def test_a_positive_state_starts_at_the_logarithm_of_its_column():
    data = hs.Trajectories.from_arrays(
        [np.arange(6.0)] * 2, [np.random.default_rng(0).normal(size=(6, 1))] * 2, states=("x",),
        inputs=[np.full((6, 1), 7.0)] * 2, input_names=("dose",),
    )  # fmt: skip
    model = hs.HybridSDE(
        states=("x", "z"), observed=("x",), inputs=("dose",), start={"z": "dose"}, positive=("z",)
    )
    made = model.init(Batch.of(data), key=jr.key(0))
    series = one_series(data.values[0], None, data.inputs[0])
    np.testing.assert_allclose(
        made.initial_state(made.typical(), series, jnp.ones(2))[1], np.log(7.0), rtol=1e-5
    )
    with pytest.raises(ValueError, match="must be above zero, because it is `positive`"):
        hs.HybridSDE(states=("x", "z"), observed=("x",), start={"z": 0.0}, positive=("z",))


def tank(**settings):
    rng = np.random.default_rng(0)
    data = hs.Trajectories.from_arrays(
        [np.arange(20.0)] * 2, [5 + rng.normal(size=(20, 1)) for _ in range(2)], states=("y",)
    )
    physics = hs.equations("dx = -sqrt(x)", "dy = sqrt(x) - sqrt(y)")
    return hs.HybridSDE(states=("y", "x"), observed=("y",), physics=physics, **settings), data


def test_equations_that_are_not_finite_are_named_with_the_remedy():
    with pytest.raises(hs.InputError, match=r"sqrt\(x\) in dy is not finite at x = -.*never mea"):
        check_known(*tank())
    check_known(*tank(bounds={"x": (0, np.inf)}))
    check_known(*tank(positive=("x",)))


def test_equations_that_end_at_the_range_of_the_data_are_a_notice():
    rng = np.random.default_rng(0)
    data = hs.Trajectories.from_arrays(
        [np.arange(20.0)] * 2, [rng.uniform(0.1, 5, (20, 1)) for _ in range(2)], states=("y",)
    )
    model = hs.HybridSDE(states=("y",), physics=hs.equations("dy = -log(y)"))
    with pytest.warns(hs.InputNotice, match=r"Just outside the recorded range: log\(y\)"):
        check_known(model, data)


@pytest.mark.slow
def test_a_fit_that_never_was_finite_says_where(monkeypatch):
    monkeypatch.setattr("hybridsde.run.request.check_known", lambda *args: None)
    data = wiggles()
    physics = hs.known_drift(lambda x, a: {"x": a * jnp.sqrt(x - 100.0)}, a=1.0)
    model = hs.HybridSDE(states=("x", "y"), physics=physics, hidden=(4,), learned="network")
    training = hs.Training(epochs=2, batch_size=2)
    said = r"equation of 'x' is not a number at x = .*, at the start of '0', row 1\."
    with (
        pytest.warns(RuntimeWarning, match="diverged"),
        pytest.raises(
            hs.FitFailed,
            match=said,
        ),
    ):
        hs.fit(model, data, training=training)
    with pytest.raises(hs.FitFailed, match=said):
        hs.fit(replace(model, learned="library"), data)


@pytest.mark.slow
def test_standard_errors_are_those_of_a_known_case():
    """Increments of dx = a dt + G dW are N(a Δt, G² Δt): the error of a is G/√T."""
    rng = np.random.default_rng(1)
    count, rows, g = 4, 200, 0.5
    steps = 0.3 * 0.1 + g * np.sqrt(0.1) * rng.normal(size=(count, rows, 1))
    values = [np.concatenate([[[0.0]], np.cumsum(one, 0)]) for one in steps]
    data = hs.Trajectories.from_arrays([0.1 * np.arange(rows + 1)] * count, values, states=("x",))
    physics = hs.equations("dx = a", a=hs.Free(0.0))
    model = hs.HybridSDE(states=("x",), physics=physics, hidden=None, diffusion=g, noise=1e-3)
    run = hs.fit(model, data)
    found = (run.metadata.parameters or {})["a"]
    expected = g / np.sqrt(count * rows * 0.1)
    assert found["error"] == pytest.approx(expected, rel=4 / np.sqrt(2 * count * rows))
    assert abs((found["value"] or 0.0) - 0.3) < 5 * expected


def test_dynamics_without_noise():
    """With G = 0 an exponential is fitted as least squares would; no path KL is defined."""
    times = np.linspace(0, 2, 40)
    noisy = np.exp(-1.3 * times) + 0.02 * np.random.default_rng(0).normal(size=(3, 40))
    data = hs.Trajectories.from_arrays([times] * 3, list(noisy[..., None]), states=("x",))
    physics = hs.equations("dx = -k*x", k=hs.Free(1.0))
    model = hs.HybridSDE(states=("x",), physics=physics, exact=("x",), diffusion=0)
    run = hs.fit(model, data)
    found = (run.metadata.parameters or {})["k"]
    assert (found["low"] or 0.0) < 1.3 < (found["high"] or 0.0)
    assert run.metadata.diffusion is None
    with pytest.raises(ValueError, match="no path KL"):
        hs.fit(replace(model, exact=(), learned="network"), data, objective=hs.EmpiricalPACBayes())


@pytest.mark.parametrize(
    ("diffusion", "noiseless"),
    [([0.1, 0.0], True), (np.array([0.1, 0.0]), True), (0.0, True), (0.1, False),
     ([[0.1, 0.0], [0.0, 0.1]], False), (np.diag([0.1, 0.1]), False),
     (hs.Fixed(jnp.array([0.1, 0.0])), True), (hs.Positive.of([0.1, 0.1]), False)],
)  # fmt: skip
def test_what_moves_without_noise(diffusion, noiseless):
    assert hs.HybridSDE(states=("x", "y"), diffusion=diffusion).noiseless == noiseless


@pytest.mark.slow
def test_a_diffusion_that_is_given_as_a_parameter_can_be_fitted():
    model = hs.HybridSDE(
        states=("x", "y"), diffusion=hs.Positive.of([0.3, 0.3]), noise=0.05, learned="library",
        degree=1,
    )  # fmt: skip
    run = hs.fit(model, wiggles())
    assert set(run.metadata.diffusion or {}) == {"x", "y"}


def test_only_angles_have_sines():
    swing = hs.equations("dq = v", "dv = -sin(q)")
    given = {"states": ("q", "v", "T"), "learned": "library", "degree": 1}
    named = [text(one) for one in library_terms(hs.HybridSDE(**given, physics=swing))]
    assert [one for one in named if "(" in one] == ["sin(q)", "cos(q)"]
    asked = hs.HybridSDE(**given, angles=("v",), functions=("sin", "exp"))
    assert [text(one) for one in asked.calls] == ["exp(q)", "sin(v)", "exp(v)", "exp(T)"]
    with pytest.raises(ValueError, match="`angles` names 'w'"):
        hs.HybridSDE(**given, angles=("w",))
