"""Equations of curvatures that say nothing of some numbers."""

import numpy as np

from hybridsde.hybrid import symmetric


def test_what_has_curvature_is_solved_and_the_rest_is_left_alone():
    whole = np.array([[4.0, 1.0], [1.0, 3.0]])
    matrix = np.zeros((3, 3))
    matrix[:2, :2] = whole
    right = np.array([[1.0, 0.0], [2.0, 1.0], [0.0, 0.0]])
    np.testing.assert_allclose(
        symmetric.solve(matrix, right)[:2], np.linalg.solve(whole, right[:2])
    )
    np.testing.assert_array_equal(symmetric.solve(matrix, right)[2], 0.0)
    np.testing.assert_allclose(symmetric.inverse(matrix)[:2, :2], np.linalg.inv(whole))


def test_units_do_not_hide_a_number():
    """A pseudo-inverse in raw units would take the first number for nothing."""
    matrix = np.diag([1e-20, 1.0, 0.0])
    np.testing.assert_allclose(np.diag(symmetric.inverse(matrix)), [1e20, 1.0, 0.0])


def test_a_sound_matrix_has_its_inverse():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(4, 4))
    matrix = root @ root.T
    np.testing.assert_array_equal(symmetric.inverse(matrix), np.linalg.inv(matrix))
    np.testing.assert_array_equal(symmetric.solve(matrix, root), np.linalg.solve(matrix, root))
