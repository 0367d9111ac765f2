"""How much each setting of a sweep matters for the score."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from hybridsde.engine.space import AbstractAxis, Choice

BINS = 4
"""Of a range, at most; each with equally many trials."""
IN_A_BIN = 3
"""Trials, at least."""


def importance(axis: AbstractAxis, values: Sequence[Any], scores: np.ndarray) -> float:
    """The share of the variance of the ranks that is explained by one setting alone.

    ε² = 1 − (1 − η²) (n − 1)/(n − k),   η² = Σ_b n_b (r̄_b − r̄)² / Σ (r − r̄)²

    over the k bins of its values (Kelley 1935): η² less what bins explain by chance. Ranks, so
    that one trial which failed badly does not decide. What two settings do only together is not
    seen. NaN where there are too few trials.
    """
    bins = _bins(axis, values)
    ranks = np.argsort(np.argsort(scores, kind="stable"), kind="stable").astype(float)
    count, used = len(ranks), len(set(bins))
    if used < 2 or count <= used + 1:
        return float("nan")
    means = np.array([ranks[bins == one].mean() for one in bins])
    total = ((ranks - ranks.mean()) ** 2).sum()
    explained = ((means - ranks.mean()) ** 2).sum() / total
    return float(max(0.0, 1 - (1 - explained) * (count - 1) / (count - used)))


def _bins(axis: AbstractAxis, values: Sequence[Any]) -> np.ndarray:
    """The bin of every trial: its value, or a part of the range with equally many trials."""
    if isinstance(axis, Choice):
        words = [str(value) for value in values]
        return np.array([words.index(word) for word in words])
    numbers = np.asarray(values, float)
    parts = max(1, min(BINS, len(numbers) // IN_A_BIN))
    inner = np.quantile(numbers, np.arange(1, parts) / parts)
    return np.searchsorted(inner, numbers, "right")
