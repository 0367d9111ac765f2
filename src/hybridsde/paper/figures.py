"""The paper's figures, readable without the paper. Each is written as PNG and SVG."""

from collections.abc import Callable

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hybridsde.paper.figure_data import Picture
from hybridsde.report.figures import COLOURS, INK


def attractor(picture: Picture) -> Figure:
    """The recording in three dimensions, training half and test half."""
    values = picture.recording.values[0]
    half = len(values) // 2
    figure = plt.figure(figsize=(6.4, 5.4), layout="constrained")
    axes = figure.add_subplot(projection="3d")
    for part, colour, name in (
        (values[: half + 1], COLOURS[1], "first half: training"),
        (values[half:], COLOURS[0], "second half: test"),
    ):
        axes.plot(*part.T, color=colour, lw=0.8, label=name)
    for setter, name in zip(
        (axes.set_xlabel, axes.set_ylabel, axes.set_zlabel),
        picture.recording.states,
        strict=True,
    ):
        setter(name)
    axes.view_init(elev=18, azim=-60)
    axes.legend(frameon=False, loc="upper left")
    figure.suptitle("Stochastic Lorenz attractor, 2000 observations 0.01 apart")
    return figure


def bands(picture: Picture, steps: int, sds: int, title: str) -> Figure:
    """Mean ± some standard deviations of every model, one row per state, against the truth."""

    def draw(axes: Axes, t: np.ndarray, draws: np.ndarray, colour: str, name: str) -> None:
        with np.errstate(invalid="ignore"):  # a path that exploded leaves a gap
            mean, sd = draws.mean(0), draws.std(0, ddof=1)
        label = f"{name}: mean ± {sds} sd over {len(draws)} paths"
        axes.fill_between(t, mean - sds * sd, mean + sds * sd, color=colour, alpha=0.22, lw=0)
        axes.plot(t, mean, color=colour, lw=1.5, label=label)

    return _panels(picture, steps, draw, title)


def paths(picture: Picture, steps: int, count: int, title: str) -> Figure:
    """Single sampled paths of every model, one row per state, against the truth."""

    def draw(axes: Axes, t: np.ndarray, draws: np.ndarray, colour: str, name: str) -> None:
        lines = axes.plot(t, draws[:count].T, color=colour, lw=0.8, alpha=0.7)
        lines[0].set_label(f"{name}: {count} sampled paths")

    return _panels(picture, steps, draw, title)


def _panels(picture: Picture, steps: int, draw: Callable, title: str) -> Figure:
    """A column per model and a row per state, with shared axes and the truth dashed."""
    truth, states = picture.truth, picture.truth.states
    figure, grid = plt.subplots(
        len(states),
        len(picture.forecasts),
        figsize=(4.6 * len(picture.forecasts), 1.9 * len(states) + 1),
        sharex=True,
        sharey="row",
        squeeze=False,
        layout="constrained",
    )
    for column, (name, forecast) in enumerate(picture.forecasts.items()):
        draws = forecast.states.isel(trajectory=0, time=slice(steps))
        t = draws["clock"].values
        for row, state in enumerate(states):
            axes = grid[row, column]
            draw(axes, t, draws.isel(state=row).values.astype(float), COLOURS[column], name)
            seen = slice(0, steps + 1)
            axes.plot(
                truth.times[0, seen],
                truth.values[0, seen, row],
                color=INK,
                lw=1.0,
                ls=(0, (3, 1.5)),
                label="truth",
            )
            axes.spines[["top", "right"]].set_visible(False)
            axes.set_ylim(*_room(truth.values[0, seen, row]))
            axes.margins(x=0.01)
            if column == 0:
                axes.set_ylabel(state)
        grid[0, column].legend(
            fontsize=8, frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2
        )
        grid[-1, column].set_xlabel("time")
    figure.suptitle(title)
    return figure


def _room(values: np.ndarray) -> tuple[float, float]:
    """Space for bands that run wide, without letting one that explodes set the scale."""
    low, high = values.min(), values.max()
    spread = max(high - low, 1e-6)
    return float(low - 0.7 * spread), float(high + 0.7 * spread)


def knowledge(curve: pd.DataFrame, floor: float, title: str) -> Figure:
    """Test error against the number of training sequences, a line per known equation.

    Lines are medians over repetitions, bands their quartiles.
    """
    figure, axes = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
    sizes = np.unique(curve["sequences"])
    styles = zip(dict.fromkeys(curve["known"]), COLOURS, "osD^", strict=False)
    for known, colour, marker in styles:
        errors = curve[curve["known"] == known].pivot(index="sequences", columns="repetition")
        low, middle, high = np.quantile(errors["mse"].to_numpy(), [0.25, 0.5, 0.75], 1)
        name = "nothing" if known == "none" else f"d{known}"
        axes.fill_between(sizes, low, high, color=colour, alpha=0.15, lw=0)
        axes.plot(sizes, middle, color=colour, marker=marker, ms=5, label=f"{name} known")
    axes.axhline(floor, color=INK, lw=1, ls=(0, (3, 1.5)), label="true equations")
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="training sequences of 24 observations",
        ylabel="test MSE",
    )
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.minorticks_off()
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    axes.set_title(title)
    return figure


def cost_figure(sweeps: dict[str, pd.Series], exponents: dict[str, int]) -> Figure:
    """Time of an iteration against each size, doubly logarithmic, beside the predicted slope."""
    figure, grid = plt.subplots(2, 3, figsize=(10, 6), sharey=True, layout="constrained")
    for axes, (name, times) in zip(grid.flat, sweeps.items(), strict=True):
        sizes, milliseconds = times.index.to_numpy(float), 1e3 * times.to_numpy()
        predicted = milliseconds[-1] * (sizes / sizes[-1]) ** exponents[name]
        axes.plot(
            sizes, predicted, color=INK, lw=1, ls=(0, (3, 1.5)), label=f"slope {exponents[name]}"
        )
        axes.plot(sizes, milliseconds, color=COLOURS[0], marker="o", ms=5, label="measured")
        axes.set(xscale="log", yscale="log", xlabel=name)
        axes.set_xticks(sizes, [f"{size:g}" for size in sizes])
        axes.minorticks_off()
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=8, loc="upper left")
    for row in grid:
        row[0].set_ylabel("milliseconds per iteration")
    figure.suptitle("What one training iteration costs")
    return figure
