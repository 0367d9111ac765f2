"""Our own linear algebra against numpy's, and its derivatives against closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from hybridsde._linear import (
    cholesky,
    inverse,
    pseudo_inverse,
    solve_factored,
    solve_lower,
    solve_lower_transposed,
)

SIZES = (1, 2, 5, 13)


def matrices(size, count=7, seed=0):
    return np.random.default_rng(seed).normal(size=(count, size, size)).astype(np.float32)


def close(found, wanted, tolerance=2e-4):
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance * np.abs(wanted).max())


@pytest.mark.parametrize("size", SIZES)
def test_a_factor_and_what_it_solves(size):
    a = matrices(size)
    covariance = a @ a.swapaxes(1, 2) + 0.1 * np.eye(size, dtype=np.float32)
    factor, right = np.linalg.cholesky(covariance.astype(float)), matrices(size, seed=1)
    close(jax.vmap(cholesky)(covariance), factor)
    single = factor.astype(np.float32)
    close(jax.vmap(solve_lower)(single, right), np.linalg.solve(factor, right))
    upper = factor.swapaxes(1, 2)
    close(jax.vmap(solve_lower_transposed)(single, right), np.linalg.solve(upper, right))
    close(jax.vmap(solve_factored)(single, right), np.linalg.solve(factor @ upper, right), 1e-2)
    vector = right[:, :, 0]
    close(jax.vmap(solve_lower)(single, vector), np.linalg.solve(factor, right)[:, :, 0])


@pytest.mark.parametrize("size", SIZES)
def test_an_inverse_needs_pivots(size):
    a = matrices(size)
    a[:, 0, 0] = 0.0 if size > 1 else 2.0
    close(jax.vmap(inverse)(a), np.linalg.inv(a.astype(float)), 1e-2)


def test_what_has_no_factor_is_no_number():
    assert jnp.isnan(cholesky(-jnp.eye(3))).any()
    assert not jnp.isfinite(inverse(jnp.zeros((2, 2)))).any()


@pytest.mark.parametrize("function", [cholesky, inverse])
def test_slopes_against_differences_both_ways(function):
    with jax.enable_x64(True):
        a = matrices(4)[0].astype(float)
        a = jnp.asarray(a @ a.T + np.eye(4))
        check_grads(lambda a: function(jnp.asarray(a)), (a,), 1, modes=("fwd", "rev"), rtol=1e-6)


def test_a_pseudo_inverse_of_rows_that_are_missing_or_repeat():
    rng = np.random.default_rng(0)
    for rows, columns in [(1, 3), (3, 3), (4, 2), (2, 5)]:
        a = rng.normal(size=(rows, columns)).astype(np.float32)
        a[0] = 0.0 if rows == 3 else a[0]
        a[-1] = 2 * a[0] if rows == 4 else a[-1]
        close(pseudo_inverse(jnp.asarray(a)), np.linalg.pinv(a.astype(float), rcond=1e-6), 1e-4)
