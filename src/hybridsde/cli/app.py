"""The command line itself: errors in one line, and what every command begins with."""

import io
import re
import sys
from collections.abc import Iterable
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from hybridsde._errors import FitFailed, InputError
from hybridsde.cli.stopping import code_of

WAY = (
    "demo", "studio", "look", "init", "check", "fit", "report", "forecast", "states", "score",
    "discover", "update", "compare", "certify", "verify", "sweep", "fleet", "reproduce",
)  # fmt: skip
"""Commands in the order in which somebody with a table needs them."""


class _OneLineErrors(TyperGroup):
    """Input that cannot be used ends a command with one line and code 2, a failed fit with 3."""

    def list_commands(self, ctx: Any) -> list[str]:
        """As they follow each other in use; others after them."""
        found = TyperGroup.list_commands(self, ctx)
        return sorted(found, key=lambda name: WAY.index(name) if name in WAY else len(WAY))

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        try:
            return TyperGroup.invoke(self, ctx)
        except InputError as error:
            command = self.get_command(ctx, ctx.invoked_subcommand or "")
            names = [one.name for one in getattr(command, "params", ())]
            typer.echo(f"error: {as_options(str(error), names)}", err=True)
            raise typer.Exit(2) from None
        except FitFailed as error:
            typer.echo(f"failed: {error}", err=True)
            raise typer.Exit(3) from None
        except KeyboardInterrupt as stopped:
            typer.echo("Stopped.", err=True)
            raise typer.Exit(code_of(stopped)) from None


def as_options(text: str, names: Iterable[str]) -> str:
    """A message of the library, with its arguments, `name="value"`, as options of a command."""
    options = {name: f"--{name.replace('_', '-')}" for name in names}

    def option(argument: re.Match) -> str:
        name, value = argument.groups()
        return f"{options[name]} {value}" if name in options else argument[0]

    return re.sub(r'\b(\w+)="?([\w.-]*\w)"?', option, text)


app = typer.Typer(
    cls=_OneLineErrors,
    help="Learn the missing part of a stochastic dynamical system, keep the known part, and "
    "forecast with honest uncertainty.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _version(asked: bool) -> bool:
    if asked:
        import hybridsde

        typer.echo(hybridsde.__version__)
        raise typer.Exit
    return asked


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Hybridsde."""
    from hybridsde._cache import compile_quickly, keep_compiled
    from hybridsde._devices import use_all_cores

    del version
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True)  # lines reach a file or pipe as they come
    use_all_cores()
    compile_quickly()
    keep_compiled()
