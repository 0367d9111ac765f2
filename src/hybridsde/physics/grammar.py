"""From text to formulas: a small grammar, and errors that point at the place.

Nothing is evaluated as Python. Length and depth are bounded before anything recursive is run.
"""

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from hybridsde._errors import InputError, suggest
from hybridsde.physics.expression import (
    CONSTANTS,
    FUNCTIONS,
    SEVERAL,
    Call,
    Expression,
    Name,
    Number,
)

LONGEST = 2000
"""Characters in one equation."""
DEEPEST = 60
"""Operations and brackets inside each other."""
LARGEST = 3e38
"""Single floats end here."""

GRAMMAR = r"""
    equation: RATE "=" _sum
    _sum: sum
    ?sum: product | sum "+" product -> add | sum "-" product -> subtract
    ?product: factor | product "*" factor -> multiply | product "/" factor -> divide
    ?factor: power | "-" factor -> negate | "+" factor -> plus
    ?power: atom | atom ("^" | "**") factor -> raise_to
    ?atom: NUMBER -> number | NAME -> name | NAME "(" sum ("," sum)* ")" -> call
         | "(" sum ")" -> group
    RATE.2: /d[^\W\d]\w*(\s*\/\s*dt)?(?=\s*=)/
    NAME: /[^\W\d]\w*/
    NUMBER: /(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?/
    %ignore /\s+/
    """


@cache
def _parser() -> Lark:
    """Built when the first equation is read."""
    return Lark(
        GRAMMAR,
        start="equation",
        parser="lalr",
        propagate_positions=True,
        maybe_placeholders=False,
    )


_OPERATORS = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "raise_to": "^",
    "negate": "neg",
}


@dataclass(frozen=True)
class Equation:
    """The rate of one state."""

    state: str
    rate: Expression
    source: str
    """The text that it was read from."""


def parse(source: str) -> Equation:
    """Read one equation such as `dz = x*y - rho*z` or `dz/dt = x*y - rho*z`."""
    if len(source) > LONGEST:
        raise InputError(
            f"An equation has {len(source)} characters, more than {LONGEST}. Write it as a Python "
            "function instead."
        )
    _check_brackets(source)
    try:
        tree = _parser().parse(source)
    except UnexpectedInput as error:
        raise _misread(source, error) from None
    _check_depth(source, tree)
    rate, right = tree.children
    state = str(rate).split("/")[0].strip()[1:]
    return Equation(state, _read(source, right)[0], source)


def parse_formula(source: str) -> Expression:
    """Read the right side of an equation by itself, such as `sqrt(x)` or `u/(1 + u)`."""
    return parse(f"dterm = {source}").rate


def point(source: str, column: int, cause: str) -> InputError:
    """An error that shows the equation with a caret under the place."""
    before, shown = source[: column - 1], source.replace("\n", " ").replace("\t", " ")
    line = before.count("\n") + 1
    start = max(0, column - 60)
    return InputError(
        f"equation, line {line}, column {column - (before.rfind(chr(10)) + 1)}: {cause}\n"
        f"    {shown[start : start + 100]}\n    {' ' * (column - 1 - start)}^"
    )


def _misread(source: str, error: UnexpectedInput) -> InputError:
    place = error.pos_in_stream or 0
    if isinstance(error, UnexpectedToken) and error.token.type == "$END":
        place = len(source.rstrip())
    found = source[place : place + 1]
    if "=" not in source or not source.strip().startswith("d"):
        cause = "an equation reads `dSTATE = …`, such as dz = x*y - rho*z."
        return point(source, 1, cause)
    if not found.strip():
        return point(source, len(source.rstrip()) + 1, "the equation ends too early.")
    if isinstance(error, UnexpectedCharacters) and found not in "()*/+-^=,":
        return point(source, place + 1, f"{found!r} has no meaning in an equation.")
    remedy = " Write a product with *." if found.isalnum() else ""
    return point(source, place + 1, f"{found!r} is not expected here.{remedy}")


def _check_brackets(source: str) -> None:
    open_at: list[int] = []
    for place, character in enumerate(source):
        if character == "(":
            open_at.append(place)
            if len(open_at) > DEEPEST:
                raise point(source, place + 1, f"more than {DEEPEST} brackets inside each other.")
        elif character == ")":
            if not open_at:
                raise point(source, place + 1, "')' closes a bracket that was never opened.")
            open_at.pop()
    if open_at:
        raise point(source, open_at[-1] + 1, "'(' is never closed.")


def _check_depth(source: str, tree: Tree) -> None:
    """Without recursion, so that it can judge any tree."""
    level: list[Tree | Token] = [tree]
    depth = 0
    while level:
        depth += 1
        if depth > 4 * DEEPEST:
            raise point(source, 1, "too many operations inside each other. Split the equation.")
        level = [child for node in level if isinstance(node, Tree) for child in node.children]


def _read(source: str, node: Any) -> tuple[Expression, float | None]:
    """The formula of a node, and its value where it has no names."""
    column = node.meta.start_pos + 1
    if node.data == "number":
        number = _finite(source, column, float(str(node.children[0])))
        return Number(number), number
    if node.data == "name":
        return Name(str(node.children[0]), column), CONSTANTS.get(str(node.children[0]))
    if node.data in ("group", "plus"):
        return _read(source, node.children[0])
    operands = node.children
    function = _OPERATORS.get(node.data)
    if function is None:
        function, *operands = node.children
        _check_call(source, column, str(function), len(operands))
    parts, values = zip(*(_read(source, operand) for operand in operands), strict=True)
    constant = None if None in values else _constant(source, column, str(function), values)
    return Call(str(function), parts, column), constant


def _check_call(source: str, column: int, function: str, count: int) -> None:
    if function not in FUNCTIONS:
        raise point(
            source,
            column,
            f"there is no function {function!r}; allowed are {', '.join(FUNCTIONS)}."
            + suggest(function, FUNCTIONS),
        )
    if (function in SEVERAL and count < 2) or (function not in SEVERAL and count != 1):
        wanted = "at least two arguments" if function in SEVERAL else "one argument"
        raise point(source, column, f"{function} takes {wanted}, but is given {count}.")


def _constant(source: str, column: int, function: str, values: tuple[float, ...]) -> float:
    """9^9^9, 1/0 and log(-1) are refused here, not found in a fit."""
    try:
        result = _ARITHMETIC[function](*values)
    except (OverflowError, ZeroDivisionError, ValueError):
        result = math.inf
    return _finite(source, column, math.nan if isinstance(result, complex) else result)


_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "^": operator.pow,
    "neg": operator.neg,
    "abs": abs,
    "min": min,
    "max": max,
    "sign": lambda x: math.copysign(1, x) if x else 0.0,
    **{name: getattr(math, name) for name in ("sin", "cos", "tan", "exp", "log", "sqrt", "tanh")},
}


def _finite(source: str, column: int, number: float) -> float:
    if not abs(number) < LARGEST:
        raise point(source, column, "this is not a number that a computer can hold.")
    return number
