"""Does a result make sense? Said where it does not, with a likely cause."""

from typing import Any

import numpy as np
import pandas as pd

from hybridsde._errors import notice
from hybridsde.data import Trajectories
from hybridsde.forecast.plausible import say_implausible

FEWEST = 20
"""Values that scores must be about before they are complained of."""
MANY = 500
"""Values that must all lie inside before intervals are called too wide."""


def say_nonsense(
    scores: pd.DataFrame,
    implausible: float,
    data: Trajectories,
    given: int,
    *,
    calibrated: bool = False,
) -> None:
    """Notices about scores that are none, worse than the mean of the data, or without coverage.

    `given` rows of each trajectory of `data` were known to the forecasts. `calibrated`: validation
    recordings have had their say about the spreads already.
    """
    advice = AFTER_CALIBRATION if calibrated else BEFORE_CALIBRATION
    say_implausible(implausible)
    for column, name in enumerate(data.states):
        row: Any = scores.loc[name]
        seen = data.observed[:, given:, column]
        values = data.values[:, given:, column][seen]
        if not values.size:
            notice(f"These data hold no value of {name!r} after the given rows: nothing to score.")
            continue
        if not np.isfinite(row["rmse"]):
            notice(f"The forecasts of {name!r} are not numbers: the fitted drift is not finite.")
            continue
        if values.size < FEWEST:
            continue
        if values.std() > 0 and row["rmse"] > 1.5 * values.std():
            notice(
                f"The forecasts of {name!r} are far worse than the mean of these data (RMSE "
                f"{row['rmse']:.3g}, their spread {values.std():.3g}). Units, a wrong equation or "
                "too few recordings are likely causes; `hybridsde compare` shows alternatives."
            )
        few = row["coverage90"] < HOLDS[0]
        if few or (row["coverage90"] >= HOLDS[1] and values.size >= MANY):
            notice(
                f"The 90 % intervals of {name!r} hold {row['coverage90']:.0%}: they are far too "
                f"{'narrow' if few else 'wide'}. {advice}"
            )


BEFORE_CALIBRATION = "Validation recordings let `fit` correct that."
AFTER_CALIBRATION = (
    "The spreads were calibrated on validation recordings, so these differ from those, or a term "
    "is missing: see what is left of the drift in the report."
)
HOLDS = (0.5, 0.9999)
"""A coverage of nominally 90 % outside this range is complained of."""
