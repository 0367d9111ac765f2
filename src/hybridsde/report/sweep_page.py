"""A sweep as a page: what was best, what matters, and every trial that is worth a row."""

from collections.abc import Sequence
from pathlib import Path

from hybridsde._files import read_text, write_whole
from hybridsde.engine.run_sweep import BEST, Sweep
from hybridsde.engine.space import AbstractAxis
from hybridsde.report.html import number, render_template
from hybridsde.report.panels import BLUE, Panel
from hybridsde.report.sweep import (
    EXPLANATION,
    HIDDEN,
    MOST_PANELS,
    cell,
    draw_scatter,
    statement,
)

PAGE = "sweep.html"
NAMES = {
    "nll": "NLL",
    "coverage90": "in the 90 % band",
    "epochs": "epochs run",
    "whole": "to the end",
    "gain_se": "± of the gain",
}
"""Columns as people read them."""
MOST_ROWS = 50
"""Trials on the page."""


def write_sweep_page(folder: Path, found: Sweep, axes: Sequence[AbstractAxis]) -> Path:
    """Write FOLDER/sweep.html; it needs no network."""
    shown = found.table.head(MOST_ROWS).drop(columns=list(HIDDEN))
    text = render_template(
        "sweep.html",
        title=f"Sweep: {folder.resolve().name}",
        folder=folder.name,
        cards=_cards(found),
        statement=statement(found),
        explanation=EXPLANATION,
        pictures=[_importance(found), *_pictures(found, axes)],
        columns=[NAMES.get(str(name), str(name)) for name in shown.columns],
        rows=[[cell(value) for value in row] for row in shown.itertuples(index=False)],
        best=found.best.number,
        left_out=len(found.table) - len(shown),
        settings=read_text(folder / BEST),
    )
    write_whole(folder / PAGE, text)
    return folder / PAGE


def _cards(found: Sweep) -> list[tuple[str, str]]:
    whole = sum(one.whole for one in found.trials)
    return [
        (number(found.lowest.score), "the lowest score"),
        (number(found.first.score), "of the settings as they are"),
        (f"{len(found.trials) - 1}", "trials"),
        (f"{whole}", "trained to the end"),
    ]


def _importance(found: Sweep) -> str:
    names = list(found.importance)[:MOST_PANELS]
    panel = Panel("sweep-importance")
    with panel as axes:
        places = range(len(names))
        axes.barh(places, [found.importance[name] for name in names], color=BLUE, height=0.6)
        axes.set_yticks(places, [name.rpartition(".")[2] for name in names])
        axes.invert_yaxis()
        axes.set(xlim=(0, 1), xlabel="share of the ranks that it explains")
    return panel.svg


def _pictures(found: Sweep, axes: Sequence[AbstractAxis]) -> list[str]:
    """Scores against the values of the settings that matter most."""
    known = {axis.name: axis for axis in axes}
    panels = []
    for name in list(found.importance)[:MOST_PANELS]:
        panel = Panel(f"sweep-{name}")
        with panel as one:
            draw_scatter(one, found, known[name])
            one.set_ylabel("score, lower is better")
        panels.append(panel.svg)
    return panels
