"""What a forecast of walking looks like: joint angles with bands, and a stick figure that moves."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.animation import FuncAnimation, PillowWriter
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from hybridsde._files import write_whole
from hybridsde.forecast.chart import BLUE, INK, draw_fan
from hybridsde.paper.amc import FPS
from hybridsde.paper.figure_data import Picture
from hybridsde.paper.skeleton import SKELETON, joints

ANGLES = {
    "rfemur_rx": "right hip",
    "lfemur_rx": "left hip",
    "rhumerus_rx": "right shoulder",
    "rtibia_rx": "right knee",
    "ltibia_rx": "left knee",
    "lhumerus_rx": "left shoulder",
}
"""The angles that are shown, by their channel."""
STRIDE, PER_SECOND = 6, 10
"""The stick figure moves at half speed: every sixth of 120 frames a second, ten a second."""
PATHS = 12
VIEWS = {"from the side": [2, 1], "from the front": [0, 1]}
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
        axes.spines[["top", "right"]].set_visible(False)
    for axes in grid[-1]:
        axes.set_xlabel("time (s)")
    figure.supylabel("angle about its mean (degrees)")
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
    drawn = [[_limbs(axes, *style) for style in styles] for axes in grid]
    for axes, name in zip(grid, VIEWS, strict=True):
        axes.set(xlim=(-1.4, 1.4), ylim=(-2.5, 1.8), aspect="equal", title=name)
        axes.axis("off")
    figure.legend(
        drawn[0][:3],
        ["recorded", "mean forecast", "possible paths"],
        loc="outside lower center",
        ncols=3,
        frameon=False,
    )
    heading = figure.suptitle(title)

    def show(frame: int):
        heading.set_text(f"{title}, {(frame + context) / FPS:.2f} s")
        for limbs, view in zip(drawn, VIEWS.values(), strict=True):
            for body, lines in zip(bodies, limbs, strict=True):
                lines.set_segments(list(_segments(body, frame)[..., view]))
        return []

    show(0)
    figure.canvas.draw()
    figure.set_layout_engine("none")  # laid out once, not for every frame
    frames = range(0, values.shape[1], STRIDE)
    animation = FuncAnimation(figure, show, frames=frames)
    partial = path.with_suffix(".partial.gif")
    animation.save(partial, PillowWriter(fps=PER_SECOND), dpi=80)
    plt.close(figure)
    write_whole(path, partial.read_bytes())
    partial.unlink()


def _limbs(axes: Axes, colour: str, width: float, opacity: float) -> LineCollection:
    """Lines for the bones of one body."""
    lines = LineCollection([], colors=colour, linewidths=width, alpha=opacity, capstyle="round")
    axes.add_collection(lines)
    return lines


def _segments(body: dict[str, np.ndarray], frame: int) -> np.ndarray:
    """Both ends of every bone in one frame: bone × end × coordinate."""
    return np.stack(
        [[body[bone.parent][frame], body[name][frame]] for name, bone in SKELETON.items()]
    )


def _without_noise(draws: np.ndarray, width: int = 15) -> np.ndarray:
    """Moving means over time: measurement noise of every frame would make a walker tremble."""
    window = np.hanning(width + 2)[1:-1]
    padded = np.pad(draws, [(0, 0), (width // 2, width // 2), (0, 0)], mode="edge")
    kernel = window / window.sum()
    return np.apply_along_axis(lambda path: np.convolve(path, kernel, "valid"), 1, padded)
