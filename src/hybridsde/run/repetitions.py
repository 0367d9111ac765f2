"""Many fits of one kind, and their scores: the loop behind comparisons, tables and curves."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hybridsde._types import Array, Float, Keys
from hybridsde.data import Batch
from hybridsde.fit import Fitted
from hybridsde.forecast import AbstractForecaster, evaluate_many

Adjust = Callable[[Any], AbstractForecaster]
"""What is made of fitted models, all repetitions at once."""


@dataclass(frozen=True)
class Repetitions:
    """Forecasters along a leading `seed` axis, how their training went, and how they do."""

    forecasters: AbstractForecaster
    scores: dict[str, Float[Array, "seed column"]]
    diverged: np.ndarray


def fit_and_score(
    fit_many: Callable[[], Fitted[Any]],
    test: Batch,
    *,
    draws: int,
    keys: Keys,
    adjust: Adjust | None = None,
    plausible: Float[Array, "obs 2"] | None = None,
) -> Repetitions:
    """Fit all repetitions, adjust what was found (calibration, ensembles), and score it.

    Arrays of `test` begin with a `seed` axis; `keys` are those of the scored forecasts. Draws
    outside the `plausible` range are counted and cut off there; see `evaluate`.
    """
    fitted = fit_many()
    found = fitted.model if adjust is None else adjust(fitted.model)
    return Repetitions(found, evaluate_many(found, test, draws, keys, plausible), fitted.diverged)
