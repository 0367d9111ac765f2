"""A drift that is linear in its coefficients, and its distributions, against closed forms."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from helpers import assert_mean_close
from hybridsde._parameters import Fixed
from hybridsde.hybrid.discovered import library_coefficients
from hybridsde.model.library import JITTER, Basis, BayesianLibrary, Bumps, polynomials, powers
from hybridsde.model.scaling import Standardiser
from hybridsde.physics.expression import text, value
from hybridsde.physics.grammar import parse_formula

FAR = (jnp.full(2, -100.0), jnp.full(2, 100.0))


def basis_of(*terms, logarithms=(False, False), limits=FAR, rows=None):
    rows = jnp.array([[1.0, 2.0], [3.0, 4.0]]) if rows is None else rows
    scale = Standardiser(jnp.array([1.0, 0.0]), jnp.array([2.0, 1.0]))
    read = tuple(parse_formula(one) for one in terms)
    return Basis.of(read, ("x", "y"), logarithms, scale, limits, rows, jnp.ones(len(rows)))


def test_products_come_in_the_order_of_their_degree():
    found = [text(one) for one in polynomials(("x", "y"), 2)]
    assert found == ["1", "x", "y", "x^2", "x*y", "y^2"]
    assert len(polynomials(("x", "y", "z"), 3)) == 20


def test_terms_see_raw_features_and_have_a_mean_square_of_one():
    """Standardised x is (raw − 1)/2, so rows (1, 2), (3, 4) are raw (3, 2), (7, 4)."""
    basis = basis_of("x*y", "x/(1 + y)")
    size = np.sqrt([np.mean([6.0**2, 28.0**2]), np.mean([1.0, (7 / 5) ** 2])])
    np.testing.assert_allclose(basis.raw_size(), size, rtol=1e-6)
    np.testing.assert_allclose(basis(jnp.array([1.0, 2.0])), [6.0, 1.0] / size, rtol=1e-6)


def test_terms_are_computed_together_as_they_are_one_by_one():
    terms = (
        "sin(y)",
        "x*y^2",
        "1",
        "x/(1 + x)",
        "exp(x)",
        "y^-2",
        "x^9",
        "sin(x)",
        "x^2.5",
        "pi*x",
    )
    basis = basis_of(*terms)
    for raw in ([0.7, 2.0], [1.3, 3.1]):
        found = basis(basis.scale(jnp.array(raw))) * basis.raw_size()
        names = dict(zip("xy", map(jnp.asarray, raw), strict=True))
        expected = [float(value(parse_formula(one), names)) for one in terms]
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_logarithms_are_taken_back_and_features_stay_inside_their_limits():
    basis = basis_of("x", "y", logarithms=(False, True), limits=(jnp.zeros(2), jnp.ones(2)))
    inside, outside = (basis(jnp.array(one)) * basis.raw_size() for one in ([1.0, 1.0], [9.0, 9.0]))
    np.testing.assert_allclose(inside, [3.0, np.e], rtol=1e-6)
    np.testing.assert_allclose(outside, inside, rtol=1e-6)


def test_random_sums_of_bumps_have_the_covariance_of_the_process():
    rows = jnp.asarray(np.random.default_rng(0).normal(size=(60, 2)))
    bumps = Bumps.of(rows, 5, 1.3)
    assert len(np.unique(np.asarray(bumps.points), axis=0)) == 5

    def kernel(a, b):
        apart = np.asarray(a)[:, None] - np.asarray(b)
        return np.exp(-0.5 * np.sum(apart**2, -1) / 1.3**2)

    places = np.asarray(rows[:7])
    across = kernel(places, bumps.points)
    between = kernel(bumps.points, bumps.points) + JITTER * np.eye(5)
    expected = across @ np.linalg.solve(between, across.T)
    found = np.asarray(jax.vmap(bumps)(rows[:7]))
    np.testing.assert_allclose(found @ found.T, expected, atol=2e-3)


def library(shares=(1.0, 0.0)):
    """Two terms, two states; the first choice holds three coefficients, the second one."""
    rng = np.random.default_rng(1)
    basis = basis_of("x", "y")
    chosen = np.array([[[True, True], [False, True]], [[False, False], [True, False]]])
    means = rng.normal(size=(2, 2, 2))
    factors = np.triu(rng.normal(size=(2, 4, 4))) + 2 * np.eye(4)
    return BayesianLibrary(
        jnp.asarray(means, jnp.float32),
        jnp.asarray(factors, jnp.float32),
        Fixed(jnp.asarray(chosen)),
        Fixed(jnp.asarray(shares)),
        Fixed(basis),
        Fixed(jnp.array([[0.5, 1.0], [2.0, 1.5]])),
        Fixed(jnp.array([[0.2, 0.3], [0.4, 0.1]])),
        Fixed(jnp.zeros((2, 2))),
        Fixed(jnp.zeros((2, 2), bool)),
    )


def test_terms_are_as_likely_as_all_choices_say_and_not_only_those_that_are_kept():
    part = BayesianLibrary.nothing(basis_of("x", "y"), 1, 2)
    choices = [
        (np.array([0]), np.array([2.0]), np.eye(1)),
        (np.array([1]), np.array([1.0]), np.eye(1)),
    ]
    shares = np.array([0.5, 0.5])
    plain = library_coefficients(part.with_choices(choices, shares))[3]
    np.testing.assert_allclose(plain[:, 0], [0.5, 0.5])
    known = part.with_choices(choices, shares, np.array([0.56, 0.41]))
    np.testing.assert_allclose(library_coefficients(known)[3][:, 0], [0.56, 0.41], rtol=1e-6)
    assert np.asarray(known.written.value)[:, 0].tolist() == [True, False]
    one = part.with_choices(choices[:1], np.ones(1), np.array([0.9, 0.1]))
    np.testing.assert_allclose(library_coefficients(one)[3][:, 0], [0.9, 0.0], rtol=1e-6)


def test_coefficients_of_a_written_term_are_those_of_the_written_equation():
    """Beside y, x has another coefficient: it is not averaged in where y is not written."""
    part = BayesianLibrary.nothing(basis_of("x", "y"), 1, 2)
    choices = [
        (np.array([0]), np.array([1.0]), 0.1 * np.eye(1)),
        (np.array([0, 1]), np.array([2.0, -1.0]), 0.3 * np.eye(2)),
    ]
    found = part.with_choices(choices, np.array([0.55, 0.45]))
    _, mean, error, probability = library_coefficients(found)
    np.testing.assert_allclose(mean[:, 0], [1.0, -1.0], rtol=1e-6)
    np.testing.assert_allclose(error[:, 0], [0.1, 0.3], rtol=1e-6)
    np.testing.assert_allclose(probability[:, 0], [1.0, 0.45], rtol=1e-6)


def test_the_kl_of_one_choice_is_that_of_its_gaussian_and_its_prior_probability():
    found = library()
    inside = np.flatnonzero(np.asarray(found.chosen.value[0]).reshape(-1))
    root = np.asarray(found.factors[0], float)[np.ix_(inside, inside)]
    cov, mean = root @ root.T, np.asarray(found.means[0], float).reshape(-1)[inside]
    prior = np.diag(np.asarray(found.slab.value, float).reshape(-1)[inside] ** 2)
    inverse = np.linalg.inv(prior)
    gaussian = 0.5 * (
        np.trace(inverse @ cov)
        + mean @ inverse @ mean
        - len(mean)
        + np.linalg.slogdet(prior)[1]
        - np.linalg.slogdet(cov)[1]
    )
    chance = np.log(0.2) + np.log(0.3) + np.log(1 - 0.4) + np.log(0.1)
    np.testing.assert_allclose(found.kl_to_prior(), gaussian - chance, rtol=1e-4)


def test_draws_have_the_mean_and_covariance_of_the_mixture():
    found = library((0.7, 0.3))
    draws = jax.vmap(lambda key: found.sample(key=key).coefficients)(jr.split(jr.key(0), 20_000))
    flat = np.asarray(draws, float).reshape(len(draws), -1)
    assert_mean_close(flat, np.asarray(found.mean().coefficients).reshape(-1))
    centred = flat - flat.mean(0)
    products = centred[:, :, None] * centred[:, None]
    varies = np.abs(np.asarray(found.covariance())) > 1e-9
    assert_mean_close(products[:, varies], np.asarray(found.covariance())[varies])


def test_coefficients_outside_every_choice_are_never_moved():
    found = library((0.0, 1.0))
    drawn = np.asarray(found.sample(key=jr.key(3)).coefficients)
    assert drawn[1, 0] != 0
    assert (drawn.reshape(-1)[[0, 1, 3]] == 0).all()


def test_coefficients_cannot_be_redrawn_at_every_step():
    with pytest.raises(ValueError, match="held along a path"):
        library().local()


@pytest.mark.parametrize("unit", [1e-12, 1e12])
def test_products_of_large_and_small_numbers_stay_in_single_precision(unit):
    """The same basis for numbers in other units; root mean squares in raw units are doubles."""
    rows = jnp.array([[1.0, 2.0], [3.0, 4.0]])
    terms = polynomials(("x", "y"), 3)
    far = (jnp.full(2, -9.0), jnp.full(2, 9.0))

    def of(unit):
        scale = Standardiser(unit * jnp.array([1.0, 0.5]), unit * jnp.array([2.0, 1.0]))
        return Basis.of(terms, ("x", "y"), (False, False), scale, far, rows, jnp.ones(2))

    plain, other = of(1.0), of(unit)
    np.testing.assert_allclose(other(rows[0]), plain(rows[0]), rtol=1e-5)
    degrees = [sum((powers(term) or {}).values()) for term in terms]
    np.testing.assert_allclose(
        other.raw_size(), plain.raw_size() * unit ** np.array(degrees, float), rtol=1e-5
    )
