"""Small pictures for the report page: each readable on a phone, on light and dark ground."""

import io
import re
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes

from hybridsde.data import Trajectories
from hybridsde.forecast.calibration import LEVELS
from hybridsde.forecast.chart import draw_fan, draw_recorded
from hybridsde.report.bands import lie_apart

INK = "#314159"
"""Stands for the colour of the text, which depends on the reader's theme."""
BLUE, ORANGE, GREEN, PINK = "#3b8fd1", "#e08a1e", "#20a486", "#cc79a7"
PART_COLOURS = {"train": BLUE, "validation": GREEN, "test": ORANGE}
WIDE = (6.6, 3.6)
"""Inches of a picture of which two stand side by side."""
STYLE = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.family": "sans-serif",
    "font.size": 11,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.titlesize": 11.5,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "legend.frameon": False,
    "legend.fontsize": 10,
}


class Panel:
    """One picture, drawn inside a `with` block and read as SVG afterwards."""

    def __init__(self, name: str, width: float = 4.4, height: float = 3.0):
        self._name, self._size = name, (width, height)
        self.svg = ""

    def _settings(self) -> dict[Any, Any]:
        return {**STYLE, "svg.hashsalt": self._name}

    def __enter__(self) -> Axes:
        self._style = plt.rc_context(self._settings())
        self._style.__enter__()
        self._figure, axes = plt.subplots(figsize=self._size, layout="constrained")
        return axes

    def __exit__(self, *error: object) -> None:
        if error[0] is None:
            buffer = io.StringIO()
            self._figure.savefig(buffer, format="svg", metadata={"Date": None})
            self.svg = _inline(buffer.getvalue(), self._name)
        plt.close(self._figure)
        self._style.__exit__(None, None, None)


def _inline(svg: str, name: str) -> str:
    """Without header and fixed size, with the theme's ink, and ids that no other picture has."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.S)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    svg = svg.replace(INK, "currentColor")
    prefix = re.sub(r"\W", "", name)
    svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
    svg = re.sub(r"url\(#", f"url(#{prefix}-", svg)
    return re.sub(r'xlink:href="#', f'xlink:href="#{prefix}-', svg)


def recordings(parts: dict[str, Trajectories], column: int, time_label: str) -> str:
    """All trajectories of one state, coloured by what they are used for."""
    first = next(iter(parts.values()))
    name, apart = first.states[column], lie_apart(list(parts.values()))
    panel = Panel(f"data{column}")
    with panel as axes:
        for part, data in parts.items():
            for row in range(len(data)):
                seen = data.observed[row, :, column]
                axes.plot(
                    data.times[row, seen] - apart * data.times[row, 0],
                    data.values[row, seen, column],
                    color=PART_COLOURS[part],
                    lw=0.8,
                    alpha=0.7,
                    label=f"{part} ({len(data)})" if row == 0 else None,
                )
        label = f"{time_label.split(' since ')[0]} since its start" if apart else time_label
        axes.set(xlabel=label, ylabel=name, title=f"Recordings of {name}")
        axes.legend(loc="upper right", ncols=3)
        axes.margins(y=0.18)
    return panel.svg


def training(history: pd.DataFrame) -> str:
    """Loss per epoch, and that on the validation data."""
    panel = Panel("training", *WIDE)
    with panel as axes:
        curves = [history["loss"]]
        axes.plot(history.index + 1, history["loss"], color=BLUE, lw=1.3, label="training loss")
        if "validation_loss" in history:
            checked = history["validation_loss"]
            axes.plot(history.index + 1, checked, color=ORANGE, lw=1.3, label="validation −ln p")
            curves.append(checked)
            if np.isfinite(checked).any():
                best = int(np.nanargmin(checked))
                axes.plot(best + 1, checked.iloc[best], "o", color=ORANGE, ms=4, label="kept")
        shown = np.concatenate([rows.iloc[len(rows) // 20 :] for rows in curves])
        shown = shown[np.isfinite(shown)]
        low, high = np.quantile(shown, [0, 0.98]) if shown.size else (0.0, 1.0)
        axes.set_ylim(low - 0.08 * (high - low) - 1e-9, high + 0.1 * (high - low) + 1e-9)
        axes.set(xlabel="epoch", ylabel="loss per trajectory", title="Training")
        axes.legend()
    return panel.svg


def fan(draws: xr.DataArray, truth: Trajectories, row: int, column: int, time_label: str) -> str:
    """The forecast of one observation of one trajectory, and what was recorded."""
    series = draws.isel(trajectory=row, obs=column)
    name, trajectory = str(series["obs"].values), str(series["trajectory"].values)
    panel = Panel(f"fan{row}x{column}")
    with panel as axes:
        draw_fan(axes, series["clock"].values, series.values, BLUE)
        draw_recorded(axes, truth, row, column, ink=INK, face="none")
        axes.set(xlabel=time_label, ylabel=name, title=f"{name} of {trajectory}")
        if column == 0 and row == 0:
            axes.legend(ncols=2)
    return panel.svg


def calibration(covered: dict[str, np.ndarray]) -> str:
    """Stated against observed coverage."""
    panel = Panel("calibration")
    with panel as axes:
        axes.plot([0, 1], [0, 1], color=INK, lw=0.8, ls=":", label="perfect")
        for (name, shares), colour in zip(covered.items(), _colours(len(covered)), strict=True):
            axes.plot(LEVELS, shares, "o-", ms=3, lw=1.2, color=colour, label=name)
        axes.set(xlabel="stated probability", ylabel="share inside", title="Coverage", xlim=(0, 1))
        axes.legend()
    return panel.svg


def pit_histogram(pits: np.ndarray) -> str:
    """Flat where the forecast is calibrated; a hump says too wide, a bowl too narrow."""
    panel = Panel("pit")
    with panel as axes:
        axes.hist(pits, bins=list(np.linspace(0, 1, 11)), density=True, color=BLUE, alpha=0.75)
        axes.axhline(1, color=INK, lw=0.8, ls=":")
        axes.set(xlabel="PIT value", ylabel="density", title="PIT histogram")
    return panel.svg


def innovations(time: np.ndarray, z: np.ndarray, name: str, label: str) -> str:
    """Errors of forecasts from row to row, in their own spread, along time."""
    panel = Panel(f"innovations{name}", *WIDE)
    with panel as axes:
        for level in (-2, 0, 2):
            axes.axhline(level, color=INK, lw=0.8, ls="-" if level == 0 else ":")
        axes.plot(time.ravel(), z.ravel(), ".", ms=3, color=BLUE, alpha=0.6)
        axes.set(xlabel=label, ylabel="error / its spread", title=f"Errors of {name}, row by row")
    return panel.svg


def correlations(values: np.ndarray, band: float, name: str) -> str:
    """How errors hang together with those some rows later; inside the band they do not."""
    panel = Panel(f"correlations{name}", *WIDE)
    with panel as axes:
        lags = np.arange(1, len(values) + 1)
        axes.axhspan(-band, band, color=INK, alpha=0.12, lw=0, label="white noise, 95 %")
        axes.bar(lags, values, width=0.5, color=BLUE)
        axes.axhline(0, color=INK, lw=0.6)
        low, high = min(-0.3, values.min() - 0.05), max(0.3, values.max() + 0.05)
        axes.set(xlabel="rows apart", ylabel="correlation", ylim=(low, high))
        axes.set_title(f"Do errors of {name} hang together?")
        axes.legend(loc="upper right")
    return panel.svg


def hidden_state(draws: xr.DataArray, row: int, name: str, label: str) -> str:
    """A state that nobody measured, as a record shows it."""
    series = draws.isel(trajectory=row).sel(state=name)
    trajectory = str(series["trajectory"].values)
    panel = Panel(f"hidden{row}{name}")
    with panel as axes:
        draw_fan(axes, series["clock"].values, series.values, GREEN)
        axes.set(xlabel=label, ylabel=name, title=f"{name} of {trajectory}, not measured")
    return panel.svg


def shares(time: np.ndarray, aleatoric: np.ndarray, epistemic: np.ndarray, label: str) -> str:
    """How much of the variance is noise, and how much is doubt about the drift."""
    total = aleatoric + epistemic
    whole = np.where(total > 0, total, 1.0)
    panel = Panel("shares")
    with panel as axes:
        axes.stackplot(
            time,
            100 * aleatoric / whole,
            100 * epistemic / whole,
            colors=[BLUE, PINK],
            alpha=0.75,
            labels=["aleatoric: noise", "epistemic: doubt about the drift"],
        )
        axes.set(xlabel=label, ylabel="share of variance, %", ylim=(0, 100))
        axes.set_title("Where the uncertainty comes from")
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.22))
    return panel.svg


def slice_of_drift(
    at: np.ndarray, learned: np.ndarray, known: np.ndarray | None, state: str, rate: str
) -> str:
    """The drift along one state, the others at their middle; a band over draws of the weights."""
    panel = Panel(f"slice{state}{rate}")
    with panel as axes:
        low, middle, high = np.quantile(learned, [0.05, 0.5, 0.95], 0)
        axes.fill_between(at, low, high, color=ORANGE, alpha=0.25, lw=0)
        axes.plot(at, middle, color=ORANGE, lw=1.5, label="learned")
        if known is not None:
            axes.plot(at, known, color=BLUE, lw=1.5, label="known")
        axes.axhline(0, color=INK, lw=0.5, ls=":")
        axes.set(xlabel=state, ylabel=f"d{rate}/dt", title=f"Drift of {rate} against {state}")
        axes.legend()
    return panel.svg


def field(
    grid: tuple[np.ndarray, np.ndarray],
    arrows: np.ndarray,
    seen: np.ndarray,
    names: tuple[str, str],
    title: str,
    colour: str,
) -> str:
    """A drift field over two states, with the places where data are."""
    panel = Panel(f"field{title}", 4.2, 3.4)
    with panel as axes:
        axes.plot(*seen.T, ".", ms=1.5, color=INK, alpha=0.15, zorder=0)
        spread = np.array([g.max() - g.min() for g in grid])
        scaled = arrows / spread
        axes.quiver(*grid, *scaled.T, color=colour, angles="uv", pivot="mid", width=0.005)
        axes.set(xlabel=names[0], ylabel=names[1], title=title)
    return panel.svg


def _colours(count: int) -> list[str]:
    palette = [BLUE, ORANGE, GREEN, PINK]
    return [palette[k % len(palette)] for k in range(count)]
