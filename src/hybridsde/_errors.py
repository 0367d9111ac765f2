"""What is said to a user whose input cannot be used."""

import difflib
import sys
import warnings
from collections.abc import Iterable

INSIDE = ("hybridsde", "equinox", "jaxtyping", "beartype")
"""Packages whose lines a user did not write: ours, and those that wrap our functions."""


class InputError(ValueError):
    """A line that names the cause and the remedy; commands print it and end with code 2."""


class FitFailed(RuntimeError):
    """A fit whose loss never was a number; commands print why and end with code 3."""


class InputNotice(UserWarning):
    """A line about input that was used after a change; commands print it."""


def notice(text: str, category: type[Warning] = InputNotice) -> None:
    """Warn at the line that called into the library, whatever lies between."""
    level, outside, frame = 1, 1, sys._getframe()
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] in INSIDE:
            outside = level + 1
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=outside)


def suggest(name: str, known: Iterable[str]) -> str:
    """The nearest known name as the end of an error message, or nothing."""
    known = list(known)
    near = difflib.get_close_matches(name, known, n=1)
    if not near:  # in other letters: ti_101 for TI_101
        small = {one.lower(): one for one in known}
        near = [small[one] for one in difflib.get_close_matches(name.lower(), small, n=1)]
    return f" Did you mean {near[0]!r}?" if near else ""
