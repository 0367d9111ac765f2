"""What if? Forecasts with one thing changed: a start, an input, a physical parameter."""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from hybridsde._errors import InputNotice
from hybridsde._parameters import AbstractParameter, Bounded, Fixed, Free, Positive
from hybridsde.data import Trajectories
from hybridsde.hybrid import SDEForecaster
from hybridsde.hybrid.parameters import parameters_of
from hybridsde.report.bands import QUANTILES, bands, plain, recorded
from hybridsde.run import Run

MOST_NUMBERS = 60_000
"""Of what-if forecasts in one page: they are shorter where there are many."""
DRAWS = 120
FACTORS = (0.0, 0.5, 1.0, 1.5, 2.0)
"""Of an input."""
SHARES = (0.5, 0.75, 1.0, 1.25, 1.5)
"""Of a parameter."""
LEAST_ROWS = 50
"""Of a what-if forecast, however many sliders there are."""


@dataclass(frozen=True)
class Lever:
    """Something that can be changed before a forecast, and the values that it takes."""

    kind: str
    name: str
    values: tuple[float, ...]
    now: int
    """The position of what it is, or of what is nearest to it."""


def what_if(run: Run, data: Trajectories) -> dict[str, Any] | None:
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
            found = other.forecast(history, clock, inputs=future, draws=DRAWS)
        return bands(found, 0, clock.shape[1])

    now = forecast(lambda run, start, inputs: (run, start, inputs))
    content = []
    for lever, changes in levers:
        found = [now if k == lever.now else forecast(one) for k, one in enumerate(changes)]
        said = {"kind": lever.kind, "name": lever.name, "now": lever.now}
        content.append({**said, "values": plain(np.array(lever.values)), "forecasts": found})
    return {"id": str(data.ids[0]), **recorded(one, 0), "levers": content}


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

    def moved(name: str, value: float) -> Change:
        return lambda run, start, inputs: (with_parameter(run, name, value), start, inputs)

    for name, parameter in parameters_of(forecaster.model.known.physics).items():
        now = np.asarray(parameter.value, float)
        if now.ndim or now == 0 or not np.isfinite(now):
            continue
        values = tuple(
            float(np.asarray(moved_to(parameter, float(now) * share).value)) for share in SHARES
        )
        lever = Lever("parameter", name, values, SHARES.index(1.0))
        yield lever, [moved(name, value) for value in values]


def with_parameter(run: Run, name: str, value: float) -> Run:
    """The same run with a physical parameter at another value, inside its limits."""
    forecaster = run.forecaster
    assert isinstance(forecaster, SDEForecaster)
    before = parameters_of(forecaster.model.known.physics)[name]
    other = eqx.tree_at(
        lambda one: parameters_of(one.model.known.physics)[name],
        forecaster,
        moved_to(before, value),
    )
    return replace(run, forecaster=other)


def moved_to(parameter: AbstractParameter, value: float) -> AbstractParameter:
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
