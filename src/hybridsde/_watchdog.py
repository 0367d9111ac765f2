"""Ends a command in which nothing moves any more, and says so."""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SAMPLE = 5.0
"""Seconds between two looks at the time that the processor has spent."""
IDLE = 0.02
"""A process that uses less than this share of one core stands still,"""
PATIENCE = 36
"""if it does so many times in a row: three minutes. A fit waits for nothing as long as that."""
STOOD_STILL = 3
"""The exit code: that of a fit that failed."""


def give_up() -> None:
    """Say what happened and end the process: the thread that stands still cannot be woken."""
    sys.stderr.write(
        f"failed: nothing has moved for {PATIENCE * SAMPLE / 60:.0f} minutes. That is a fault of "
        "this software or of what it stands on, not of your data: please report it, with the "
        "settings. A fit on one core may end: set XLA_FLAGS="
        "--xla_force_host_platform_device_count=1 and begin again.\n"
    )
    sys.stderr.flush()
    os._exit(STOOD_STILL)


@contextmanager
def watched(
    give_up: Callable[[], None] = give_up, *, sample: float = SAMPLE, patience: int = PATIENCE
) -> Iterator[None]:
    """Call `give_up` where the work inside uses no time of the processor for too long.

    Looks are counted, and not seconds, so that a machine that sleeps or a process that is held
    does not look like one that stands still.
    """
    over = threading.Event()

    def look() -> None:
        spent, still = time.process_time(), 0
        while not over.wait(sample):
            now = time.process_time()
            still = still + 1 if now - spent < IDLE * sample else 0
            spent = now
            if still >= patience:
                give_up()
                return

    thread = threading.Thread(target=look, name="watchdog", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
