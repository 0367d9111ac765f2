"""`hybridsde` and `python -m hybridsde`: all commands, those of the paper included."""

from hybridsde.cli import app
from hybridsde.paper.commands import reproduce

app.add_typer(reproduce, name="reproduce")


def main() -> None:
    """Run the command line."""
    app()


if __name__ == "__main__":
    main()
