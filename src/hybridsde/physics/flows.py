"""Flows between states: what leaves one arrives in another, known or learned once for both.

infection: S -> E               learned
recovery: I -> R = gamma*I      known
births: -> S = mu*N             from outside; `deaths: I ->` leads out
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from hybridsde._errors import InputError
from hybridsde.physics.expression import Call, Expression, text
from hybridsde.physics.grammar import Equation, parse_formula

_FLOW = re.compile(r"\s*(\w+)\s*:\s*(\w*)\s*->\s*(\w*)\s*(?:=(.*))?", re.DOTALL)


@dataclass(frozen=True)
class Flow:
    """An amount per unit of time that leaves one state and arrives in another."""

    name: str
    source: str | None
    target: str | None
    rate: Expression | None
    """None where it is to be learned."""

    @classmethod
    def parse(cls, written: str) -> "Flow":
        """Read `name: source -> target`, or the same with `= rate`; one end may be left out."""
        found = _FLOW.fullmatch(written)
        if found is None or not (found[2] or found[3]):
            raise InputError(
                f"The flow {written!r} cannot be read. It reads `infection: S -> E`, or with its "
                "rate, `recovery: I -> R = gamma*I`."
            )
        name, source, target, rate = found.groups()
        if source == target:
            raise InputError(f"The flow {name!r} leads from {source!r} to itself.")
        formula = None if rate is None else parse_formula(rate)
        return cls(name, source or None, target or None, formula)

    @property
    def ends(self) -> tuple[str, ...]:
        """The states that it changes."""
        return tuple(end for end in (self.source, self.target) if end is not None)


def parse_flows(texts: Sequence[str], *, known: bool) -> tuple[Flow, ...]:
    """Flows that are all known, or all to be learned; an `InputError` where one is neither."""
    if isinstance(texts, str):
        raise InputError(f"`flows` must list flows, as [{texts!r}].")
    found = tuple(Flow.parse(text) for text in texts)
    for position, flow in enumerate(found):
        if flow.name in {before.name for before in found[:position]}:
            raise InputError(f"Two flows are called {flow.name!r}. Rename one.")
        if known and flow.rate is None:
            raise InputError(
                f"The flow {flow.name!r} has no rate here: give one, or name it in the `flows` of "
                "the model, where it is learned."
            )
        if not known and flow.rate is not None:
            raise InputError(
                f"The flow {flow.name!r} is known, so it belongs to the equations: "
                "hs.equations(..., flows=[...])."
            )
    return found


def with_flows(equations: Sequence[Equation], flows: Sequence[Flow]) -> tuple[Equation, ...]:
    """Equations with known flows in them: −rate where one leaves, +rate where it arrives."""
    found = {one.state: one for one in equations}
    for flow in flows:
        assert flow.rate is not None
        for state, sign in ((flow.source, "-"), (flow.target, "+")):
            if state is None:
                continue
            before = found.get(state)
            rate = flow.rate if sign == "+" else Call("neg", (flow.rate,))
            if before is not None:
                rate = Call(sign, (before.rate, flow.rate))
            found[state] = Equation(state, rate, f"d{state} = {text(rate)}")
    return tuple(found.values())
