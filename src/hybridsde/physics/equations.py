"""Known physics written as text."""

from collections.abc import Mapping, Sequence

import equinox as eqx
import jax.numpy as jnp

from hybridsde._errors import InputError, suggest
from hybridsde._parameters import AbstractParameter, Fixed
from hybridsde._types import Numbers, Scalar
from hybridsde.physics.base import AbstractPhysics
from hybridsde.physics.expression import CONSTANTS, FUNCTIONS, names, value
from hybridsde.physics.flows import parse_flows, with_flows
from hybridsde.physics.grammar import Equation, parse, point


class EquationPhysics(AbstractPhysics):
    """Rates given by formulas of states, inputs, parameters and the time."""

    equations: tuple[Equation, ...] = eqx.field(static=True)
    parameters: dict[str, AbstractParameter]

    def __call__(
        self, t: Scalar, states: Mapping[str, Scalar], inputs: Mapping[str, Scalar]
    ) -> dict[str, Scalar]:
        """The value of every formula."""
        xi = {name: parameter.value for name, parameter in self.parameters.items()}
        quantities = {"t": t, **states, **inputs, **xi}
        return {equation.state: value(equation.rate, quantities) for equation in self.equations}

    def known(self, states: tuple[str, ...], inputs: tuple[str, ...]) -> tuple[str, ...]:
        """The states on the left; an `InputError` points at a name that does not fit."""
        available = (*states, *inputs, *self.parameters, "t", *CONSTANTS)
        for equation in self.equations:
            if equation.state not in states:
                raise point(
                    equation.source,
                    1,
                    f"{equation.state!r} is not a state; the states are {', '.join(states)}."
                    + suggest(equation.state, states),
                )
            for found in names(equation.rate):
                if found.name not in available:
                    raise point(
                        equation.source, found.column, _unknown(found.name, states, available)
                    )
        self._check_parameters(states, inputs)
        return tuple(name for name in states if name in {e.state for e in self.equations})

    def _check_parameters(self, states: tuple[str, ...], inputs: tuple[str, ...]) -> None:
        used = {found.name for equation in self.equations for found in names(equation.rate)}
        for name in self.parameters:
            if name in (*states, *inputs, "t", *CONSTANTS):
                raise InputError(
                    f"The parameter {name!r} is also a state, an input, the time or a constant. "
                    "Rename the parameter."
                )
            if name not in used:
                raise InputError(
                    f"The parameter {name!r} appears in no equation.{suggest(name, used)}"
                )


def equations(
    *texts: str, flows: Sequence[str] = (), **parameters: Numbers | AbstractParameter
) -> EquationPhysics:
    """Known physics from text; only the states that are known are given.

        hs.equations("dx = sigma*(y - x)", "dz = x*y - rho*z", sigma=10, rho=2.67)

    An equation may use + − * / ^, brackets, numbers, states, inputs, parameters, `t`, `pi` and
    the functions sin cos tan exp log sqrt abs tanh min max sign. It is never run as Python.
    Parameters are numbers, which are held fixed, or an `AbstractParameter` such as `Bounded`,
    which is learned. `flows` lead from one state to another, such as "recovery: I -> R = gamma*I":
    each stands in two equations, and is written once.
    """
    if not (texts or flows):
        raise InputError("No equation is given. Leave the physics out to learn a black box.")
    read = tuple(parse(text) for text in texts)
    for position, equation in enumerate(read):
        if equation.state in {before.state for before in read[:position]}:
            raise point(equation.source, 1, f"{equation.state!r} has two equations. Keep one.")
    xi = {
        name: number if isinstance(number, AbstractParameter) else Fixed(jnp.asarray(number, float))
        for name, number in parameters.items()
    }
    return EquationPhysics(with_flows(read, parse_flows(flows, known=True)), xi)


def _unknown(name: str, states: tuple[str, ...], available: tuple[str, ...]) -> str:
    if name in FUNCTIONS:
        return f"the function {name} needs its argument in brackets."
    return (
        f"{name!r} is not a state ({', '.join(states)}), an input, a parameter or t. Give its "
        f"value as a parameter, or correct the name.{suggest(name, available)}"
    )
