"""Figures that compare forecasts."""

import io
from collections.abc import Mapping
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from hybridsde._files import write_whole
from hybridsde.data import Trajectories
from hybridsde.forecast import Forecast
from hybridsde.forecast.chart import draw_fan

INK = "#222222"
COLOURS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7")
"""Okabe–Ito, told apart by colour-blind readers."""


def compare_forecasts(
    forecasts: Mapping[str, Forecast],
    truth: Trajectories,
    *,
    title: str,
    trained: float | None = None,
) -> Figure:
    """One row per forecaster, one column per observation, the first trajectory of each.

    `trained` marks how far ahead training looked.
    """
    names = truth.states
    figure, grid = plt.subplots(
        len(forecasts),
        len(names),
        figsize=(3.8 * len(names), 2.5 * len(forecasts) + 0.6),
        sharex=True,
        sharey="col",
        squeeze=False,
        layout="constrained",
    )
    seen = truth.observed[0]
    t0 = truth.times[0, 0]
    for row, (who, forecast) in enumerate(forecasts.items()):
        draws = forecast.observations.isel(trajectory=0)
        for column, name in enumerate(names):
            axes = grid[row, column]
            draw_fan(axes, draws["clock"].values, draws.isel(obs=column).values, COLOURS[row])
            axes.plot(
                truth.times[0, seen[:, column]],
                truth.values[0, seen[:, column], column],
                color=INK,
                lw=1.1,
                ls=(0, (3, 1.5)),
                label="truth",
            )
            if trained is not None:
                axes.axvline(t0 + trained, color="0.6", lw=0.8, ls=":")
            axes.spines[["top", "right"]].set_visible(False)
            if row == 0:
                axes.set_title(f"state {name}")
            if row == len(forecasts) - 1:
                axes.set_xlabel("time")
        grid[row, 0].set_ylabel(who, fontweight="bold")
        grid[row, -1].legend(fontsize=7, frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    for column in range(len(names)):
        grid[0, column].set_ylim(*_limits(truth.values[0, seen[:, column], column]))
    if trained is not None:
        grid[0, 0].annotate(
            "length of a\ntraining sequence",
            (t0 + trained, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(4, -2),
            textcoords="offset points",
            va="top",
            fontsize=7,
            color="0.35",
        )
    figure.suptitle(title)
    return figure


def _limits(values, margin: float = 0.35) -> tuple[float, float]:
    """An axis that keeps the truth in the middle when a fan runs wide."""
    spread = values.max() - values.min()
    return float(values.min() - margin * spread), float(values.max() + margin * spread)


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
