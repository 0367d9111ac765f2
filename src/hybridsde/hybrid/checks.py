"""What a declared hybrid must satisfy, each rule with the message that teaches it."""

import math
from collections.abc import Mapping, Sequence

from hybridsde._errors import suggest

ENDLESS = (-math.inf, math.inf)
"""Limits of a state that has none."""
INFER = "infer"
"""A start that is learned, from a guess by physics and data."""
TIME = "t"


def check_bounds(
    bounds: Mapping[str, Sequence[float | int]], states: tuple[str, ...], positive: Sequence[str]
) -> dict[str, tuple[float, float]]:
    """Pairs of a lower and a higher limit, by name of a state."""
    found = _pairs(bounds, "bounds", states, "states")
    for name, (_, high) in found.items():
        if name in positive and high <= 0:
            raise ValueError(
                f"{name!r} is `positive`, but its upper limit in `bounds` is {high:g}."
            )
    return found


def check_saturates(
    saturates: Mapping[str, Sequence[float | int]],
    observed: Sequence[str] | Mapping | None,
    names: tuple[str, ...],
    bounds: Mapping[str, Sequence[float | int]],
) -> dict[str, tuple[float, float]]:
    """Pairs of limits of sensors, by name of what they measure."""
    if saturates and isinstance(observed, Mapping):
        raise ValueError("`saturates` is for states that are measured directly.")
    for name in saturates:
        if name in bounds:
            raise ValueError(
                f"{name!r} is in `bounds` and in `saturates`. Keep `bounds` if the state itself "
                "ends there, `saturates` if only its sensor does."
            )
    return _pairs(saturates, "saturates", names, "measured states")


def _pairs(
    limits: Mapping[str, Sequence[float | int]], key: str, names: tuple[str, ...], what: str
) -> dict[str, tuple[float, float]]:
    found = {}
    for name, pair in limits.items():
        if name not in names:
            raise ValueError(
                f"`{key}` names {name!r}, but the {what} are {', '.join(names)}."
                + suggest(name, names)
            )
        try:
            low, high = (float(end) for end in pair)
        except (TypeError, ValueError):
            low = high = math.nan
        if not low < high or not (math.isfinite(low) or math.isfinite(high)):
            raise ValueError(
                f"`{key}` of {name!r} must be a lower and a higher number, such as [0, 10] or "
                f"[0, inf], but are {pair!r}."
            )
        found[name] = (low, high)
    return found


def visible(
    exact: Sequence[str],
    sees: Mapping[str, Sequence[str]] | None,
    states: tuple[str, ...],
    inputs: tuple[str, ...],
    known: tuple[str, ...],
    hidden_from_all: Sequence[str],
    *,
    autonomous: bool,
) -> tuple[tuple[bool, ...], ...] | None:
    """For each state, which features its learned part may depend on; None: all on all.

    Features are the states, the time unless `autonomous`, and the inputs. An exact equation has no
    learned part, so it sees nothing.
    """
    features = (*states, *(() if autonomous else (TIME,)), *inputs)
    for name in exact:
        if name not in known:
            raise ValueError(
                f"`exact` names {name!r}, which has no equation. Equations are known for "
                f"{', '.join(known) or 'no state'}."
            )
    sees = sees or {}
    for name, allowed in sees.items():
        if name not in states:
            raise ValueError(
                f"`sees` names {name!r}, but the states are {', '.join(states)}."
                + suggest(name, states)
            )
        if name in exact:
            raise ValueError(f"{name!r} is exact, so nothing is learned that could see anything.")
        if isinstance(allowed, str) or not allowed:
            raise ValueError(f"`sees` of {name!r} must list what its learned part depends on.")
        for one in allowed:
            if one not in features:
                clock = " Say autonomous = false to let it see the time." if one == TIME else ""
                raise ValueError(
                    f"`sees` of {name!r} lists {one!r}, which is neither a state nor an input "
                    f"({', '.join(features)}).{clock}"
                )
    if not (exact or sees or hidden_from_all):
        return None

    def row(name: str) -> tuple[bool, ...]:
        if name in exact:
            return (False,) * len(features)
        if name in sees:
            return tuple(one in sees[name] for one in features)
        return tuple(one not in hidden_from_all for one in features)

    return tuple(row(name) for name in states)


def check_starts_given(
    start: Mapping[str, object],
    states: tuple[str, ...],
    inputs: tuple[str, ...],
    positive: Sequence[str] = (),
) -> None:
    """A number, a column of the inputs, a range or "infer", by name of a state."""
    for name, given in start.items():
        if name not in states:
            raise ValueError(
                f"`start` names {name!r}, but the states are {', '.join(states)}."
                + suggest(name, states)
            )
        if isinstance(given, str):
            if given != INFER and given not in inputs:
                raise ValueError(
                    f"`start` of {name!r} is {given!r}, which is neither 'infer' nor a column of "
                    f"the inputs ({', '.join(inputs) or 'none'})."
                )
        elif not isinstance(given, bool) and isinstance(given, int | float):
            if not math.isfinite(given):
                raise ValueError(f"`start` of {name!r} must be finite, but is {given}.")
        elif not (
            isinstance(given, Sequence)
            and len(given) == 2
            and all(isinstance(end, int | float) and math.isfinite(end) for end in given)
            and given[0] < given[1]
        ):
            raise ValueError(
                f"`start` of {name!r} must be a number, a column, a range such as [0, 10] or "
                f"'infer', but is {given!r}."
            )
        smallest = min(given) if isinstance(given, list | tuple) else given
        if name in positive and isinstance(smallest, int | float) and smallest <= 0:
            raise ValueError(f"`start` of {name!r} must be above zero, because it is `positive`.")
