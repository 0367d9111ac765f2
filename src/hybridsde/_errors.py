"""What is said to a user whose input cannot be used."""

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """A line that names the cause and the remedy; commands print it and end with code 2."""


class FitFailed(RuntimeError):
    """A fit whose loss never was a number; commands print why and end with code 3."""


class InputNotice(UserWarning):
    """A line about input that was used after a change; commands print it."""


def suggest(name: str, known: Iterable[str]) -> str:
    """The nearest known name as the end of an error message, or nothing."""
    known = list(known)
    near = difflib.get_close_matches(name, known, n=1)
    if not near:  # in other letters: ti_101 for TI_101
        small = {one.lower(): one for one in known}
        near = [small[one] for one in difflib.get_close_matches(name.lower(), small, n=1)]
    return f" Did you mean {near[0]!r}?" if near else ""
