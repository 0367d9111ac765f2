"""What a request would take, asked before it is begun."""

import os

from hybridsde._errors import InputError

SHARE = 0.8
"""Of the memory of the machine that one request may take."""
COPIES = 6
"""Arrays of the size of the result that are there at once."""


def memory() -> float:
    """Bytes of memory of this machine; infinite where the system does not say."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return float("inf")


def check_memory(numbers: float, what: str, remedy: str) -> None:
    """An `InputError` where so many numbers in single precision, and copies, would not fit."""
    needed, there = 4.0 * COPIES * numbers, memory()
    if needed > SHARE * there:
        raise InputError(
            f"{what} would take about {needed / 2**30:.3g} GiB of memory, but this machine has "
            f"{there / 2**30:.3g}. {remedy}"
        )
