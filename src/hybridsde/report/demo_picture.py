"""The picture of the demo: what was recorded, and two forecasts of what nobody has seen."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hybridsde.datasets import pendulum
from hybridsde.forecast.chart import draw_fan
from hybridsde.project.demo import BLACK_BOX, GUESS, HYBRID, NEW, SMALL, TRUTH, Demo

INK, GREY = "#222222", "#5f5f5f"
COLOURS = {BLACK_BOX: "#D55E00", HYBRID: "#0072B2"}
"""Okabe–Ito, told apart by colour-blind readers."""
TITLES = {
    BLACK_BOX: "Black box: a neural network alone",
    HYBRID: "Hybrid: rough gravity is given, friction is learned",
}
LIMIT = 180.0


def demo_picture(found: Demo) -> Figure:
    """Recordings on the left; on the right one forecast of each model, and what was read off."""
    figure = plt.figure(figsize=(12, 6.2), layout="constrained")
    left, right = np.array(figure.subfigures(1, 2, width_ratios=[1, 2.1], wspace=0.03))
    _recorded(left, found)
    panels = right.subplots(2, 1, sharex=True, sharey=True)
    for axes, name in zip(panels, (BLACK_BOX, HYBRID), strict=True):
        _forecast(axes, found, name)
    panels[1].set_xlabel("seconds after the one measurement that the forecast was given")
    panels[0].legend(loc="upper right", fontsize=8.5, frameon=False, ncols=5)
    return figure


def _recorded(figure, found: Demo) -> None:
    """The recordings to learn from, one below the other, and the equations."""
    train = found.split.train
    grid = figure.subplots(len(train) + 1, 1, height_ratios=[*[1] * len(train), 1.9])
    for row, axes in enumerate(grid[:-1]):
        rows = int(train.lengths[row])
        seen = train.observed[row, :rows, 0]
        times, angles = train.times[row, :rows], np.degrees(train.values[row, :rows, 0])
        axes.plot(times[seen], angles[seen], ".", color=INK, ms=4)
        axes.set_ylim(-1.35 * np.degrees(SMALL), 1.35 * np.degrees(SMALL))
        axes.set_ylabel("angle °", fontsize=9)
        axes.tick_params(labelsize=8)
        axes.spines[["top", "right"]].set_visible(False)
    grid[0].set_title(f"Learned from: {len(train)} small swings", loc="left", fontweight="bold")
    grid[-2].set_xlabel("seconds", fontsize=9)
    _equations(grid[-1], found)


def reach(found: Demo) -> float:
    """The largest angle that was recorded, in degrees."""
    train = found.split.train
    return float(np.degrees(np.abs(train.values[..., 0][train.observed[..., 0]]).max()))


def _equations(axes: Axes, found: Demo) -> None:
    """What was read off, beside the truth."""
    axes.axis("off")
    w = (found.runs[HYBRID].metadata.parameters or {})["w"]
    true = pendulum.TRUE
    read = "" if found.friction is None else f"  {found.friction[0]:+.2f} v".replace("-", "− ")
    lines = [
        ("Given, beside dq/dt = v", True, INK),
        (f"dv/dt = − {GUESS:.2f} sin q", False, GREY),
        ("Read off by the hybrid", True, INK),
        (f"dv/dt = − {w['value']:.2f} sin q{read}", False, COLOURS[HYBRID]),
        ("True", True, INK),
        (f"dv/dt = − {true['w']:.2f} sin q  − {true['c']:.2f} v", False, INK),
    ]
    for row, (words, bold, colour) in enumerate(lines):
        axes.text(
            0,
            0.95 - 0.19 * row,
            words,
            transform=axes.transAxes,
            fontsize=10 if bold else 13,
            fontweight="bold" if bold else "normal",
            color=colour,
            family="serif" if not bold else None,
        )


def _forecast(axes: Axes, found: Demo, name: str) -> None:
    """The angle: bands, the truth, and how wrong and how honest the model is over all of them."""
    axes.axhspan(-reach(found), reach(found), color="0.5", alpha=0.09, lw=0, label="seen before")
    draws = found.forecasts[name].observations.isel(trajectory=0, obs=0)
    draw_fan(axes, draws["clock"].values, np.degrees(draws.values), COLOURS[name])
    truth = found.truth
    axes.plot(
        truth.times[0],
        np.degrees(truth.values[0, :, 0]),
        color=INK,
        lw=1.2,
        ls=(0, (4, 1.6)),
        label="what happened",
    )
    scores = found.scores.loc[name]
    times = scores["crps"] / found.scores.loc[TRUTH, "crps"]
    axes.set_title(TITLES[name], loc="left", fontweight="bold", color=COLOURS[name])
    axes.text(
        0.995,
        0.03,
        f"over {NEW} new swings: error (CRPS) {times:.1f} × that of the true equations; "
        f"90 % bands hold {scores['coverage90']:.0%}",
        transform=axes.transAxes,
        ha="right",
        fontsize=9,
        color=GREY,
    )
    axes.set_ylabel("angle of the pendulum, °")
    axes.set_ylim(-LIMIT, LIMIT)
    axes.set_yticks(np.arange(-180, 181, 90))
    axes.spines[["top", "right"]].set_visible(False)
