"""What the page can be asked: forecasts from several rows, what-if forecasts, the drift along time.

Everything is computed here and written into the page, which needs no network and no server.
"""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from hybridsde._errors import InputError, InputNotice
from hybridsde._parameters import AbstractParameter, Bounded, Fixed, Free, Positive
from hybridsde.data import Trajectories
from hybridsde.forecast import AbstractStateEstimator, Forecast
from hybridsde.forecast.backtest import origins_of
from hybridsde.hybrid import SDEForecaster
from hybridsde.hybrid.parameters import parameters_of
from hybridsde.report.drift import Hybrid, rates_along
from hybridsde.run import Run

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
DRAWS = 200
MOST_NUMBERS = 60_000
"""Of forecasts in one page: fewer trajectories are shown where they are long."""
MOST_SERIES, ORIGINS = 12, 8
WHAT_IF_DRAWS = 120
FACTORS = (0.0, 0.5, 1.0, 1.5, 2.0)
"""Of an input."""
SHARES = (0.5, 0.75, 1.0, 1.25, 1.5)
"""Of a parameter."""
MOST_ROWS = 1500
"""Of a recording that are drawn."""
LEAST_ROWS = 50
"""Of a what-if forecast, however many sliders there are."""
DIGITS_OF_TIME = 8
SMOOTHED = 60
"""Sampled paths behind the drift along time."""


def live_content(
    run: Run,
    hybrid: Hybrid | None,
    held_out: Trajectories,
    whole: Trajectories,
    first: Forecast,
    horizon: int | None,
    clock: str,
) -> dict[str, Any]:
    """All that the page draws by itself, of the first `MOST_ROWS` rows of every recording.

    - `held_out`: recordings as they are scored, in pieces where there is a `horizon`; `first` are
      their forecasts from the first rows.
    - `whole`: the same recordings uncut.
    """
    names, given = list(run.spec.observations), run.spec.context
    cut_short = bool((whole.lengths > MOST_ROWS).any())
    held_out, whole = _shortened(held_out), _shortened(whole)
    each = held_out.times.shape[1] * len(names) * (len(QUANTILES) + 1)
    count = int(np.clip(MOST_NUMBERS // max(1, each), 1, min(MOST_SERIES, len(held_out))))
    return {
        "clock": clock,
        "observations": names,
        "given": given,
        "shortened": MOST_ROWS if cut_short else None,
        "series": [
            {
                "id": str(held_out.ids[row]),
                **_recorded(held_out, row),
                "forecast": _bands(first, row, int(held_out.lengths[row]) - given),
            }
            for row in range(count)
        ],
        "rolling": list(_rolling(run, whole, horizon)),
        "whatif": _what_if(run, held_out),
        "drift": [] if hybrid is None else _drift(run, hybrid, whole),
    }


def _shortened(data: Trajectories) -> Trajectories:
    """The first rows of every recording."""
    if data.times.shape[1] <= MOST_ROWS:
        return data
    found = data.cut([(n, 0, min(int(rows), MOST_ROWS)) for n, rows in enumerate(data.lengths)])
    return replace(found, ids=data.ids)


def _recorded(data: Trajectories, row: int) -> dict[str, Any]:
    last = int(data.lengths[row])
    values = np.where(data.observed[row, :last], data.values[row, :last], np.nan)
    return {"times": plain(data.times[row, :last], DIGITS_OF_TIME), "values": plain(values.T)}


def _bands(forecast: Forecast, row: int, rows: int) -> dict[str, Any]:
    """Quantiles of what would be measured, for every observation, at the first rows."""
    draws = forecast.observations.isel(trajectory=row, time=slice(0, rows))
    found = np.quantile(draws.values, QUANTILES, 0)
    clock = draws["clock"].values
    return {
        "times": plain(clock, DIGITS_OF_TIME),
        "quantiles": plain(np.moveaxis(found, -1, 0)),
    }


def _rolling(run: Run, data: Trajectories, horizon: int | None) -> Iterator[dict[str, Any]]:
    """Forecasts along whole records, each given all rows before; none where they are too short."""
    ahead = horizon or max(1, int(np.median(data.lengths)) // 4)
    try:
        starts = origins_of(data, ahead, ORIGINS, run.spec.context)
    except InputError:
        return
    shown = sorted({series for series, _ in starts})[:MOST_SERIES]
    numbers = ahead * len(run.spec.observations) * len(QUANTILES) * ORIGINS
    shown = shown[: max(1, MOST_NUMBERS // max(1, numbers))]
    starts = [(series, row) for series, row in starts if series in shown]
    later = [(series, slice(row + 1, row + 1 + ahead)) for series, row in starts]
    found = run.forecast(
        data.cut([(series, 0, row + 1) for series, row in starts]),
        np.stack([data.times[one] for one in later]),
        inputs=np.stack([data.inputs[one] for one in later]),
        draws=DRAWS,
    )
    for series in shown:
        mine = [number for number, (one, _) in enumerate(starts) if one == series]
        yield {
            "id": str(data.ids[series]),
            **_recorded(data, series),
            "origins": [{"row": starts[n][1], "forecast": _bands(found, n, ahead)} for n in mine],
        }


@dataclass(frozen=True)
class Lever:
    """Something that can be changed before a forecast, and the values that it takes."""

    kind: str
    name: str
    values: tuple[float, ...]
    now: int
    """The position of what it is, or of what is nearest to it."""


def _what_if(run: Run, data: Trajectories) -> dict[str, Any] | None:
    """Forecasts of the first recording with one thing changed at a time, under the same noise."""
    given = run.spec.context
    levers = list(_levers(run, data)) if int(data.lengths[0]) > given else []
    if not levers:
        return None
    numbers = sum(len(lever.values) for lever, _ in levers) * len(QUANTILES)
    most = max(LEAST_ROWS, MOST_NUMBERS // (numbers * len(run.spec.observations)))
    one = data.cut([(0, 0, min(int(data.lengths[0]), given + most))])
    start, clock, inputs = one.start(given), one.times[:, given:], one.inputs[:, given:]

    def forecast(change: Change) -> dict[str, Any]:
        other, history, future = change(run, start, inputs)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InputNotice)  # what was changed may lead anywhere
            found = other.forecast(history, clock, inputs=future, draws=WHAT_IF_DRAWS)
        return _bands(found, 0, clock.shape[1])

    now = forecast(lambda run, start, inputs: (run, start, inputs))
    content = []
    for lever, changes in levers:
        found = [now if k == lever.now else forecast(one) for k, one in enumerate(changes)]
        said = {"kind": lever.kind, "name": lever.name, "now": lever.now}
        content.append({**said, "values": plain(np.array(lever.values)), "forecasts": found})
    return {"id": str(data.ids[0]), **_recorded(one, 0), "levers": content}


Change = Callable[[Run, Trajectories, np.ndarray], tuple[Run, Trajectories, np.ndarray]]
"""What a lever does to a run, the rows that are given, and the inputs that follow."""


def _levers(run: Run, data: Trajectories) -> Iterator[tuple[Lever, list[Change]]]:
    """Everything that can be changed, with a change for each of its values."""
    last = run.spec.context - 1
    for column, name in enumerate(data.states):
        if not data.observed[0, last, column]:
            continue
        values, at = _steps(data, column, float(data.values[0, last, column]))

        def begin(value: float, column: int) -> Change:
            def change(run: Run, start: Trajectories, inputs: np.ndarray):
                changed = start.values.copy()
                changed[0, last, column] = value
                return run, replace(start, values=changed), inputs

            return change

        yield Lever("start", name, values, at), [begin(value, column) for value in values]
    for column, name in enumerate(run.spec.inputs):

        def multiply(factor: float, column: int) -> Change:
            def change(run: Run, start: Trajectories, inputs: np.ndarray):
                changed, first = inputs.copy(), start.inputs.copy()
                changed[..., column] *= factor
                first[:, last, column] *= factor  # held from the last given row on
                return run, replace(start, inputs=first), changed

            return change

        now = FACTORS.index(1.0)
        yield Lever("input", name, FACTORS, now), [multiply(factor, column) for factor in FACTORS]
    yield from _parameters(run)


def _steps(data: Trajectories, column: int, now: float) -> tuple[tuple[float, ...], int]:
    """Five values over the range of what was measured; the one nearest to `now` is `now`."""
    seen = data.values[..., column][data.observed[..., column]]
    low, high = np.quantile(seen, [0.05, 0.95])
    values = np.linspace(low, high, 5)
    at = int(np.argmin(np.abs(values - now)))
    values[at] = now
    return tuple(map(float, values)), at


def _parameters(run: Run) -> Iterator[tuple[Lever, list[Change]]]:
    """Physical parameters."""
    forecaster = run.forecaster
    if not isinstance(forecaster, SDEForecaster):
        return

    def moved(name: str, parameter: AbstractParameter) -> Change:
        def change(run: Run, start: Trajectories, inputs: np.ndarray):
            other = eqx.tree_at(
                lambda one: parameters_of(one.model.known.physics)[name], run.forecaster, parameter
            )
            return replace(run, forecaster=other), start, inputs

        return change

    for name, parameter in parameters_of(forecaster.model.known.physics).items():
        now = np.asarray(parameter.value, float)
        if now.ndim or now == 0 or not np.isfinite(now):
            continue
        others = [_moved(parameter, float(now) * share) for share in SHARES]
        values = tuple(float(one.value) for one in others)
        lever = Lever("parameter", name, values, SHARES.index(1.0))
        yield lever, [moved(name, one) for one in others]


def _moved(parameter: AbstractParameter, value: float) -> AbstractParameter:
    """The same parameter at another value, inside its limits."""
    if isinstance(parameter, Bounded):
        room = 1e-3 * (parameter.high - parameter.low)
        inside = float(np.clip(value, parameter.low + room, parameter.high - room))
        return Bounded.of(inside, parameter.low, parameter.high)
    if isinstance(parameter, Positive):
        return Positive.of(max(value, parameter.floor + 1e-6 * abs(value)), parameter.floor)
    if isinstance(parameter, Free):
        return Free(value)
    if isinstance(parameter, Fixed):
        return Fixed(jnp.asarray(value, jnp.asarray(parameter.frozen).dtype))
    return parameter


def _drift(run: Run, hybrid: Hybrid, data: Trajectories) -> list[dict[str, Any]]:
    """Known, learned and noise along smoothed records, in the units of the states per time."""
    latent = hybrid.spec.latent is not None
    if latent or not isinstance(run.forecaster, AbstractStateEstimator):
        return []
    shown = data.take(range(min(4, len(data))))
    smoothed = run.smooth(shown, draws=SMOOTHED).states
    spread = getattr(hybrid.model.diffusion, "sd", None)
    found = []
    for row in range(len(shown)):
        last = int(shown.lengths[row])
        path = np.median(smoothed.isel(trajectory=row).values[:, :last], 0)
        times, inputs = shown.times[row, :last], shown.inputs[row, :last]
        learned, known = rates_along(hybrid, path, times, inputs)
        usual = float(np.median(np.diff(times)[np.diff(times) > 0])) if last > 1 else 1.0
        noise = None
        if spread is not None:
            size = np.broadcast_to(np.asarray(spread.value), (len(hybrid.spec.states),))
            slope = [name in hybrid.spec.positive for name in hybrid.spec.states]
            noise = np.where(slope, path, 1.0) * size / np.sqrt(usual)
        low, middle, high = np.quantile(learned, [0.05, 0.5, 0.95], 0)
        found.append(
            {
                "id": str(shown.ids[row]),
                "times": plain(times, DIGITS_OF_TIME),
                "states": list(hybrid.spec.states),
                "known": plain(known.T),
                "learned": plain(middle.T),
                "low": plain(low.T),
                "high": plain(high.T),
                "noise": None if noise is None else plain(noise.T),
            }
        )
    return found


def plain(numbers: np.ndarray, digits: int = 5) -> list[Any]:
    """So many digits of the range that each row spans; None where there is nothing."""
    array = np.asarray(numbers, float)
    if array.ndim > 1:
        return [plain(one, digits) for one in array]
    told = array[np.isfinite(array)]
    span = float(np.ptp(told) or np.abs(told).max()) if told.size else 0.0
    places = digits - 1 - int(np.floor(np.log10(span))) if span > 0 else 0
    return [round(float(one), places) if np.isfinite(one) else None for one in array]
