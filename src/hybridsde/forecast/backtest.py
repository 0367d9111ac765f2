"""Rolling origins: forecasts along a record, each given all rows before it, scored by lead time."""

from dataclasses import replace

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pandas as pd

from hybridsde._errors import InputError
from hybridsde._types import Array, Float, PRNGKeyArray
from hybridsde.data import Batch, Trajectories
from hybridsde.data.checks import check_whole
from hybridsde.forecast.evaluation import evaluate_by
from hybridsde.forecast.forecaster import AbstractForecaster
from hybridsde.forecast.future import past_of
from hybridsde.forecast.scores import SCORES
from hybridsde.forecast.spec import ModelSpec

LEAST_GIVEN = 10
"""The first origin has so many rows before it, or a fifth of a shorter record."""
BY_LEAD = (0,)
"""Scores are averaged over origins, not over the rows after them."""


def origins_of(
    data: Trajectories, horizon: int, count: int | None, context: int
) -> list[tuple[int, int]]:
    """Series and row of every origin: as many as asked for along each record, evenly spread.

    By default one every `horizon` rows. A series that is too short has none.
    """
    found = []
    for series, rows in enumerate(map(int, data.lengths)):
        first = max(context - 1, min(LEAST_GIVEN - 1, rows // 5))
        last = rows - 1 - horizon
        if last < first:
            continue
        most = last - first + 1
        wanted = -(-most // horizon) if count is None else min(count, most)
        chosen = np.unique(np.linspace(first, last, wanted).round().astype(int))
        found += [(series, int(row)) for row in chosen]
    if not found:
        raise InputError(
            f"No recording has {horizon} rows to forecast after {context} or more that are given. "
            "Ask for a shorter horizon."
        )
    return found


def backtest(
    spec: ModelSpec,
    forecaster: AbstractForecaster,
    data: Trajectories,
    *,
    horizon: int,
    origins: int | None = None,
    draws: int,
    plausible: Float[Array, "obs 2"] | None = None,
    key: PRNGKeyArray,
) -> pd.DataFrame:
    """Scores of forecasts from rolling origins, one row per lead and observation, and overall.

    `lead` counts rows after the origin; 0 stands for all of them together.
    """
    check_whole(horizon, "horizon")
    batch = rolling(spec, data, horizon, origins)
    by_lead, whole = _both(forecaster, batch, draws, plausible, key)
    names = [*spec.observations, "overall"]
    frames = [
        pd.DataFrame({name: np.asarray(table[name]) for name in SCORES}).assign(
            lead=lead, obs=names
        )
        for lead, table in enumerate([whole, *_rows(by_lead, horizon)])
    ]
    found = pd.concat(frames, ignore_index=True)
    return found[["lead", "obs", *SCORES]].assign(origins=batch.count)


def rolling(spec: ModelSpec, data: Trajectories, horizon: int, origins: int | None = None) -> Batch:
    """One series for each origin: the rows to forecast, with everything before them as the past."""
    context = spec.context
    starts = origins_of(data, horizon, origins, context)
    encoded = spec.encode(data)
    window = encoded.cut([(s, row - context + 1, row + 1 + horizon) for s, row in starts])
    past = encoded.cut([(s, 0, row + 1) for s, row in starts])
    batch = Batch.of(window, spec.clock)
    return replace(batch, past=past_of(past, spec.clock))


@eqx.filter_jit
def _both(
    forecaster: AbstractForecaster,
    batch: Batch,
    draws: int,
    plausible: Float[Array, "obs 2"] | None,
    key: PRNGKeyArray,
) -> tuple[dict[str, Array], ...]:
    return evaluate_by(forecaster, batch, draws, (BY_LEAD, (0, 1)), plausible=plausible, key=key)


def _rows(table: dict[str, Array], horizon: int) -> list[dict[str, Array]]:
    """One table per lead."""
    return [{name: jnp.asarray(table[name])[lead] for name in SCORES} for lead in range(horizon)]
