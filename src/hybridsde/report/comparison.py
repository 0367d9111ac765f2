"""The comparison of variants as a figure, as a table and as a page."""

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hybridsde._errors import InputError
from hybridsde._files import write_whole
from hybridsde.report.figures import COLOURS, INK
from hybridsde.report.html import render_template
from hybridsde.report.panels import INK as PANEL_INK
from hybridsde.report.panels import Panel
from hybridsde.run.compare import OWN, summarise

SCORES_FILE = "scores.csv"
SHOWN = {
    "crps": "CRPS on held-out trajectories, lower is better",
    "coverage90": "share inside the 90 % interval",
}


def comparison_figure(scores: pd.DataFrame) -> Figure:
    """CRPS and coverage of every fit, and their means, one row per variant."""
    names = variant_names(scores)
    figure, both = plt.subplots(
        1, 2, figsize=(8.4, 0.55 * len(set(names)) + 1.3), sharey=True, layout="constrained"
    )
    for axes, column in zip(both, SHOWN, strict=True):
        _draw(axes, scores, column, INK)
        axes.spines[["top", "right"]].set_visible(False)
    both[0].invert_yaxis()
    figure.suptitle("Dots: one fit each; diamonds: their mean")
    return figure


def variant_names(scores: pd.DataFrame) -> list[str]:
    """The variant of every row."""
    pairs = zip(scores["method"], scores["objective"], strict=True)
    return [m if o == OWN else f"{m}, {o}" for m, o in pairs]


def _draw(axes: Axes, scores: pd.DataFrame, column: str, ink: str) -> None:
    """One score of every fit, a row for every variant."""
    names = variant_names(scores)
    rows = list(dict.fromkeys(names))
    for row, name in enumerate(rows):
        values = np.asarray(scores[column], float)[np.array(names) == name]
        axes.plot(values, np.full(len(values), row), "o", ms=4, alpha=0.5, color=COLOURS[0])
        axes.plot(values.mean(), row, "d", ms=8, color=COLOURS[1])
    axes.set_yticks(range(len(rows)), rows)
    axes.set_xlabel(SHOWN[column])
    axes.grid(axis="x", alpha=0.25)
    if column == "coverage90":
        axes.axvline(0.9, color=ink, lw=0.8, ls=":")
        axes.set_xlim(0, 1.02)
    elif np.max(scores[column]) > 20 * np.min(scores[column]):
        axes.set_xscale("log")


def write_comparison_page(folder: Path) -> Path:
    """Write FOLDER/report.html from the scores that `hybridsde compare` left there."""
    path = folder / SCORES_FILE
    try:
        scores = pd.read_csv(path)
        table = summarise(scores)
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{path} cannot be read: {error}. Compare again.") from None
    rows = [{**row, "cells": _cells(row)} for row in table.to_dict("records")]
    text = render_template(
        "comparison.html",
        title=f"Comparison: {folder.resolve().name}",
        seeds=max(row["seeds"] for row in rows),
        rows=rows,
        pictures=[_picture(scores, column) for column in SHOWN],
    )
    write_whole(folder / "report.html", text)
    return folder / "report.html"


def _picture(scores: pd.DataFrame, column: str) -> str:
    panel = Panel(f"compare-{column}", 4.2, 0.35 * len(set(variant_names(scores))) + 1.0)
    with panel as axes:
        _draw(axes, scores, column, PANEL_INK)
        axes.invert_yaxis()
    return panel.svg


def _cells(row: dict[Any, Any]) -> list[str]:
    """Means ± standard errors over seeds; a single seed has none."""
    cells = []
    for name in ("rmse", "nll", "crps", "coverage90"):
        error = row[f"{name}_se"]
        cells.append(f"{row[name]:.3g}" + (f" ± {error:.1g}" if np.isfinite(error) else ""))
    return cells


def comparison_markdown(table: pd.DataFrame) -> str:
    """Means ± standard errors over seeds."""
    lines = [
        "| method | objective | RMSE | NLL | CRPS | 90 % coverage | seeds |",
        "|---" * 7 + "|",
    ]
    for row in table.to_dict("records"):
        method, objective, seeds = row["method"], row["objective"], row["seeds"]
        lines.append(f"| {method} | {objective} | {' | '.join(_cells(row))} | {seeds} |")
    return "\n".join(lines) + "\n"
