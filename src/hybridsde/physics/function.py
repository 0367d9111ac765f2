"""Known physics written as a Python function of named quantities."""

import inspect
from collections.abc import Callable, Mapping

import equinox as eqx
import jax
import jax.numpy as jnp

from hybridsde._errors import suggest
from hybridsde._parameters import AbstractParameter, Fixed, refuse_numbers
from hybridsde._types import Numbers, Scalar
from hybridsde.physics.base import AbstractPhysics


class FunctionPhysics(AbstractPhysics):
    """Rates computed by a function whose argument names say what it needs."""

    function: Callable = eqx.field(static=True)
    parameters: dict[str, AbstractParameter]

    def __call__(
        self, t: Scalar, states: Mapping[str, Scalar], inputs: Mapping[str, Scalar]
    ) -> dict[str, Scalar]:
        """Call the function with the quantities that it names."""
        return self._call(t, states, inputs)

    def known(self, states: tuple[str, ...], inputs: tuple[str, ...]) -> tuple[str, ...]:
        """The states named by the function's result, after a dry run on shapes alone."""
        self._check_arguments(states, inputs)
        rates = self._dry_run(states, inputs)
        if not isinstance(rates, dict):
            raise ValueError(
                f"{self._name()} must return a dictionary from state to rate, such as "
                f"{{{states[0]!r}: …}}, but returns {type(rates).__name__}."
            )
        for name, rate in rates.items():
            if name not in states:
                raise ValueError(
                    f"{self._name()} returns a rate for {name!r}, which is not a state."
                    + suggest(name, states)
                )
            if getattr(rate, "shape", None) != ():
                raise ValueError(
                    f"{self._name()} must return one number for {name!r}, but returns {rate}."
                )
        return tuple(name for name in states if name in rates)

    def _call(self, t: Scalar, states: Mapping[str, Scalar], inputs: Mapping[str, Scalar]):
        xi = {name: parameter.value for name, parameter in self.parameters.items()}
        quantities = {**states, **inputs, "t": t, **xi}
        given = {name: quantities[name] for name in self._arguments() if name in quantities}
        return self.function(**given)

    def _arguments(self) -> tuple[str, ...]:
        return tuple(inspect.signature(self.function).parameters)

    def _required(self) -> tuple[str, ...]:
        arguments = inspect.signature(self.function).parameters
        return tuple(name for name, a in arguments.items() if a.default is a.empty)

    def _name(self) -> str:
        return f"`physics` function {getattr(self.function, '__name__', 'without a name')!r}"

    def _check_arguments(self, states: tuple[str, ...], inputs: tuple[str, ...]) -> None:
        arguments = self._arguments()
        for name in self.parameters:
            if name in (*states, *inputs, "t"):
                raise ValueError(
                    f"{self._name()} has a parameter {name!r}, but that is also a state, an input "
                    "or the time. Rename the parameter."
                )
            if name not in arguments:
                raise ValueError(
                    f"{self._name()} was given the parameter {name!r}, which it does not take."
                    + suggest(name, arguments)
                )
        available = (*states, *inputs, "t", *self.parameters)
        for name in self._required():
            if name not in available:
                raise ValueError(
                    f"{self._name()} asks for {name!r}, but the states are {', '.join(states)}; "
                    f"the inputs {', '.join(inputs) or 'none'}; the parameters "
                    f"{', '.join(self.parameters) or 'none'}; and the time t."
                    + suggest(name, available)
                )

    def _dry_run(self, states: tuple[str, ...], inputs: tuple[str, ...]):
        scalar = jax.ShapeDtypeStruct((), jnp.zeros(()).dtype)
        try:
            return jax.eval_shape(
                self._call,
                scalar,
                dict.fromkeys(states, scalar),
                dict.fromkeys(inputs, scalar),
            )
        except Exception as error:
            lines = str(error).strip().splitlines() or [""]
            raise ValueError(
                f"{self._name()} cannot be compiled: {type(error).__name__}: {lines[0]} Use "
                "jax.numpy instead of numpy or math, and jnp.where instead of if."
            ) from None


def known_drift(
    function: Callable, /, **parameters: Numbers | AbstractParameter
) -> FunctionPhysics:
    """Known physics from a Python function; name its parameters, and it returns named rates.

        def height(x, y, z, rho):
            return {"z": x * y - rho * z}

        hs.known_drift(height, rho=2.67)

    Arguments of the function are states, inputs, the time `t` or parameters ξ, by name. The
    result names only the states that are known. Numbers are held fixed; pass an
    `AbstractParameter` such as `Bounded` to learn one.
    """
    refuse_numbers(
        function,
        "known_drift",
        "Give parameters by name, known_drift(function, name=value), or derive the module from "
        "`hs.AbstractPhysics`, whose numbers are trained.",
    )
    xi = {
        name: value if isinstance(value, AbstractParameter) else Fixed(jnp.asarray(value, float))
        for name, value in parameters.items()
    }
    return FunctionPhysics(function, xi)
