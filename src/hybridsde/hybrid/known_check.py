"""Are the known equations finite wherever paths may go? Asked before a fit, not during it."""

from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np

from hybridsde._errors import InputError, notice
from hybridsde.data import Trajectories
from hybridsde.hybrid.spec import HybridSDE
from hybridsde.physics import EquationPhysics
from hybridsde.physics.expression import Call, Expression, names, text, value

PROBES = 512
ROOM = 0.2
"""Paths are expected to leave the recorded range by this share of it."""


def check_known(model: HybridSDE, data: Trajectories) -> None:
    """An `InputError` where an equation is not finite at recorded or unmeasured states.

    A notice where it is not a little outside the recorded range, which paths may reach.
    """
    known = model.physics.known(tuple(model.states), tuple(model.inputs))
    if not known or model.latent is not None:
        return
    recorded = _probes(model, data, room=0.0)
    place = _not_finite(model, recorded, known)
    if place is not None:
        raise InputError(_message(model, data, *place))
    place = _not_finite(model, _probes(model, data, room=ROOM), known)
    if place is not None:
        notice(f"Just outside the recorded range: {_message(model, data, *place)}")


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
            values = _unmeasured(model, data, name, rng)
        if name in model.positive:
            values = np.maximum(np.abs(values), 1e-12)
        inside = 1e-3 * (values.std() or 1.0)
        found[name] = np.clip(values, low + inside, high - inside)
    return found


def _unmeasured(
    model: HybridSDE, data: Trajectories, name: str, rng: np.random.Generator
) -> np.ndarray:
    """Where an unmeasured state may be: about its declared start, or on the scale of the data."""
    given = model.start.get(name) if isinstance(model.start, Mapping) else None
    seen = np.abs(data.values[data.observed])
    size = float(seen.mean()) if seen.size else 1.0
    if isinstance(given, int | float) and given:
        size = abs(float(given))
    elif isinstance(given, list | tuple):
        size = max(abs(float(end)) for end in given)
    return rng.uniform(-size, size, PROBES)


def _not_finite(
    model: HybridSDE, probes: Mapping[str, np.ndarray], known: tuple[str, ...]
) -> tuple[str, dict[str, float]] | None:
    """The first equation that is not finite somewhere, and where."""
    states = {name: jnp.asarray(probes[name]) for name in model.states}
    inputs = {name: jnp.asarray(probes[name]) for name in model.inputs}
    rates = jax.vmap(model.physics)(jnp.asarray(probes["t"]), states, inputs)
    for name in known:
        wrong = np.flatnonzero(~np.isfinite(np.broadcast_to(np.asarray(rates[name]), PROBES)))
        if wrong.size:
            return name, {key: float(column[wrong[0]]) for key, column in probes.items()}
    return None


def _message(model: HybridSDE, data: Trajectories, name: str, where: dict[str, float]) -> str:
    """Which part of which equation, at which state, and what to declare."""
    part, used = f"the equation of {name!r}", tuple(model.states)
    if isinstance(model.physics, EquationPhysics):
        xi = {key: one.value for key, one in model.physics.parameters.items()}
        equation = next(one for one in model.physics.equations if one.state == name)
        cause = culprit(equation.rate, {**where, **xi})
        if cause is not None:
            part = f"{text(cause)} in d{name}"
            used = tuple(dict.fromkeys(one.name for one in names(cause) if one.name in where))
    at = ", ".join(f"{one} = {where[one]:.3g}" for one in used)
    states = [one for one in used if one in model.states]
    hidden = [one for one in states if one not in data.states]
    remedy = "Correct the equation, or its parameters."
    if states:
        about = hidden or states
        why = f"{about[0]!r} is never measured and may start anywhere: " if hidden else ""
        remedy = (
            f"{why}declare `positive = [{about[0]!r}]`, or `bounds = {{ {about[0]} = [0, inf] }}`, "
            "if it cannot go there."
        )
        remedy = remedy[0].upper() + remedy[1:]
    return f"{part} is not finite at {at}. {remedy}"


def culprit(expression: Expression, quantities: Mapping[str, float]) -> Expression | None:
    """The innermost part of a formula that is not finite although what it is made of is."""
    if isinstance(expression, Call):
        for argument in expression.arguments:
            found = culprit(argument, quantities)
            if found is not None:
                return found
        numbers = {name: jnp.asarray(one, float) for name, one in quantities.items()}
        if not np.isfinite(value(expression, numbers)):
            return expression
    return None
