"""A fleet as a page with a row per member, and as tables for a terminal."""

import math
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pandas as pd
from rich.table import Table

from hybridsde._files import write_whole
from hybridsde.engine.fleet_table import FAR, Population, failed, parameters_in, populations
from hybridsde.engine.fleet_worker import SHOWN
from hybridsde.engine.run_fleet import Fleet
from hybridsde.report.drift import with_error
from hybridsde.report.html import asset, number, percent, render_template
from hybridsde.report.panels import BLUE, ORANGE, Panel
from hybridsde.report.terminal import frame_table

PAGE = "fleet.html"
MOST_ROWS = 5000
"""Members on the page: browsers sort more of them too slowly."""
MOST_LISTED = 50
"""Outliers and failures that are named."""
MOST_PICTURES = 6
TITLES = {"rmse": "RMSE", "nll": "NLL", "crps": "CRPS", "coverage90": "in the 90 % band"}


def write_fleet_page(folder: Path, found: Fleet) -> Path:
    """Write FOLDER/fleet.html; it needs no network."""
    table = found.table
    shown = _shown(found)
    text = render_template(
        "fleet.html",
        title=f"Fleet: {folder.resolve().name}",
        folder=folder.name,
        cards=_cards(found),
        pictures=_pictures(found),
        outliers=found.outliers.head(MOST_LISTED).to_dict("records"),
        far=FAR,
        failures=table.iloc[np.flatnonzero(failed(table))[:MOST_LISTED]].to_dict("records"),
        left_out=len(table) - len(shown),
        columns=["member", *_columns(table)],
        rows=[_row(folder, row, found) for row in shown.to_dict("records")],
        script=asset("fleet.js"),
    )
    write_whole(folder / PAGE, text)
    return folder / PAGE


def _shown(found: Fleet) -> pd.DataFrame:
    """All members, or of very many those that stand out and the first of the others."""
    table = found.table
    if len(table) <= MOST_ROWS:
        return table
    odd = np.isin(table["member"], found.outliers["member"]) | failed(table)
    order = np.argsort(~odd, kind="stable")[:MOST_ROWS]
    return table.iloc[np.sort(order)]


def _cards(found: Fleet) -> list[tuple[str, str]]:
    table = found.table
    failures = int(failed(table).sum())
    cards = [(f"{len(table)}", "members"), (f"{failures}", "failed")]
    cards.append((f"{len(set(found.outliers['member']))}", "stand out"))
    cards.append((number(_median(table["crps"])), "median CRPS, error of a forecast"))
    cards.append((percent(_median(table["coverage90"])), "median share in the 90 % band"))
    for name, one in list(populations(table).items())[:3]:
        cards.append((with_error(one.mean, one.sd), f"{name} over the fleet, ± its spread"))
    return cards


def _median(column: Any) -> float:
    told = np.asarray(column, float)
    return float(np.median(told[np.isfinite(told)])) if np.isfinite(told).any() else math.nan


def _columns(table: pd.DataFrame) -> list[str]:
    """What a row shows: scores, then parameters, then terms where members differ in them."""
    told = {one for one in table["terms"] if isinstance(one, str)}
    terms = ["terms"] if len(told) > 1 else []
    return [*(TITLES[name] for name in SHOWN), *parameters_in(table), *terms, "rows", "seconds"]


def _row(folder: Path, row: dict[Any, Any], found: Fleet) -> dict[str, Any]:
    odd = found.outliers[found.outliers["member"] == row["member"]]["what"].tolist()
    cells = [(*_cell(row[name]), name in odd) for name in SHOWN]
    place = SHOWN.index("coverage90")
    cells[place] = (cells[place][0], percent(row["coverage90"]), cells[place][2])
    for name in parameters_in(found.table):
        value, text = _cell(row[name])
        error = row[f"{name} error"]
        told = with_error(row[name], error) if value and np.isfinite(error) else text
        cells.append((value, told, name in odd))
    if "terms" in _columns(found.table):
        words = row["terms"] if isinstance(row["terms"], str) else ""
        cells.append((words, words, False))
    cells += [(*_cell(row[name]), False) for name in ("rows", "seconds")]
    return {"member": row["member"], "link": _link(folder, row.get("folder")), "cells": cells}


def _cell(value: Any) -> tuple[str, str]:
    """What a cell is sorted by, and what it shows."""
    told = isinstance(value, int | float) and np.isfinite(value)
    return (f"{value:.9g}" if told else "", number(value) if told else "–")


def _link(folder: Path, inside: Any) -> str | None:
    """To the report of a member, or its run folder where none was written."""
    if not isinstance(inside, str):
        return None
    page = f"{inside}/report.html"
    return quote(page if (folder / page).exists() else f"{inside}/")


def _pictures(found: Fleet) -> list[str]:
    known = populations(found.table)
    names = parameters_in(found.table)[:MOST_PICTURES]
    return [_ordered(found, name, known.get(name)) for name in names]


def _ordered(found: Fleet, name: str, population: Population | None) -> str:
    """A parameter of all members in rising order, with errors and with what they share."""
    value = found.table[name].to_numpy(float)
    order = np.argsort(value)[: np.isfinite(value).sum()]
    value, place = value[order], np.arange(len(order))
    error = np.nan_to_num(found.table[f"{name} error"].to_numpy(float)[order])
    odd = found.outliers[found.outliers["what"] == name]["member"]
    far = np.isin(found.table["member"].to_numpy()[order], odd)
    panel = Panel(f"fleet-{name}")
    with panel as axes:
        if population is not None:
            ends = population.mean - population.sd, population.mean + population.sd
            axes.axhspan(*ends, color=BLUE, alpha=0.15, lw=0)
            axes.axhline(population.mean, color=BLUE, lw=0.8)
        axes.vlines(place, value - error, value + error, color=BLUE, lw=0.6, alpha=0.6)
        axes.plot(place[~far], value[~far], ".", color=BLUE, ms=3)
        axes.plot(place[far], value[far], "o", color=ORANGE, ms=5, mfc="none")
        axes.set(xlabel="members", ylabel=name, title=f"{name}; band: mean and spread of the fleet")
    return panel.svg


def fleet_tables(found: Fleet) -> list[Table]:
    """Medians over the fleet, and who stands out."""
    table = found.table
    names = [*SHOWN, *parameters_in(table)]
    sides = {"lower quarter": 0.25, "median": 0.5, "upper quarter": 0.75}
    rows = {side: table[names].quantile(share) for side, share in sides.items()}
    title = f"{len(table)} members, {int(failed(table).sum())} failed"
    tables = [frame_table(pd.DataFrame(rows).T, title)]
    if len(found.outliers):
        far = found.outliers.head(10).set_index("member")
        tables.append(frame_table(far, f"{len(set(found.outliers['member']))} stand out"))
    return tables
