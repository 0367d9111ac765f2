"""Why a fit has no finite loss: which equation, state, row, start or step, and what to change."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hybridsde._parameters import Bounded, Fixed, trainable
from hybridsde._types import Float
from hybridsde.data import Batch, Trajectories
from hybridsde.estimate.filter import carried, first_state, observe, row_scores
from hybridsde.forecast import AbstractForecaster, ModelSpec
from hybridsde.hybrid.forecaster import SDEForecaster
from hybridsde.hybrid.known_check import guilty_part, remedy, values_of
from hybridsde.hybrid.parameters import parameters_of
from hybridsde.hybrid.settle import EXPLICIT
from hybridsde.hybrid.spec import HybridSDE
from hybridsde.model import BayesianSDE, GaussianObservation
from hybridsde.physics import PositivePhysics
from hybridsde.simulate import AbstractSolver, Rosenbrock

UNITS = (
    "Check the units of the data and of the known equations, the values of their parameters, and "
    "where states start."
)
AT_LIMIT = 0.01
"""A parameter is at a limit within this share of the way to the other one."""


@dataclass(frozen=True)
class Place:
    """Where a filter is at a step of one series, in the numbers of the model and in words."""

    step: int
    time: float
    state: np.ndarray
    """Before the step."""
    words: str


class Walk(NamedTuple):
    """What a filter meets along one series: arrays with a leading axis of steps."""

    before: Any
    """The mean of the state before the step."""
    known: Any
    learned: Any
    known_slope: Any
    """∂(γ∘r)/∂h there."""
    by_state: Any
    """Of the step of the solver."""
    after: Any
    """The mean of the state after the step, before a measured value tells of it."""
    covariance: Any
    log_prob: Any


def why_not_finite(
    spec: ModelSpec,
    forecaster: AbstractForecaster,
    batch: Batch,
    pieces: Trajectories | None = None,
    data: Trajectories | None = None,
) -> str:
    """What stops being a number first, where, and what to change.

    `pieces` are what the series of `batch` were made of, cut from the recordings `data`; names and
    rows of recordings are then said.
    """
    general = f"The loss was never a number. {UNITS}"
    if not (isinstance(forecaster, SDEForecaster) and isinstance(spec, HybridSDE)):
        return general
    model, solver = forecaster.model, forecaster.solver
    limits = " ".join(parameters_at_limits(spec, forecaster))
    if not isinstance(model.observation, GaussianObservation):
        return f"{general} {limits}".strip()
    wrong = _parameters_not_finite(model)
    if wrong is not None:
        return f"{wrong} became no number during the fit. Try a smaller `learning_rate`. {limits}"
    scores = np.asarray(eqx.filter_jit(row_scores)(model, solver, batch))
    lost = np.argwhere(~np.isfinite(scores))
    if not lost.size:
        return (
            f"{general} The likelihood itself is finite: the path KL, the weights or sampled paths "
            f"are not. {limits}"
        ).strip()
    series = int(lost[np.argmin(lost[:, 1])][0])
    one = jax.tree.map(lambda leaf: leaf[series], batch)
    walk = jax.tree.map(np.asarray, eqx.filter_jit(_walk)(model, solver, one))
    said = _first_fault(spec, forecaster, walk, one, _recording(pieces, data, series))
    return f"{said} {limits}".strip()


def _parameters_not_finite(model: BayesianSDE) -> str | None:
    for name, part in parameters_of(model.known.physics).items():
        if not np.isfinite(np.asarray(part.value)).all():
            return f"The parameter {name!r}"
    parts = {"learned part": model.network, "diffusion": model.diffusion, "start": model.start}
    for name, part in {**parts, "measurement noise": model.observation}.items():
        leaves = jax.tree.leaves(eqx.filter(part, trainable(part)))
        if any(bool(jnp.isnan(leaf).any()) for leaf in leaves):
            return f"The {name}"
    return None


@dataclass(frozen=True)
class Recording:
    """What a series was cut from."""

    name: str
    times: np.ndarray
    """Of the rows of the piece."""
    whole: np.ndarray
    """Of all rows of the recording."""

    def row(self, time: float) -> int:
        """Which row of the recording has this time, counted from one."""
        return int(np.searchsorted(self.whole, time, "right"))


def _recording(
    pieces: Trajectories | None, data: Trajectories | None, series: int
) -> Recording | None:
    if pieces is None or data is None:
        return None
    name = pieces.origins[series]
    row = data.origins.index(name)
    times = pieces.times[series, : pieces.lengths[series]]
    return Recording(name, times, data.times[row, : data.lengths[row]])


def _walk(model: BayesianSDE, solver: AbstractSolver, series: Batch) -> Walk:
    """The filter of one series at the mean of the weights, with everything that it looks at."""
    sde = model.typical()
    grid = series.grid(solver.substeps, model.interpolation)
    y = series.values[grid.row]
    seen = series.observed[grid.row] & (grid.row > 0)[:, None]

    def advance(state, x):
        grid, y, seen = x
        learned, known = sde.drift(grid.t, state.mean, grid.u, None)
        slope = jax.jacfwd(lambda h: sde.known_part(grid.t, h, grid.u))(state.mean)
        step = solver.transition(sde, grid.t, state.mean, grid.u, grid.dt, None)
        after = carried(step, grid.dt, state)
        told, innovation = observe(sde, model.observation, y, seen, after)
        met = Walk(
            state.mean,
            known,
            learned,
            slope,
            step.by_state,
            after.mean,
            after.covariance,
            innovation.log_prob,
        )
        return told, met

    return jax.lax.scan(advance, first_state(model, sde, series), (grid, y, seen))[1]


def _first_fault(
    spec: HybridSDE,
    forecaster: SDEForecaster,
    walk: Walk,
    series: Batch,
    recording: Recording | None,
) -> str:
    """The first thing along a series that is not finite."""
    model, solver, names = forecaster.model, forecaster.solver, tuple(spec.states)
    grid = jax.tree.map(np.asarray, series.grid(solver.substeps, model.interpolation))
    parts = (walk.before, walk.known, walk.learned, walk.known_slope, walk.after, walk.covariance)
    bad = [~np.isfinite(one).reshape(len(one), -1).all(1) for one in (*parts, walk.log_prob)]
    step = int(np.argmax(np.any(bad, 0)))
    origin = spec.numerics.origin or 0.0
    words = _where(step, float(grid.t[step]) + origin, grid.row, recording)
    place = Place(step, float(grid.t[step]), walk.before[step], words)
    if bad[0][step]:
        wrong = _names(names, walk.before[step])
        how = "The start" if step == 0 else "The update by a measured value"
        return (
            f"{how} of {wrong} is not a number {words}. Say where {wrong} can start ([start], a "
            "range), and look at the measured values of that row."
        )
    raw = spec.raw_states(walk.before[step])
    inputs = dict(zip(spec.inputs, grid.u[step].tolist(), strict=True))
    at = {"t": place.time, **dict(zip(names, raw.tolist(), strict=True)), **inputs}
    physics = model.known.physics
    physics = physics.inner if isinstance(physics, PositivePhysics) else physics
    for kind, slope in ((walk.known, False), (walk.known_slope, True)):
        rows = ~np.all(np.isfinite(kind[step]).reshape(len(names), -1), 1)
        if np.any(rows):
            state = names[int(np.argmax(rows))]
            part, used = guilty_part(spec, physics, state, at, slope=slope)
            what = "has no finite slope" if slope else "is not a number"
            return f"{part} {what} at {values_of(used, at)}, {words}. {remedy(spec, used)}"
    if bad[2][step]:
        return (
            f"The learned drift of {_names(names, walk.learned[step])} is not a number at "
            f"{values_of(names, at)}, {words}. Try a smaller `learning_rate`, a smaller `degree`, "
            "or `bounds`."
        )
    if bad[4][step] or bad[5][step]:
        return _grown(spec, forecaster, walk, grid, place)
    return (
        f"The probability of the values measured {words} is not a number, though the model is at "
        f"{values_of(names, at)} before: the noise and the diffusion of these states came to "
        f"nothing or to infinity. Declare them, or give them a floor. {UNITS}"
    )


def _grown(spec: HybridSDE, forecaster: SDEForecaster, walk: Walk, grid, place: Place) -> str:
    """States or their uncertainty that grew beyond all numbers: by which equation and step."""
    names = tuple(spec.states)
    until = jax.tree.map(lambda leaf: leaf[: place.step + 1], walk)
    sizes = np.abs(np.nan_to_num(until.by_state, nan=0.0, posinf=1e30))
    worst, row, column = np.unravel_index(np.argmax(sizes), sizes.shape)
    dt = float(grid.dt[worst])
    slope = float(walk.known_slope[worst, row, column])
    why = too_long_a_step(spec, forecaster, until.known_slope, grid.dt[: place.step + 1]) or (
        f"The slope of d{names[row]} by {names[column]} is {slope:.3g} there. A state that nothing "
        "holds back grows without end: correct the equation or its parameters, declare `bounds`, "
        "or say where it starts."
    )
    return (
        f"What is known of {names[row]!r} is lost {place.words}: a step of {dt:.3g} multiplies its "
        f"uncertainty by {sizes[worst, row, column]:.3g}. {why}"
    )


def too_long_a_step(
    spec: HybridSDE,
    forecaster: SDEForecaster,
    slopes: Float[np.ndarray, "step state state"],
    lengths: Float[np.ndarray, " step"],
) -> str | None:
    """Which equation decays too fast for an explicit step; None where none does."""
    if isinstance(forecaster.solver, Rosenbrock):
        return None
    finite = np.all(np.isfinite(slopes), (1, 2))
    if not np.any(finite):
        return None
    rates = np.where(finite[:, None, None], slopes, 0.0)
    fastest = -np.linalg.eigvals(rates).real.min(1) * lengths
    step = int(np.argmax(fastest))
    if fastest[step] < EXPLICIT:
        return None
    state = spec.states[int(np.argmin(np.diagonal(rates[step])))]
    length, rate = float(lengths[step]), float(fastest[step] / lengths[step])
    return (
        f"The step is too long for d{state}, which decays at a rate of {rate:.3g}: an explicit "
        f"step can be {EXPLICIT / rate:.3g} at most, and is {length:.3g}. Leave step and scheme to "
        f"the fit, take a shorter `step` ({int(np.ceil(fastest[step]))} times the `substeps`), or "
        'the implicit scheme "Rosenbrock".'
    )


def parameters_at_limits(spec: ModelSpec, forecaster: AbstractForecaster) -> list[str]:
    """A sentence about every learned parameter that ended at one of its limits."""
    if not (isinstance(spec, HybridSDE) and isinstance(forecaster, SDEForecaster)):
        return []
    said = []
    for name, one in parameters_of(forecaster.model.known.physics).items():
        if isinstance(one, Fixed) or not isinstance(one, Bounded):
            continue
        place = (np.asarray(one.value, float) - one.low) / (one.high - one.low)
        for limit, near in ((one.low, place < AT_LIMIT), (one.high, place > 1 - AT_LIMIT)):
            if np.any(near):
                said.append(
                    f"The parameter {name!r} is at its limit {limit:g}: widen its range, or doubt "
                    "its equation."
                )
    return said


def _names(names: tuple[str, ...], numbers: np.ndarray) -> str:
    return ", ".join(repr(n) for n, one in zip(names, numbers, strict=True) if not np.isfinite(one))


def _where(step: int, time: float, rows: np.ndarray, recording: Recording | None) -> str:
    """A step in words: at the start, or from which row of which recording on."""
    if recording is None:
        return "at the start of a recording" if step == 0 else f"at time {time:.4g} of a recording"
    passed = rows[:step][rows[:step] > 0]
    last = min(int(passed[-1]) if passed.size else 0, len(recording.times) - 1)
    row = recording.row(recording.times[last])
    if step == 0 and row == 1:
        return f"at the start of {recording.name!r}, row 1"
    return f"at time {time:.4g} of {recording.name!r}, after row {row}"
