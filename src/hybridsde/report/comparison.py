"""The comparison of variants as a figure, as a table and as a page."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from hybridsde._files import write_whole
from hybridsde.project.compare import (
    FLOOR,
    OF,
    OWN,
    by_observation,
    error_of,
    headline,
    name_of,
    parts_of,
    summarise,
    verdict,
)
from hybridsde.project.comparison_folder import (
    BACKTEST_FILE,
    SCORES_FILE,
    read_backtest,
    read_scores,
)
from hybridsde.report.figures import COLOURS, INK
from hybridsde.report.html import render_template
from hybridsde.report.panels import INK as PANEL_INK
from hybridsde.report.panels import Panel
from hybridsde.store.metadata import SCALED

SHOWN = {
    "crps": "CRPS on held-out trajectories, lower is better",
    f"crps{SCALED}": "CRPS in spreads of the data, lower is better",
    "coverage90": "share inside the 90 % interval",
}


def shown_scores(scores: pd.DataFrame) -> tuple[str, str]:
    """The two scores that are drawn."""
    return headline(scores), "coverage90"


def comparison_figure(scores: pd.DataFrame) -> Figure:
    """CRPS and coverage of every fit, and their means, one row per variant."""
    rows = len(parts_of(scores))
    figure, both = plt.subplots(
        1, 2, figsize=(8.4, 0.3 * rows + 1.3), sharey=True, layout="constrained"
    )
    for axes, column in zip(both, shown_scores(scores), strict=True):
        _draw(axes, scores, column, INK)
        axes.spines[["top", "right"]].set_visible(False)
    both[0].invert_yaxis()
    figure.suptitle("Forecasts of held-out trajectories. Circles: one fit each; bars: their mean")
    return figure


def lead_figure(scores: pd.DataFrame) -> Figure:
    """CRPS against rows ahead from rolling origins, one line per system, means over fits."""
    figure, axes = plt.subplots(figsize=(8.4, 4.2), layout="constrained")
    _draw_leads(axes, scores)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def lead_summary(scores: pd.DataFrame) -> pd.DataFrame:
    """CRPS by rows ahead, a row per system; a few leads, and all of them together."""
    overall = scores.loc[scores["obs"] == "overall"]
    leads = sorted(set(overall["lead"]) - {0})
    shown = [0, *(leads[i] for i in np.unique(np.linspace(0, len(leads) - 1, 6).astype(int)))]
    overall = overall.assign(variant=variant_names(overall))
    by = headline(overall)
    table = overall.pivot_table(index="variant", columns="lead", values=by, aggfunc="mean")
    order = list(dict.fromkeys(overall["variant"]))
    table = table.reindex(index=order, columns=shown)
    return table.rename(columns={lead: str(lead) if lead else "all" for lead in shown})


LINES = ("-", "--", ":", "-.")
PALETTE = ("#3b8fd1", "#e08a1e", "#20a486", "#cc79a7", "#8a6fd1", "#b04a4a")
"""Readable on light and dark ground."""


def _draw_leads(axes: Axes, scores: pd.DataFrame) -> None:
    """Own variants as full lines, other systems as broken ones; names are left to the caller."""
    overall = scores.loc[(scores["obs"] == "overall") & (scores["lead"] > 0)]
    by = headline(overall)
    for number, (method, objective) in enumerate(parts_of(overall)):
        own = (overall["method"] == method) & (overall["objective"] == objective)
        line = overall.loc[own].groupby("lead")[by].mean()
        style = LINES[0] if objective != OWN else LINES[1 + number // len(PALETTE) % 3]
        colour = PALETTE[number % len(PALETTE)]
        name = name_of(method, objective)
        axes.plot(line.index, line, style, marker=".", color=colour, label=name)
    origins = int(np.max(scores["origins"]))
    units = " in spreads" if by != "crps" else ""
    axes.set(xlabel="rows ahead", ylabel=f"CRPS{units}, lower is better")
    axes.set_title(f"Forecasts from {origins} rolling origins, all rows before them given")
    if np.max(overall[by]) > 8 * np.min(overall[by]):
        axes.set_yscale("log")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(alpha=0.25)


def variant_names(scores: pd.DataFrame) -> list[str]:
    """The variant of every row."""
    pairs = zip(scores["method"], scores["objective"], strict=True)
    return [name_of(*pair) for pair in pairs]


def _draw(axes: Axes, scores: pd.DataFrame, column: str, ink: str) -> None:
    """One score of every fit, a row for every variant; other systems in another colour."""
    parts = parts_of(scores)
    for row, (method, objective) in enumerate(parts):
        own = (scores["method"] == method) & (scores["objective"] == objective)
        values = scores.loc[own, column].to_numpy(float)
        colour = COLOURS[objective != OWN]
        axes.plot(values, np.full(len(values), row), "o", ms=5, mfc="none", color=colour)
        axes.plot(scores.loc[own, column].mean(), row, "|", ms=13, mew=2.2, color=colour)
    table = pd.DataFrame(parts, columns=["method", "objective"])
    axes.set_yticks(range(len(parts)), variant_names(table))
    variants = sum(objective != OWN for _, objective in parts)
    if 0 < variants < len(parts):
        axes.axhline(variants - 0.5, color=ink, lw=0.6, alpha=0.5)
    axes.set_xlabel(SHOWN[column])
    if column == "coverage90":
        axes.axvline(0.9, color=ink, lw=0.8, ls=":")
        axes.set_xlim(0, 1.02)
    elif np.max(scores[column]) > 5 * np.min(scores[column]):
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 3, 5)))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_locator(NullLocator())
    axes.grid(alpha=0.25)


def write_comparison_page(folder: Path) -> Path:
    """Write FOLDER/report.html from the scores that `hybridsde compare` left there."""
    scores = read_scores(folder / SCORES_FILE)
    table = summarise(scores)
    systems = table.loc[table["method"] != FLOOR]
    by, records = headline(table), table.to_dict("records")
    best = np.min(systems[by])
    rows = [
        {**row, "cells": _cells(row), "best": row[by] == best and row["method"] != FLOOR}
        for row in records
    ]
    text = render_template(
        "comparison.html",
        title=f"Comparison: {folder.resolve().name}",
        seeds=max(row["seeds"] for row in rows),
        said=_statement(systems) + _floor(table),
        advice=verdict(table),
        rows=rows,
        scaled=by != "crps",
        observations=_observations(table),
        each=[{**row, "cells": _each(row, _observations(table))} for row in records],
        pictures=[_picture(scores, column) for column in shown_scores(scores)],
        leads=_leads(folder),
    )
    write_whole(folder / "report.html", text)
    return folder / "report.html"


def _statement(table: pd.DataFrame) -> str:
    """Who forecasts best, and by how much."""
    by = headline(table)
    table = table.loc[np.isfinite(table[by])]
    if not len(table):
        return "Nothing could be scored."
    first, *others = table.sort_values(by).to_dict("records")
    units = " spreads of the data" if by != "crps" else ""
    if not others:
        return f"{_called(first)} is alone here: CRPS {first[by]:.3g}{units}."
    second = others[0]
    error = np.hypot(*np.nan_to_num([first[error_of(by)], second[error_of(by)]]))
    near = second[by] - first[by] < 2 * error
    return (
        f"{_called(first)} forecasts best, with a CRPS of {first[by]:.3g}{units}; "
        f"{_called(second)} comes next with {second[by]:.3g}"
        f"{', within the noise of the seeds' if near else ''}."
    )


def _floor(table: pd.DataFrame) -> str:
    """What the true equations score, where the settings name them."""
    by = headline(table)
    found = [row[by] for row in table.to_dict("records") if row["method"] == FLOOR]
    return f" The true equations: {found[0]:.3g}." if found else ""


def _called(row: Mapping[Any, Any]) -> str:
    """A system in a sentence."""
    own = row["objective"] == OWN
    return row["method"] if own else f"{row['method']} ({row['objective']})"


def _picture(scores: pd.DataFrame, column: str) -> str:
    panel = Panel(f"compare-{column}", 4.2, 0.3 * len(parts_of(scores)) + 1.0)
    with panel as axes:
        _draw(axes, scores, column, PANEL_INK)
        axes.set_xlabel(SHOWN[column].replace(" on held-out trajectories", ""))
        axes.invert_yaxis()
    return panel.svg


def _leads(folder: Path) -> str | None:
    """The picture of a backtest, where there was one."""
    path = folder / BACKTEST_FILE
    if not path.exists():
        return None
    panel = Panel("backtest", 5.4, 5.0)
    with panel as axes:
        _draw_leads(axes, read_backtest(path))
        axes.set_title("")
        axes.legend(loc="upper center", bbox_to_anchor=(0.45, -0.16), ncols=2)
    return panel.svg


def _cells(row: dict[Any, Any]) -> list[str]:
    """Means ± standard errors over seeds; errors in spreads where there are several columns."""
    scaled = SCALED if f"crps{SCALED}" in row else ""
    return [_cell(row, name) for name in (f"rmse{scaled}", "nll", f"crps{scaled}", "coverage90")]


def _cell(row: dict[Any, Any], name: str) -> str:
    """A mean ± its standard error over seeds; a single seed has none."""
    error = row[error_of(name)]
    return f"{row[name]:.3g}" + (f" ± {error:.1g}" if np.isfinite(error) else "")


def _observations(table: pd.DataFrame) -> list[str]:
    """What is measured, where it is more than one thing."""
    return [name.split(OF, 1)[1] for name in by_observation(table, "crps")]


def comparison_markdown(table: pd.DataFrame) -> str:
    """Means ± standard errors over seeds; below, those of each observation."""
    names = _observations(table)
    units = ", in spreads" if names else ""
    text = _markdown(table, [f"RMSE{units}", "NLL", f"CRPS{units}", "90 % coverage"], _cells)
    if not names:
        return text
    about = "CRPS of each column in its own units; in brackets, the share inside 90 % intervals."
    return f"{text}\n{about}\n\n{_markdown(table, names, lambda row: _each(row, names))}"


def _each(row: dict[Any, Any], names: list[str]) -> list[str]:
    """CRPS and coverage of each observation."""
    return [f"{_cell(row, f'crps{OF}{n}')} ({row[f'coverage90{OF}{n}']:.2f})" for n in names]


def _markdown(
    table: pd.DataFrame, names: list[str], cells: Callable[[dict[Any, Any]], list[str]]
) -> str:
    """A row for every method and objective."""
    lines = [
        f"| method | objective | {' | '.join(names)} | seeds |",
        "|---" * (3 + len(names)) + "|",
    ]
    for row in table.to_dict("records"):
        method, objective, seeds = row["method"], row["objective"], row["seeds"]
        lines.append(f"| {method} | {objective} | {' | '.join(cells(row))} | {seeds} |")
    return "\n".join(lines) + "\n"
