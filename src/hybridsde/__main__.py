"""`python -m hybridsde`."""

from hybridsde.cli import app

app()
