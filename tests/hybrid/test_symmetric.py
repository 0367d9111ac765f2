"""Equations of curvatures that say nothing of some numbers."""

import numpy as np
import pytest

from hybridsde.hybrid import symmetric


def test_what_has_curvature_is_solved_and_the_rest_has_a_huge_variance():
    whole = np.array([[4.0, 1.0], [1.0, 3.0]])
    matrix = np.zeros((3, 3))
    matrix[:2, :2] = whole
    right = np.array([[1.0, 0.0], [2.0, 1.0], [0.0, 0.0]])
    found = symmetric.solve(matrix, right)
    np.testing.assert_allclose(found[:2], np.linalg.solve(whole, right[:2]), rtol=1e-6)
    np.testing.assert_array_equal(found[2], 0.0)
    np.testing.assert_allclose(symmetric.inverse(matrix)[:2, :2], np.linalg.inv(whole), rtol=1e-6)
    assert symmetric.inverse(matrix)[2, 2] == pytest.approx(1 / symmetric.ROUNDING)


def test_a_volume_is_that_of_the_same_matrix():
    """Solution and determinant go together in an evidence, so that neither is endless."""
    matrix = np.diag([4.0, 1.0, 0.0])
    wanted = np.log(4.0) + np.log(symmetric.ROUNDING)
    assert symmetric.log_determinant(matrix) == pytest.approx(wanted, rel=1e-6)
    assert symmetric.log_determinant(np.diag([4.0, 2.0])) == pytest.approx(np.log(8.0))


def test_units_do_not_hide_a_number():
    """A pseudo-inverse in raw units would take the first number for nothing."""
    matrix = np.diag([1e-20, 1.0, 0.0])
    np.testing.assert_allclose(np.diag(symmetric.inverse(matrix))[:2], [1e20, 1.0], rtol=1e-6)


def test_a_sound_matrix_has_its_inverse():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(4, 4))
    matrix = root @ root.T
    np.testing.assert_array_equal(symmetric.solve(matrix, root), np.linalg.solve(matrix, root))
    lower = symmetric.cholesky(matrix)
    np.testing.assert_allclose(lower @ lower.T, matrix, rtol=1e-9)
