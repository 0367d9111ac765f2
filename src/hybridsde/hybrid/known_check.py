"""Are the known equations finite wherever paths may go? Asked before a fit, not during it."""

from collections.abc import Iterable, Mapping

import jax
import jax.numpy as jnp
import numpy as np

from hybridsde._errors import InputError, notice
from hybridsde.data import Trajectories
from hybridsde.hybrid.spec import HybridSDE
from hybridsde.physics import AbstractPhysics, EquationPhysics
from hybridsde.physics.expression import Call, Expression, names, text, value

PROBES = 512
MOST_ROWS = 20_000
"""Recorded rows at which equations are tried."""
ROOM = 0.2
"""Paths are expected to leave the recorded range by this share of it."""


def check_known(model: HybridSDE, data: Trajectories) -> None:
    """An `InputError` where an equation is not finite at recorded or unmeasured states.

    A notice where it is not a little outside the recorded range, which paths may reach.
    """
    known = model.physics.known(tuple(model.states), tuple(model.inputs))
    if not known or model.latent is not None:
        return
    rows, places = _recorded(model, data)
    if len(places):
        found = _not_finite(model, rows, known)
        if found is not None:
            name, at, where = found
            series, row = places[at]
            place = f", row {row + 1} of {data.ids[series]!r} (time {data.times[series, row]:g})"
            raise InputError(_message(model, name, where, place))
    found = _not_finite(model, _probes(model, data, room=0.0), known)
    if found is not None:
        raise InputError(_message(model, found[0], found[2]))
    found = _not_finite(model, _probes(model, data, room=ROOM), known)
    if found is not None:
        text = _message(model, found[0], found[2])
        notice(f"Just outside the recorded range: {text}")


def _recorded(model: HybridSDE, data: Trajectories) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Rows at which every state was measured, and which they are: (series, row)."""
    if tuple(data.states) != tuple(model.states):
        return {}, np.zeros((0, 2), int)
    told = np.arange(data.times.shape[1]) < data.lengths[:, None]
    places = np.argwhere(told & data.observed.all(-1))
    places = places[np.linspace(0, len(places) - 1, min(len(places), MOST_ROWS)).astype(int)]
    series, row = places.T
    found = {"t": data.times[series, row] - (model.numerics.origin or 0.0)}
    for given, columns in ((data.input_names, data.inputs), (data.states, data.values)):
        found |= {name: columns[series, row, k] for k, name in enumerate(given)}
    positive = np.all([found[name] > 0 for name in model.positive], 0)
    keep = np.broadcast_to(positive, len(places))
    return {name: column[keep] for name, column in found.items()}, places[keep]


def _probes(model: HybridSDE, data: Trajectories, room: float) -> dict[str, np.ndarray]:
    """States, inputs and times, drawn evenly from their ranges; recorded rows where there is no
    room.
    """
    rng = np.random.default_rng(0)
    told = np.argwhere(np.arange(data.times.shape[1]) < data.lengths[:, None])
    series, row = told[rng.integers(len(told), size=PROBES)].T
    found = {"t": data.times[series, row] - (model.numerics.origin or 0.0)}
    for column, name in enumerate(data.input_names):
        found[name] = data.inputs[series, row, column]
    for name in model.states:
        low, high = model.bounds.get(name, (-np.inf, np.inf))
        if name in data.states:
            column = data.states.index(name)
            seen = data.values[..., column][data.observed[..., column]]
            smallest, largest = seen.min(), seen.max()
            values = rng.choice(seen, PROBES)
            if room:
                span = room * (largest - smallest)
                values = rng.uniform(smallest - span, largest + span, PROBES)
        else:
            values = _unmeasured(model, data, name, room, rng)
        if name in model.positive:
            values = np.maximum(np.abs(values), 1e-12)
        inside = 1e-3 * (values.std() or 1.0)
        found[name] = np.clip(values, low + inside, high - inside)
    return found


def _unmeasured(
    model: HybridSDE, data: Trajectories, name: str, room: float, rng: np.random.Generator
) -> np.ndarray:
    """Where an unmeasured state may be: about its declared start, or on the scale of the data."""
    given = model.start.get(name) if isinstance(model.start, Mapping) else None
    seen = np.abs(data.values[data.observed])
    size = float(seen.mean()) if seen.size else 1.0
    if isinstance(given, int | float):
        return np.full(PROBES, float(given)) + room * (abs(given) or size) * rng.uniform(
            -1, 1, PROBES
        )
    if isinstance(given, list | tuple):
        low, high = map(float, given)
        return rng.uniform(low - room * (high - low), high + room * (high - low), PROBES)
    return rng.uniform(-size, size, PROBES)


def _not_finite(
    model: HybridSDE, probes: Mapping[str, np.ndarray], known: tuple[str, ...]
) -> tuple[str, int, dict[str, float]] | None:
    """The first equation that is not finite, at which of the probes, and where that is."""
    states = {name: jnp.asarray(probes[name]) for name in model.states}
    inputs = {name: jnp.asarray(probes[name]) for name in model.inputs}
    rates = jax.vmap(model.physics)(jnp.asarray(probes["t"]), states, inputs)
    for name in known:
        finite = np.isfinite(np.broadcast_to(np.asarray(rates[name]), probes["t"].shape))
        if not finite.all():
            first = int(np.argmin(finite))
            return name, first, {key: float(column[first]) for key, column in probes.items()}
    return None


def _message(model: HybridSDE, name: str, where: dict[str, float], place: str = "") -> str:
    """Which part of which equation, at which state, and what to declare."""
    part, used = guilty_part(model, model.physics, name, where)
    return f"{part} is not finite at {values_of(used, where)}{place}. {remedy(model, used)}"


def guilty_part(
    model: HybridSDE,
    physics: AbstractPhysics,
    name: str,
    where: Mapping[str, float],
    *,
    slope: bool = False,
) -> tuple[str, tuple[str, ...]]:
    """The part of an equation that is not finite, or whose slope is not, and what it is made of."""
    if isinstance(physics, EquationPhysics):
        xi = {key: float(one.value) for key, one in physics.parameters.items()}
        equation = next(one for one in physics.equations if one.state == name)
        cause = culprit(equation.rate, {**where, **xi}, slope=slope)
        if cause is not None:
            return f"{text(cause)} in d{name}", tuple(dict.fromkeys(n.name for n in names(cause)))
    return f"the equation of {name!r}", tuple(model.states)


def values_of(used: Iterable[str], where: Mapping[str, float]) -> str:
    """Where that is, in words."""
    return ", ".join(f"{one} = {where[one]:.3g}" for one in used if one in where) or "every state"


def remedy(model: HybridSDE, used: Iterable[str]) -> str:
    """What to declare where a part made of these quantities is not finite."""
    used = tuple(used)
    states = [one for one in used if one in model.states]
    hidden = [one for one in states if one in model.hidden_states]
    if hidden:
        one = hidden[0]
        return (
            f"{one!r} is never measured and may start anywhere: give it a range in `start` "
            f"([start] {one} = [low, high]), or declare `positive = [{one!r}]` or `bounds = "
            f"{{ {one} = [0, inf] }}` if it cannot go there."
        )
    if states:
        return (
            f"Declare `positive = [{states[0]!r}]`, or `bounds = {{ {states[0]} = [0, inf] }}`, "
            "if it cannot go there; otherwise correct the equation."
        )
    numbers = [one for one in used if one in getattr(model.physics, "parameters", {})]
    which = f"parameter {numbers[0]!r}: give it limits (low, high)" if numbers else "its parameters"
    return f"Correct the equation, or {which}."


def culprit(
    expression: Expression, quantities: Mapping[str, float], *, slope: bool = False
) -> Expression | None:
    """The innermost part of a formula that is not finite although what it is made of is.

    Or whose `slope` is not, as that of a root at zero.
    """
    if not isinstance(expression, Call):
        return None
    for argument in expression.arguments:
        found = culprit(argument, quantities, slope=slope)
        if found is not None:
            return found
    numbers = {name: jnp.asarray(one, float) for name, one in quantities.items()}
    judged = value(expression, numbers)
    if slope:
        slopes = jax.grad(lambda given: jnp.asarray(value(expression, given), float).sum())(numbers)
        judged = np.array([float(one) for one in slopes.values()])
    return None if np.isfinite(judged).all() else expression
