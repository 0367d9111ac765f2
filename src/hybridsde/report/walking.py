"""What a forecast of walking looks like: joint angles with bands, and a stick figure that moves."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.animation import FuncAnimation, PillowWriter
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hybridsde._files import write_whole
from hybridsde.datasets.skeleton import SKELETON, joints
from hybridsde.experiments.pictures import Picture
from hybridsde.forecast.chart import BLUE, INK, draw_fan

ANGLES = {
    "rfemur_rx": "right hip",
    "lfemur_rx": "left hip",
    "rhumerus_rx": "right shoulder",
    "rtibia_rx": "right knee",
    "ltibia_rx": "left knee",
    "lhumerus_rx": "left shoulder",
}
"""The angles that are shown, by their channel."""
SLOW, STRIDE, PER_SECOND = 2, 6, 10
"""The stick figure moves at half speed: every sixth of 120 frames a second, ten a second."""
PATHS = 12
VIEWS = {"from the side": (2, 1), "from the front": (0, 1)}
"""Which of the coordinates x, y, z are drawn to the right and up."""


def angles(picture: Picture, title: str) -> Figure:
    """Median and bands of joint angles, with what happened."""
    (draws,) = (forecast.observations for forecast in picture.forecasts.values())
    truth, clock = picture.truth, draws["clock"].values[0]
    figure, grid = plt.subplots(
        2, len(ANGLES) // 2, figsize=(11, 5.4), sharex=True, layout="constrained"
    )
    for axes, (channel, name) in zip(grid.flat, ANGLES.items(), strict=True):
        draw_fan(axes, clock, draws.sel(obs=channel).isel(trajectory=0).values)
        values = truth.values[0, :, truth.states.index(channel)]
        axes.plot(truth.times[0], values, color=INK, lw=1.2, ls=(0, (4, 2)), label="recorded")
        axes.set_title(name)
        axes.set_ylabel("angle about its mean (degrees)")
        axes.spines[["top", "right"]].set_visible(False)
    for axes in grid[-1]:
        axes.set_xlabel("time (s)")
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.suptitle(title)
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    return figure


def save_stick_figure(picture: Picture, posture: np.ndarray, path: Path, title: str) -> None:
    """An animated GIF: the recorded walker, the forecast one, and some of its possible paths."""
    (draws,) = (forecast.observations for forecast in picture.forecasts.values())
    context = picture.truth.times.shape[1] - draws.sizes["time"]
    values = draws.isel(trajectory=0).values
    bodies = [joints(picture.truth.values[0, context:] + posture)]
    bodies += [joints(values.mean(0) + posture)]
    smooth = _without_noise(values[:PATHS])
    bodies += [joints(path + posture) for path in smooth]
    styles = [(INK, 2.4, 1.0), (BLUE, 2.4, 1.0), *[(BLUE, 0.7, 0.3)] * PATHS]
    figure, grid = plt.subplots(1, 2, figsize=(5.6, 4.2), layout="constrained")
    lines = [[_limbs(axes, *style) for style in styles] for axes in grid]
    for axes, name in zip(grid, VIEWS, strict=True):
        axes.set(xlim=(-1.4, 1.4), ylim=(-2.5, 1.8), aspect="equal", title=name)
        axes.axis("off")
    figure.legend(
        [lines[0][0][0], lines[0][1][0], lines[0][2][0]],
        ["recorded", "mean forecast", "possible paths"],
        loc="outside lower center",
        ncols=3,
        frameon=False,
    )
    heading = figure.suptitle(title)

    def show(frame: int):
        heading.set_text(f"{title}, {(frame + context) / 120:.2f} s")
        for limbs, (right, up) in zip(lines, VIEWS.values(), strict=True):
            for body, parts in zip(bodies, limbs, strict=True):
                for line, (name, bone) in zip(parts, SKELETON.items(), strict=True):
                    ends = np.stack([body[bone.parent][frame], body[name][frame]])
                    line.set_data(ends[:, right], ends[:, up])
        return []

    frames = range(0, values.shape[1], STRIDE)
    animation = FuncAnimation(figure, show, frames=frames)
    partial = path.with_suffix(".partial.gif")
    animation.save(partial, PillowWriter(fps=PER_SECOND), dpi=80)
    plt.close(figure)
    write_whole(path, partial.read_bytes())
    partial.unlink()


def _limbs(axes: Axes, colour: str, width: float, opacity: float) -> list:
    """An empty line for every bone."""
    return [
        axes.plot([], [], color=colour, lw=width, alpha=opacity, solid_capstyle="round")[0]
        for _ in SKELETON
    ]


def _without_noise(draws: np.ndarray, width: int = 15) -> np.ndarray:
    """Moving means over time: measurement noise of every frame would make a walker tremble."""
    window = np.hanning(width + 2)[1:-1]
    padded = np.pad(draws, [(0, 0), (width // 2, width // 2), (0, 0)], mode="edge")
    kernel = window / window.sum()
    return np.apply_along_axis(lambda path: np.convolve(path, kernel, "valid"), 1, padded)
