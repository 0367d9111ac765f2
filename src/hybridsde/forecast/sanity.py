"""Does a result make sense? Said where it does not, with a likely cause."""

import warnings
from typing import Any

import numpy as np
import pandas as pd

from hybridsde._errors import InputNotice
from hybridsde.data import Trajectories
from hybridsde.forecast.plausible import say_implausible

FEWEST = 20
"""Values that scores must be about before they are complained of."""
MANY = 500
"""Values that must all lie inside before intervals are called too wide."""


def say_nonsense(scores: pd.DataFrame, implausible: float, data: Trajectories, given: int) -> None:
    """Notices about scores that are none, worse than the mean of the data, or without coverage.

    `given` rows of each trajectory of `data` were known to the forecasts.
    """
    say_implausible(implausible)
    for column, name in enumerate(data.states):
        row: Any = scores.loc[name]
        seen = data.observed[:, given:, column]
        values = data.values[:, given:, column][seen]
        if not values.size:
            _say(f"These data hold no value of {name!r} after the given rows: nothing to score.")
            continue
        if not np.isfinite(row["rmse"]):
            _say(f"The forecasts of {name!r} are not numbers: the fitted drift is not finite.")
            continue
        if values.size < FEWEST:
            continue
        if values.std() > 0 and row["rmse"] > 1.5 * values.std():
            _say(
                f"The forecasts of {name!r} are far worse than the mean of these data (RMSE "
                f"{row['rmse']:.3g}, their spread {values.std():.3g}). Units, a wrong equation or "
                "too few recordings are likely causes; `hybridsde compare` shows alternatives."
            )
        few = row["coverage90"] < HOLDS[0]
        if few or (row["coverage90"] >= HOLDS[1] and values.size >= MANY):
            _say(
                f"The 90 % intervals of {name!r} hold {row['coverage90']:.0%}: they are far too "
                f"{'narrow' if few else 'wide'}. Validation recordings let `fit` correct that."
            )


HOLDS = (0.5, 0.9999)
"""A coverage of nominally 90 % outside this range is complained of."""


def _say(text: str) -> None:
    warnings.warn(text, InputNotice, stacklevel=4)
