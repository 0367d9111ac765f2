"""One line that says how far a fit is, where somebody looks: plain text, no terminal library."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from hybridsde.fit import Callback, Progress

EVERY = 0.1
"""Seconds between two lines."""
WIDTH = 24


def somebody_looks(stream: Any) -> bool:
    """A terminal, or a notebook."""
    return stream.isatty() or "ipykernel" in sys.modules


@contextmanager
def progress_line(shown: bool, stream: Any = None) -> Iterator[tuple[Callback, ...]]:
    """The callbacks that draw the line; it is removed in the end."""
    if not shown:
        yield ()
        return
    out = stream or sys.stderr
    began, last, width = time.monotonic(), 0.0, 0

    def write(text: str) -> None:
        nonlocal width
        out.write("\r" + text.ljust(width))
        out.flush()
        width = len(text)

    def report(progress: Progress) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < EVERY and progress.epoch < progress.epochs:
            return
        last = now
        done = progress.epoch / max(1, progress.epochs)
        bar = ("█" * round(WIDTH * done)).ljust(WIDTH, "·")
        loss = float(np.mean(progress.terms["loss"]))
        write(f"fit {bar} {progress.epoch}/{progress.epochs}  loss {loss:.4g}  {now - began:.0f} s")

    write("fit: compiling")
    try:
        yield (report,)
    finally:
        write("")
        out.write("\r")
        out.flush()
