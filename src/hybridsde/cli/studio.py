"""`hybridsde studio`: the page that does what the commands do."""

import threading
import webbrowser
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from hybridsde._errors import InputError
from hybridsde.cli.app import app
from hybridsde.cli.options import Show, can_open

PORT = 8642
"""Where the studio listens, unless that is taken."""


@app.command()
def studio(
    folder: Annotated[
        Path, typer.Argument(help="Where settings and runs are; made where it lacks.")
    ] = Path(),
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="Of this machine; 8642 or a free one.")
    ] = None,
    show: Show = True,
) -> None:
    """Open a page on this machine: drop a table, write what you know, fit, forecast, decide.

    It works on the settings and run folders in FOLDER, as the other commands do. Only this machine
    can reach it, and only by the address that is printed. Ctrl-C ends it; a fit that runs is
    stopped and can be resumed.
    """
    from hybridsde._files import make_folder

    try:
        from hybridsde.studio.server import bind, serve
    except ModuleNotFoundError as error:
        raise InputError(
            f"The studio needs {error.name}. Install it with: pip install 'hybridsde[studio]'"
        ) from None
    make_folder(folder)
    console = Console()

    def announce(address: str) -> None:
        console.print(f"hybridsde studio of {folder.resolve()}", soft_wrap=True, highlight=False)
        console.print(address, soft_wrap=True, style="bold")
        console.print("Ctrl-C ends it.")
        if show and can_open():
            threading.Timer(0.5, webbrowser.open, [address]).start()

    serve(folder.resolve(), bind(port, PORT), announce)
