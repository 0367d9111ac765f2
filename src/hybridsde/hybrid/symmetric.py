"""Linear equations of curvatures, also where some directions have none."""

import numpy as np

from hybridsde._types import Float


def solve(
    matrix: Float[np.ndarray, "n n"], right: Float[np.ndarray, "n *m"]
) -> Float[np.ndarray, "n *m"]:
    """M⁻¹ B of a symmetric M; where M is singular, M⁺ B, which leaves such directions alone.

    A number that neither data nor a prior say anything of has no curvature.
    """
    try:
        return np.linalg.solve(matrix, right)
    except np.linalg.LinAlgError:
        return inverse(matrix) @ right


def inverse(matrix: Float[np.ndarray, "n n"]) -> Float[np.ndarray, "n n"]:
    """M⁻¹ of a symmetric M, or M⁺ where it is singular; numbers may have any units."""
    try:
        return np.linalg.inv(matrix)
    except np.linalg.LinAlgError:
        size = np.sqrt(np.abs(np.diag(matrix)))
        size = np.where(size > 0, size, 1.0)
        return np.linalg.pinv(matrix / np.outer(size, size), hermitian=True) / np.outer(size, size)
