"""What commands share: their options, and notices about the input."""

import os
import sys
import warnings
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from hybridsde._errors import InputNotice
from hybridsde.fit import FitDiverged

Config = Annotated[Path, typer.Argument(help="Settings, as written by `hybridsde init`.")]
RunFolder = Annotated[Path, typer.Argument(help="Folder that `hybridsde fit` wrote.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print results only, no progress.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for other programs.")]
Trust = Annotated[
    bool, typer.Option("--trust", help="Run the Python file with the physics of this run.")
]


@contextmanager
def notices(console: Console) -> Iterator[None]:
    """Print notices about the input as they come, one line each."""
    shown = warnings.showwarning
    said: set[str] = set()

    def show(message, category, *rest, **named):
        if issubclass(category, InputNotice | FitDiverged):
            if str(message) in said:
                return
            said.add(str(message))
            console.print(f"note: {message}", soft_wrap=True, highlight=False, markup=False)
        else:
            shown(message, category, *rest, **named)

    with warnings.catch_warnings():
        for category in (InputNotice, FitDiverged):
            warnings.simplefilter("always", category)
        warnings.showwarning = show
        yield


Show = Annotated[
    bool, typer.Option("--open/--no-open", help="Open the page in a browser, where there is one.")
]


def show_page(page: Path, *, show: bool) -> None:
    """Open a page that was written, if that is asked for and somebody sits at a screen."""
    if show and can_open():
        webbrowser.open(page.resolve().as_uri())


def can_open() -> bool:
    """Whether somebody sits at a screen: a terminal, and a display where the system has them."""
    shown = os.name == "nt" or sys.platform == "darwin"
    seen = shown or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    return bool(sys.stdout.isatty() and seen)
