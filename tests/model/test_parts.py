"""Gate, diffusion, observation, start and parameters."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers import assert_mean_close, assert_variance_close, one_series
from hybridsde import Bounded, Fixed, Free, Positive, trainable
from hybridsde.model import FirstObservation, GaussianObservation, Scale
from hybridsde.model.diffusion import constant_diffusion, function_diffusion
from hybridsde.model.drift import make_gate

STATES = ("x", "y")
T, H, F = jnp.zeros(()), jnp.array([1.0, 2.0]), jnp.array([0.3, -0.7])


def test_parameters_keep_their_constraints():
    assert jnp.isclose(Positive.of(jnp.array(0.3), floor=0.1).value, 0.3)
    assert jnp.isclose(Bounded.of(jnp.array(2.0), 1.0, 4.0).value, 2.0)
    assert Positive(jnp.array(-50.0), floor=0.1).value >= 0.1
    assert 1.0 <= Bounded(jnp.array(-50.0), 1.0, 4.0).value <= 4.0
    assert trainable(Free(1.0)).raw is True


@pytest.mark.parametrize(
    "make",
    [
        lambda: Positive.of(-1.0),
        lambda: Positive.of([1.0, 0.1], floor=0.1),
        lambda: Positive.of(np.nan),
        lambda: Bounded.of(5.0, 1.0, 4.0),
    ],
)
def test_parameters_must_start_inside(make):
    with pytest.raises(ValueError, match="`value` must lie"):
        make()


def test_trainable_leaves_out_what_is_fixed():
    tree = {"a": Fixed({"deep": jnp.ones(2)}), "b": Free(jnp.ones(2)), "c": 3, "d": jnp.ones(1)}
    mask = trainable(tree)
    assert mask["a"].frozen == {"deep": False}
    assert mask["b"].raw is True
    assert mask["c"] is False
    assert mask["d"] is True
    assert not jax.grad(lambda x: Fixed(x).value.sum())(jnp.ones(2)).any()


def test_scalar_diagonal_matrix_and_function_agree_where_they_coincide():
    kinds = [
        constant_diffusion(0.5, STATES),
        constant_diffusion([0.5, 0.5], STATES),
        constant_diffusion(0.5 * np.eye(2), STATES),
        function_diffusion(lambda h, t: 0.5, STATES),
        function_diffusion(lambda h, t: jnp.full(2, 0.5), STATES),
        function_diffusion(lambda h, t: 0.5 * jnp.eye(2), STATES),
    ]
    for g in kinds:
        np.testing.assert_allclose(g.spread(T, H, F), 0.5 * F, rtol=1e-6)
        np.testing.assert_allclose(g.whiten(T, H, F), F / 0.5, rtol=1e-6)


def test_matrix_has_the_energy_and_covariance_of_its_j(getkey):
    g = np.array([[0.5, 0.4], [-0.3, 0.8]])
    j = g @ g.T
    energy = np.asarray(F) @ np.linalg.solve(j, np.asarray(F))
    for kind in (
        constant_diffusion(g, STATES),
        function_diffusion(lambda h, t: jnp.asarray(g), STATES),
    ):
        np.testing.assert_allclose(jnp.sum(kind.whiten(T, H, F) ** 2), energy, rtol=1e-5)
        dw = jax.random.normal(getkey(), (20_000, 2))
        noise = jax.vmap(lambda one, g=kind: g.spread(T, H, one))(dw)
        assert_mean_close(noise[:, 0] * noise[:, 1], j[0, 1])
        assert_variance_close(noise, np.diag(j))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (-1.0, "`diffusion` must be zero or more, but is -1"),
        ([1.0, -1.0], "but is -1 for state 'y'"),
        ([1.0, 1.0, 1.0], r"2 numbers or a 2×2 matrix for the states x, y, but has shape \(3,\)"),
        (np.nan, "must be finite"),
        ([[1.0, 1.0], [1.0, 1.0]], "singular matrix"),
    ],
)
def test_bad_diffusion(value, message):
    with pytest.raises(ValueError, match=message):
        constant_diffusion(np.asarray(value), STATES)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda h, t: jnp.ones(3), r"returns shape \(3,\)"),
        (lambda h: 1.0, "cannot be compiled"),
        (lambda h, t: float(h[0]), "cannot be compiled"),
    ],
)
def test_bad_diffusion_function(function, message):
    with pytest.raises(ValueError, match=message):
        function_diffusion(function, STATES)


def test_gate_defaults_to_one_where_known():
    np.testing.assert_array_equal(make_gate(None, STATES, ("y",)).value, [0.0, 1.0])
    np.testing.assert_array_equal(make_gate({"y": 0.25}, STATES, ("y",)).value, [0.0, 0.25])
    np.testing.assert_array_equal(make_gate([0, 0.25], STATES, ("y",)).value, [0.0, 0.25])
    quarter = np.asarray(0.25, np.float32)
    np.testing.assert_array_equal(make_gate(quarter, STATES, ("y",)).value, [0.0, 0.25])
    learned = make_gate("learn", STATES, ("y",))
    np.testing.assert_allclose(learned.value, [0.0, 0.5])
    assert trainable(learned).strength.raw is True


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"y": 1.5}, r"must lie in \[0, 1\], but is 1.5 for state 'y'"),
        (-0.1, r"must lie in \[0, 1\], but is -0.1"),
        ({"x": 1.0}, "gives no equation for it, only for y"),
        ({"w": 1.0}, "names 'w', but the states are x, y"),
        ("Learn", "numbers or 'learn'"),
        ([1.0], "must hold 2 numbers"),
        (3.0, r"must lie in \[0, 1\], but is 3"),
    ],
)
def test_bad_gate(given, message):
    with pytest.raises(ValueError, match=message):
        make_gate(given, STATES, ("y",))


def observation(matrix, sd=0.5, orthonormal=False):
    names = tuple(f"y{i}" for i in range(len(matrix)))
    return GaussianObservation(
        matrix=Fixed(jnp.asarray(matrix)),
        sd=Fixed(jnp.array(sd)),
        names=names,
        orthonormal=orthonormal,
    )


def test_log_prob_against_scipy_with_a_missing_value():
    from scipy import stats

    matrix = np.array([[1.0, 0.0], [0.5, -2.0]])
    y = np.array([0.3, 0.4])
    model = observation(matrix)
    oracle = stats.norm(matrix @ np.asarray(H), 0.5).logpdf(y)
    full = model.log_prob(jnp.asarray(y), jnp.array([True, True]), H)
    half = model.log_prob(jnp.array([0.3, jnp.nan]), jnp.array([True, False]), H)
    np.testing.assert_allclose(full, oracle.sum(), rtol=1e-5)
    np.testing.assert_allclose(half, oracle[0], rtol=1e-5)


def test_observation_samples_have_its_moments(getkey):
    model = observation([[1.0, 0.0], [0.5, -2.0]])
    draws = model.sample(jnp.broadcast_to(H, (20_000, 2)), key=getkey())
    assert_mean_close(draws, [1.0, -3.5])
    assert_variance_close(draws, 0.25)


def test_start_explains_what_was_seen_and_defaults_elsewhere():
    scale = Scale.identity(2, 0)
    start = FirstObservation(Free(jnp.array([7.0, 8.0])), Fixed(jnp.zeros(())))
    direct = observation(np.eye(2), orthonormal=True)
    values = jnp.array([[3.0, 4.0]])

    def first(model, seen):
        return start(one_series(values, [seen]), model, scale, jnp.zeros(2))

    np.testing.assert_allclose(first(direct, [True, True]), [3.0, 4.0])
    np.testing.assert_allclose(first(direct, [False, True]), [7.0, 4.0])
    mixed = observation([[1.0, 1.0], [1.0, -1.0]])
    np.testing.assert_allclose(first(mixed, [True, True]), [3.5, -0.5], rtol=1e-5)
    h0 = first(mixed, [True, False])
    np.testing.assert_allclose(h0.sum(), 3.0, rtol=1e-5)
    np.testing.assert_allclose(h0[0] - h0[1], 7.0 - 8.0, atol=1e-5)


def test_start_spread_is_in_units_of_the_states():
    scale = Scale.identity(2, 0)
    start = FirstObservation(Free(jnp.zeros(2)), Fixed(jnp.array(0.5)))
    direct = observation(np.eye(2), orthonormal=True)
    h0 = start(one_series([[3.0, 4.0]]), direct, scale, jnp.array([1.0, -1.0]))
    np.testing.assert_allclose(h0, [3.5, 3.5])
