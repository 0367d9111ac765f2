"""Equations while they are typed: what is wrong and where, how they look, what they name."""

import re
from collections.abc import Collection
from typing import Any

from hybridsde._errors import InputError
from hybridsde.physics import equations
from hybridsde.physics.expression import CONSTANTS, FUNCTIONS, mathml, names, symbol
from hybridsde.physics.grammar import Equation, parse

PLACE = re.compile(r"equation, line \d+, column (\d+): (.*)")
MOST_LINES = 200


def read_equations(
    lines: list[str], states: Collection[str], inputs: Collection[str]
) -> dict[str, Any]:
    """Every line by itself; blank ones and those that begin with # are passed over.

    Names that are neither states nor inputs are parameters: they are listed, so that the page can
    ask for their values.
    """
    if len(lines) > MOST_LINES:
        raise InputError(f"There are {len(lines)} equations, more than {MOST_LINES}.")
    told = [_read(line, states) for line in lines]
    seen: set[str] = set()
    for one in told:
        if one.get("state") in seen:
            one["error"] = {
                "column": 1,
                "message": f"{one['state']!r} has two equations. Keep one.",
            }
        seen.add(one.get("state", ""))
    known = {*states, *inputs, "t", *CONSTANTS}
    found = [name for one in told for name in one.pop("names", ()) if name not in known]
    return {"lines": told, "parameters": list(dict.fromkeys(found))}


def _read(line: str, states: Collection[str]) -> dict[str, Any]:
    if not line.strip() or line.lstrip().startswith("#"):
        return {"text": line}
    try:
        found = parse(line)
        inside = [one.name for one in names(found.rate)]
        parameters = {name: 1.0 for name in inside if name not in (*states, "t", *CONSTANTS)}
        bare = {name for name in parameters if name in FUNCTIONS}
        equations(line, flows=(), **{n: v for n, v in parameters.items() if n not in bare}).known(
            tuple(states), ()
        )
    except InputError as error:
        return {"text": line, "error": _placed(error)}
    return {"text": line, "state": found.state, "mathml": typeset(found), "names": inside}


def _placed(error: InputError) -> dict[str, Any]:
    """Column and words of an error that points at a place."""
    first = str(error).split("\n", 1)[0]
    told = PLACE.match(first)
    if told is None:
        return {"column": 1, "message": first}
    return {"column": int(told[1]), "message": told[2]}


def typeset(equation: Equation) -> str:
    """As presentation MathML: dx/dt = …"""
    left = (
        f"<mfrac><mrow><mi>d</mi>{symbol(equation.state)}</mrow><mrow><mi>d</mi><mi>t</mi></mrow>"
        "</mfrac>"
    )
    return f'<math display="block"><mrow>{left}<mo>=</mo>{mathml(equation.rate)}</mrow></math>'
