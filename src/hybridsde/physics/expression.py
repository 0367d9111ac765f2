"""Formulas as trees: their value, their text, and their typeset form."""

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from html import escape

import jax.numpy as jnp

from hybridsde._types import Scalar

FUNCTIONS: dict[str, Callable] = {
    "sin": jnp.sin,
    "cos": jnp.cos,
    "tan": jnp.tan,
    "exp": jnp.exp,
    "log": jnp.log,
    "sqrt": jnp.sqrt,
    "abs": jnp.abs,
    "tanh": jnp.tanh,
    "sign": jnp.sign,
    "min": lambda *values: reduce(jnp.minimum, values),
    "max": lambda *values: reduce(jnp.maximum, values),
}
"""What an equation may call."""
SEVERAL = ("min", "max")
"""Functions of two arguments or more; the others take one."""
CONSTANTS = {"pi": math.pi}

PRECEDENCE = {"+": 1, "-": 1, "*": 2, "/": 2, "neg": 3, "^": 4}
ATOM = 5


@dataclass(frozen=True)
class Number:
    """A constant."""

    value: float


@dataclass(frozen=True)
class Name:
    """A state, an input, a parameter, `t` or a constant such as `pi`."""

    name: str
    column: int = field(default=0, compare=False)
    """Where it stands in the text, from 1."""


@dataclass(frozen=True)
class Call:
    """An operator (+ − * / ^ or neg) or a function, and what it is applied to."""

    function: str
    arguments: tuple["Expression", ...]
    column: int = field(default=0, compare=False)


Expression = Number | Name | Call


def names(expression: Expression) -> Iterator[Name]:
    """Every name in a formula, from left to right."""
    if isinstance(expression, Name):
        yield expression
    elif isinstance(expression, Call):
        for argument in expression.arguments:
            yield from names(argument)


def arguments_of(expression: Expression, functions: Collection[str]) -> Iterator[str]:
    """Names that stand alone in one of these functions, such as q in sin(q)."""
    if isinstance(expression, Call):
        for argument in expression.arguments:
            if expression.function in functions and isinstance(argument, Name):
                yield argument.name
            yield from arguments_of(argument, functions)


def substitute(expression: Expression, parts: Mapping[str, Expression]) -> Expression:
    """The formula with some of its names replaced by formulas."""
    if isinstance(expression, Name):
        return parts.get(expression.name, expression)
    if isinstance(expression, Call):
        inside = tuple(substitute(argument, parts) for argument in expression.arguments)
        return Call(expression.function, inside, expression.column)
    return expression


def value(expression: Expression, quantities: Mapping[str, Scalar]) -> Scalar:
    """The number that a formula gives; can be compiled and differentiated."""
    if isinstance(expression, Number):
        return jnp.asarray(expression.value, float)
    if isinstance(expression, Name):
        if expression.name in quantities:
            return quantities[expression.name]
        return jnp.asarray(CONSTANTS[expression.name], float)
    if expression.function == "^":
        base, exponent = expression.arguments
        if isinstance(exponent, Number) and exponent.value.is_integer():
            return value(base, quantities) ** int(exponent.value)
        return jnp.power(value(base, quantities), value(exponent, quantities))
    arguments = [value(argument, quantities) for argument in expression.arguments]
    return _OPERATORS[expression.function](*arguments)


_OPERATORS: dict[str, Callable] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "neg": lambda a: -a,
    **FUNCTIONS,
}


def text(expression: Expression) -> str:
    """The formula in the notation that it is read from, with no more brackets than needed."""
    if isinstance(expression, Number):
        return _digits(expression.value)
    if isinstance(expression, Name):
        return expression.name
    if expression.function in FUNCTIONS:
        return f"{expression.function}({', '.join(map(text, expression.arguments))})"
    parts = _bracketed(expression, text, lambda inside: f"({inside})")
    if expression.function == "neg":
        return f"-{parts[0]}"
    gap = "" if expression.function in "*/^" else " "
    return f"{gap}{expression.function}{gap}".join(parts)


def mathml(expression: Expression) -> str:
    """The formula as presentation MathML, which browsers typeset on their own."""
    if isinstance(expression, Number):
        sign = "<mo>−</mo>" if expression.value < 0 else ""
        return f"{sign}<mn>{_digits(abs(expression.value))}</mn>"
    if isinstance(expression, Name):
        return symbol(expression.name)
    if expression.function in ("/", "abs", "sqrt", *FUNCTIONS):
        parts = [mathml(argument) for argument in expression.arguments]  # each one once
        if expression.function == "/":
            return f"<mfrac><mrow>{parts[0]}</mrow><mrow>{parts[1]}</mrow></mfrac>"
        if expression.function == "sqrt":
            return f"<msqrt>{parts[0]}</msqrt>"
        if expression.function == "abs":
            return f"<mrow><mo>|</mo>{parts[0]}<mo>|</mo></mrow>"
        inside = "<mo>,</mo>".join(parts)
        return f"<mrow><mi>{expression.function}</mi>{_brackets(inside)}</mrow>"
    if expression.function == "^":
        base, exponent = expression.arguments
        shown = mathml(base) if _precedence(base) > PRECEDENCE["^"] else _brackets(mathml(base))
        return f"<msup><mrow>{shown}</mrow><mrow>{mathml(exponent)}</mrow></msup>"
    parts = _bracketed(expression, mathml, _brackets)
    if expression.function == "neg":
        return f"<mrow><mo>−</mo>{parts[0]}</mrow>"
    return f"<mrow>{SIGNS[expression.function].join(parts)}</mrow>"


SIGNS = {"+": "<mo>+</mo>", "-": "<mo>−</mo>", "*": '<mspace width="0.22em"/>'}
GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "zeta": "ζ",
    "eta": "η", "theta": "θ", "kappa": "κ", "lambda": "λ", "mu": "μ", "nu": "ν", "xi": "ξ",
    "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ", "phi": "φ", "chi": "χ", "psi": "ψ",
    "omega": "ω",
}  # fmt: skip


def symbol(name: str) -> str:
    """A name as a mathematical symbol: Greek letters by name, an index after an underscore."""
    head, _, index = name.partition("_")
    head = escape(GREEK.get(head, head))
    if head and index:
        return f"<msub><mi>{head}</mi><mi>{escape(GREEK.get(index, index))}</mi></msub>"
    return f"<mi>{head or escape(name)}</mi>"


def _digits(number: float) -> str:
    """As short as it can be written and read back."""
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)


def _brackets(inside: str) -> str:
    return f"<mrow><mo>(</mo>{inside}<mo>)</mo></mrow>"


def _bracketed(call: Call, write: Callable[[Expression], str], wrap: Callable[[str], str]):
    """The operands of an operator, in brackets where it would otherwise bind differently."""
    own = PRECEDENCE[call.function]
    written = []
    for position, argument in enumerate(call.arguments):
        tight = position == 1 and call.function in "-/*+"
        if call.function == "^":
            tight = position == 0
        looser = _precedence(argument) < own or (tight and _precedence(argument) == own)
        if call.function == "^" and position == 1:
            looser = _precedence(argument) < PRECEDENCE["neg"]
        if call.function == "neg":
            looser = _precedence(argument) < own
        written.append(wrap(write(argument)) if looser else write(argument))
    return written


def _precedence(expression: Expression) -> int:
    if isinstance(expression, Call):
        return PRECEDENCE.get(expression.function, ATOM)
    return ATOM
