"""Figures as files."""

import io
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from hybridsde._files import write_whole

INK = "#222222"
COLOURS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7")
"""Okabe–Ito, told apart by colour-blind readers."""


def write_figure(figure: Figure, path: Path) -> None:
    """Write a figure as its name says, in full or not at all."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format=path.suffix[1:], dpi=150)
    write_whole(path, buffer.getvalue())


def save(figure: Figure, folder: Path, name: str) -> list[str]:
    """Write a figure twice and close it."""
    names = [f"{name}.png", f"{name}.svg"]
    for each in names:
        write_figure(figure, folder / each)
    plt.close(figure)
    return names
