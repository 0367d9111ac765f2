"""Fan charts. The only place in the forecast layer that draws."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hybridsde.data import Trajectories
from hybridsde.forecast.forecast import Forecast

BLUE, INK = "#0072B2", "#222222"
"""From the Okabe–Ito palette, which colour-blind readers can tell apart."""


def draw_fan(axes: Axes, t: np.ndarray, draws: np.ndarray, colour: str = BLUE) -> None:
    """Median, 50 % and 90 % bands of draws with shape `sample time`."""
    low, lower, median, upper, high = np.quantile(draws, [0.05, 0.25, 0.5, 0.75, 0.95], 0)
    axes.fill_between(t, low, high, color=colour, alpha=0.18, lw=0, label="90 % interval")
    axes.fill_between(t, lower, upper, color=colour, alpha=0.35, lw=0, label="50 % interval")
    axes.plot(t, median, color=colour, lw=1.6, label="median")


def fan_chart(forecast: Forecast, truth: Trajectories | None, trajectories: int) -> Figure:
    """One row per trajectory, one column per observation."""
    draws = forecast.observations
    count = min(trajectories, draws.sizes["trajectory"])
    names = [str(name) for name in draws["obs"].values]
    figure, grid = plt.subplots(
        count,
        len(names),
        figsize=(3.6 * len(names), 2.4 * count),
        squeeze=False,
        sharex="row",
        layout="constrained",
    )
    for row in range(count):
        series = draws.isel(trajectory=row)
        t = series["clock"].values
        for column, name in enumerate(names):
            axes = grid[row, column]
            draw_fan(axes, t, series.isel(obs=column).values)
            if truth is not None:
                name_of_row = str(series["trajectory"].values)
                if name_of_row in truth.ids:
                    draw_recorded(axes, truth, truth.ids.index(name_of_row), column)
            axes.spines[["top", "right"]].set_visible(False)
            axes.set_ylabel(name)
            if row == 0:
                axes.set_title(name)
            if row == count - 1:
                axes.set_xlabel("time")
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False)
    return figure


def draw_recorded(
    axes: Axes,
    truth: Trajectories,
    row: int,
    column: int,
    *,
    ink: str = INK,
    face: str = "white",
) -> None:
    """The recorded values of one observation of one trajectory, where there are any."""
    seen = truth.observed[row, :, column]
    axes.plot(
        truth.times[row, seen],
        truth.values[row, seen, column],
        "o",
        ms=3,
        mfc=face,
        mec=ink,
        mew=0.8,
        label="recorded",
    )
