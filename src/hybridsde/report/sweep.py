"""A sweep as a figure, as a page of Markdown and as a table for a terminal."""

import math
from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator
from rich.table import Table

from hybridsde.engine.run_sweep import BEST, Sweep, Trial
from hybridsde.engine.space import AbstractAxis, Range
from hybridsde.report.figures import COLOURS
from hybridsde.report.html import number
from hybridsde.report.terminal import frame_table

HIDDEN = ("seconds", "failure", "rmse")
"""Columns of sweep.csv that tables leave out."""
SHOWN = 10
"""Trials in tables."""
MOST_PANELS = 6
LEGEND = "star: what is recommended; open circles: stopped early; dotted: the settings as they are"
EXPLANATION = """\
The score is the CRPS of forecasts of recordings that a trial was not trained on, in spreads of the
data: lower is better. No test recording was looked at. The gain is how much lower it is than that
of the settings as they are, with its standard error over these recordings and over seeds; others
are recommended only where it is above zero beyond that doubt. Importance is the share of the
variance of the ranks at the first rung that one setting explains alone, less what it would by
chance."""


def importance_figure(found: Sweep, axes: Sequence[AbstractAxis]) -> Figure:
    """How much each setting matters, and scores against the values of those that matter most."""
    known = {axis.name: axis for axis in axes}
    names = list(found.importance)[:MOST_PANELS]
    columns = min(3, len(names))
    rows = -(-len(names) // columns)
    figure = plt.figure(figsize=(3.4 * columns + 0.6, 2.6 * rows + 0.35 * len(names) + 1.4))
    figure.set_layout_engine("constrained")
    heights = [0.35 * len(names) + 1.2, 2.6 * rows]
    both: Any = figure.subfigures(2, 1, height_ratios=heights)
    upper, lower = both
    _bars(upper.subplots(), found)
    grid = np.atleast_1d(lower.subplots(rows, columns, sharey=True)).ravel()
    for axes_, name in zip(grid, names, strict=False):
        draw_scatter(axes_, found, known[name])
    for axes_ in grid[len(names) :]:
        axes_.set_visible(False)
    for axes_ in grid[::columns]:
        axes_.set_ylabel("CRPS in spreads\nof the data")
    lower.suptitle(LEGEND, fontsize=9, color="0.35")
    return figure


def _bars(axes: Axes, found: Sweep) -> None:
    names = list(found.importance)[:MOST_PANELS]
    values = [np.nan_to_num(found.importance[name]) for name in names]
    axes.barh(range(len(names)), values, color=COLOURS[1], height=0.6)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set(xlim=(0, 1), xlabel="share of the variance of the ranks that the setting explains")
    axes.set_title(f"What matters, by {len(found.trials) - 1} trials", loc="left", pad=10)
    axes.spines[["top", "right"]].set_visible(False)


def draw_scatter(axes: Axes, found: Sweep, axis: AbstractAxis) -> None:
    """Every trial after its longest training; filled where it was trained to the end."""
    tried = [one for one in found.trials if axis.name in one.changes and math.isfinite(one.score)]
    values = [one.changes[axis.name] for one in tried]
    numbers = all(isinstance(value, int | float) for value in values)
    words = list(dict.fromkeys(map(str, sorted(values) if numbers else values)))
    if isinstance(axis, Range):
        place = np.array(values, float)
        axes.set_xscale("log" if axis.log else "linear")
        if axis.log:
            _plain_ticks(axes.xaxis)
    else:
        place = np.array([words.index(str(value)) for value in values], float)
        axes.set_xticks(range(len(words)), words, rotation=20 if len(words) > 3 else 0)
        axes.margins(x=0.25)
    score = np.array([one.score for one in tried])
    whole = np.array([one.whole for one in tried], bool)
    axes.plot(place[~whole], score[~whole], "o", ms=4, mfc="none", color=COLOURS[1], alpha=0.7)
    axes.plot(place[whole], score[whole], "o", ms=4, color=COLOURS[1])
    best = found.best
    if axis.name in best.changes:
        at = place[tried.index(best)]
        axes.plot([at], [best.score], "*", ms=13, color=COLOURS[0], zorder=3)
    axes.axhline(found.first.score, color="0.4", lw=0.8, ls=":")
    if score.max() > 5 * score.min():
        axes.set_yscale("log")
        _plain_ticks(axes.yaxis)
    axes.set_xlabel(axis.name)
    axes.spines[["top", "right"]].set_visible(False)


def _plain_ticks(axis: Axis) -> None:
    """A few numbers along a logarithmic axis, written out."""
    axis.set_major_locator(LogLocator(subs=(1, 3), numticks=6))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_locator(NullLocator())


def sweep_table(found: Sweep) -> Table:
    """The trials with the lowest scores."""
    table = found.table.head(SHOWN)
    axes = [name for name in map(str, table.columns) if "." in name]
    short = pd.DataFrame(
        {name.rpartition(".")[2]: table[name] for name in ("trial", *axes, "score")}
    )
    short["gain"] = [_gain(*both) for both in zip(table["gain"], table["gain_se"], strict=True)]
    short["to the end"] = [cell(bool(whole)) for whole in table["whole"]]
    short = short.set_index("trial")
    return frame_table(short, f"{len(found.trials)} trials, the lowest score first")


def sweep_markdown(found: Sweep) -> str:
    """What is recommended, the trials with the lowest scores, and what matters."""
    shown = found.table.head(SHOWN).drop(columns=["seconds", "failure"])
    head = "| " + " | ".join(map(str, shown.columns)) + " |"
    rows = ["| " + " | ".join(map(cell, row)) + " |" for row in shown.itertuples(index=False)]
    weights = [f"| {name} | {number(value)} |" for name, value in found.importance.items()]
    lines = [
        "# Sweep",
        "",
        statement(found),
        "",
        EXPLANATION,
        "",
        head,
        "|---" * len(shown.columns) + "|",
        *rows,
        "",
        "| setting | importance |",
        "|---|---|",
        *weights,
    ]
    return "\n".join(lines) + "\n"


def statement(found: Sweep) -> str:
    """The result in a sentence."""
    best, first, lowest = found.best, found.first, found.lowest
    tried = len(found.trials) - 1
    if lowest is first:
        return f"None of {tried} trials was better than the settings as they are ({_told(first)})."
    if best is first:
        return (
            f"The settings as they are stay ({_told(first)}). Of {tried} trials {lowest.number} "
            f"has the lowest score, {number(lowest.score)}, but a gain of {_won(lowest, first)} is "
            "within the doubt that so few data leave. More recordings, or more seeds, can settle "
            "it."
        )
    return (
        f"The best of {tried} trials is {best.number} ({_told(best)}, a gain of "
        f"{_won(best, first)}); the settings as they are: {_told(first)}. They stand in {BEST}."
    )


def _gain(mean: float | None, error: float | None) -> str:
    """With its standard error."""
    if mean is None or error is None or not math.isfinite(mean):
        return "–"
    return f"{number(mean)} ± {number(error)}"


def _won(trial: Trial, first: Trial) -> str:
    """The gain in words."""
    found = trial.gain_over(first)
    if found is None:
        return "unknown size"
    return f"{_gain(found.mean, found.error)} over {found.units} recordings or blocks of them"


def _told(trial: Trial) -> str:
    return f"score {number(trial.score)}" if trial.outcomes else "not scored"


def cell(value: Any) -> str:
    """A value in a table."""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    return number(float(value)) if isinstance(value, int | float) else str(value or "–")
