"""Choices of terms on a parabola that rounding has spoiled."""

import numpy as np

from hybridsde.hybrid.selection import Surrogate


def surrogate(curvature):
    count = len(curvature)
    linear = curvature @ np.ones(count)
    return Surrogate(linear, curvature, (linear, curvature), np.full(count, 1e-3), np.zeros(count))


def test_the_posterior_is_that_of_linear_regression():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 3))
    mean, root = surrogate(x.T @ x).posterior((0, 2))
    bend = x[:, [0, 2]].T @ x[:, [0, 2]] + 1e-3 * np.eye(2)
    np.testing.assert_allclose(mean, np.linalg.solve(bend, (x.T @ x @ np.ones(3))[[0, 2]]))
    np.testing.assert_allclose(root @ root.T, np.linalg.inv(bend))


def test_a_curvature_that_rounding_bends_upwards_is_no_end():
    """Two columns that are the same but for their size, and a matrix that is not quite positive."""
    size = np.array([1e9, 1.0, 1e-6])
    unit = np.ones((3, 3)) - 1e-7 * np.array([[0, 1, 0], [1, 0, -1], [0, -1, 0]])
    unit[0, 2] = unit[2, 0] = 1 + 1e-6
    curvature = unit * np.outer(size, size)
    assert np.linalg.eigvalsh(curvature / np.outer(size, size))[0] < 0
    found = surrogate(curvature)
    found = Surrogate(found.linear, curvature, found.held, np.full(3, 1e-30), np.zeros(3))
    mean, root = found.posterior((0, 1, 2))
    assert np.isfinite(mean).all()
    assert np.isfinite(root).all()
