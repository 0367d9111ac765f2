"""Linear equations of curvatures, also where rounding or want of data has spoiled them."""

import numpy as np

from hybridsde._types import Float

ROUNDING = 1e-9
"""What is added to a correlation matrix that rounding has spoiled."""


def solve(
    matrix: Float[np.ndarray, "n n"], right: Float[np.ndarray, "n *m"]
) -> Float[np.ndarray, "n *m"]:
    """M⁻¹ B of a symmetric M; of the nearest one that can be solved where M is singular."""
    try:
        return np.linalg.solve(matrix, right)
    except np.linalg.LinAlgError:
        root = cholesky(matrix)
        return np.linalg.solve(root.T, np.linalg.solve(root, right))


def inverse(matrix: Float[np.ndarray, "n n"]) -> Float[np.ndarray, "n n"]:
    """M⁻¹ likewise: a number that nothing is known of has a huge variance."""
    return solve(matrix, np.eye(len(matrix)))


def log_determinant(matrix: Float[np.ndarray, "n n"]) -> float:
    """Ln |M| likewise."""
    sign, value = np.linalg.slogdet(matrix)
    if sign > 0 and np.isfinite(value):
        return float(value)
    return 2 * float(np.log(np.diag(cholesky(matrix))).sum())


def cholesky(matrix: Float[np.ndarray, "n n"]) -> Float[np.ndarray, "n n"]:
    """The factor L of LLᵀ; of one that rounding has bent upwards, of the nearest other.

    Nearest in units of the diagonal, so that the units of numbers do not matter.
    """
    size = np.sqrt(np.abs(np.diag(matrix)))
    size = np.where(size > 0, size, 1.0)
    unit = matrix / np.outer(size, size)
    try:
        found = np.linalg.cholesky(unit)
    except np.linalg.LinAlgError:
        found = np.linalg.cholesky(without_negative(unit) + ROUNDING * np.eye(len(unit)))
    return size[:, None] * found


def without_negative(matrix: Float[np.ndarray, "n n"]) -> Float[np.ndarray, "n n"]:
    """The nearest matrix that bends nowhere upwards; rounding may leave another."""
    sizes, axes = np.linalg.eigh(0.5 * (matrix + matrix.T))
    return (axes * np.maximum(sizes, 0.0)) @ axes.T
