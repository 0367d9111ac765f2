"""Ctrl-C and SIGTERM: what is kept is said, with the command that goes on, and the usual code."""

import os
import shlex
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from hybridsde.store.folder import CHECKPOINT, RUN, TRIAL_CHECKPOINT

INTERRUPTED, TERMINATED = 130, 143
"""Exit codes: 128 and the number of the signal."""
GRACE = 10.0
"""Seconds after a signal that the work may take to end; a program that is being compiled, or that
hangs, does not hear of it."""
CODES = {signal.SIGINT: INTERRUPTED, signal.SIGTERM: TERMINATED}
FITS_KEPT = "Fits that had ended are kept."


class Terminated(KeyboardInterrupt):
    """SIGTERM, which ends work as Ctrl-C does."""


def code_of(stopped: KeyboardInterrupt) -> int:
    """The exit code that shells and supervisors expect."""
    return TERMINATED if isinstance(stopped, Terminated) else INTERRUPTED


def kept_of_fit(folder: Path) -> str:
    """What a stopped fit leaves in its folder, in a sentence."""
    if (folder / RUN).exists():
        return "The run itself is complete."
    if any((folder / f"{CHECKPOINT}{end}").exists() for end in ("", TRIAL_CHECKPOINT)):
        return "The training of the networks is kept, and goes on there; other parts begin again."
    return "Nothing of the fit is kept: a library of terms is searched for anew."


@contextmanager
def stoppable(*command: object, kept: Callable[[], str] = lambda: FITS_KEPT) -> Iterator[None]:
    """Where a signal ends the work inside, say what is kept and what command goes on."""

    def say() -> None:
        again = shlex.join(str(word) for word in ("hybridsde", *command))
        typer.echo(f"Stopped. {kept()} Go on with: {again}", err=True)

    try:
        with _heard(say):
            yield
    except KeyboardInterrupt as stopped:
        say()
        raise typer.Exit(code_of(stopped)) from None


@contextmanager
def _heard(say: Callable[[], None]) -> Iterator[None]:
    """SIGTERM as an exception, and an end by force after a while of deafness."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def terminate(*_: object) -> None:
        raise Terminated

    over = threading.Event()
    inlet, outlet = os.pipe()
    os.set_blocking(outlet, False)

    def watch() -> None:
        number = os.read(inlet, 1)
        if number and number[0] in CODES and not over.wait(GRACE):
            say()
            os._exit(CODES[signal.Signals(number[0])])

    before = signal.signal(signal.SIGTERM, terminate)
    told = signal.set_wakeup_fd(outlet, warn_on_full_buffer=False)
    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    try:
        yield
    finally:
        over.set()
        signal.set_wakeup_fd(told)
        signal.signal(signal.SIGTERM, before)
        os.close(outlet)
        watching.join()
        os.close(inlet)
