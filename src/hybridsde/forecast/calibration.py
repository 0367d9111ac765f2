"""Whether stated probabilities come true: coverage at every level, and PIT values."""

import numpy as np
from jaxtyping import Bool, Float

LEVELS = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95])


def pit(
    draws: Float[np.ndarray, "sample *shape"], values: Float[np.ndarray, "*shape"]
) -> Float[np.ndarray, "*shape"]:
    """Probability integral transform: the share of draws below what happened.

    Uniform on (0, 1) where the forecast is calibrated. Ranks are moved to the middle of their
    cell, (r + ½)/(S + 1), so that neither 0 nor 1 occurs.
    """
    return ((draws < values).sum(0) + 0.5) / (len(draws) + 1)


def coverage(
    pits: Float[np.ndarray, "*shape"], observed: Bool[np.ndarray, "*shape"]
) -> Float[np.ndarray, " level"]:
    """The share of observed values inside the central interval of each of `LEVELS`."""
    seen = pits[observed]
    return np.array([(np.abs(seen - 0.5) <= level / 2).mean() for level in LEVELS])
