"""Certificates in a terminal and on the report page."""

import json
import math
from pathlib import Path
from typing import Any

import pandas as pd
from rich.table import Table

from hybridsde._errors import InputError
from hybridsde._files import read_text
from hybridsde.certify import Certificate, ConformalBand
from hybridsde.report.panels import BLUE, GREEN, INK, ORANGE, PINK, Panel
from hybridsde.report.terminal import frame_table
from hybridsde.store.certificates import FOLDER

LOSSES = {
    "error": "Squared error in units of the spread",
    "interval": "Share of values outside the 90 % interval",
    "band": "Recordings that leave their band",
    "crps": "CRPS in units of the spread",
    "likelihood": "Likelihood that is lost",
}
"""What a loss is called where people read it."""
COLOURS = {
    "empirical risk": BLUE,
    "spread of losses": "#7fb8e6",
    "Monte Carlo": GREEN,
    "confidence": ORANGE,
    "union": "#f3c58a",
    "KL of weights": PINK,
    "complexity": PINK,
}


def certificate_table(certificate: Certificate) -> Table:
    """Every term, and how much of the bound it is."""
    added = pd.Series(certificate.parts, dtype=float)
    rows = {f"+ {name}" if i else name: v for i, (name, v) in enumerate(added.items())}
    rows["= bound"] = float(added.sum())
    rows |= {name: v for name, v in certificate.terms.items() if name not in added.index}
    frame = pd.DataFrame({"value": rows}).rename_axis("term")
    title = f"{certificate.kind}: {certificate.loss}, {certificate.n} trajectories"
    return frame_table(frame, title + (" — VACUOUS" if certificate.vacuous else ""))


def band_table(band: ConformalBand) -> Table:
    """The radius and where it comes from."""
    rows = {"radius, standard deviations": band.radius, "rank": band.rank, "trajectories": band.n}
    return frame_table(pd.DataFrame({"value": rows}).rename_axis("term"), "Conformal band")


def read_certificates(folder: Path) -> list[dict[str, Any]]:
    """What the report page shows of the certificates of a run."""
    shown = []
    if (folder / FOLDER).is_symlink():
        raise InputError(f"{folder / FOLDER} is a link. Put a folder there.")
    for path in sorted((folder / FOLDER).glob("*.json")):
        try:
            found = json.loads(read_text(path, most=2**22))
            is_band = "radius" in found
            one = {
                "title": "Conformal band" if is_band else _title(found),
                "statement": found["statement"] if "statement" in found else found["target"],
                "assumptions": found["assumptions"],
                "vacuous": not is_band and found["vacuous"],
                "parts": {} if is_band else found["parts"],
                "bar": "" if is_band else stacked_bar(path.stem, found["parts"]),
                "rows": _rows(found, is_band),
            }
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(f"{path} is not a certificate: {error}. Remove it.") from None
        shown.append(one)
    return shown


def _title(found: dict[str, Any]) -> str:
    """What is promised, and by which kind of bound."""
    what = LOSSES.get(found["loss"], found["loss"])
    bound = math.ceil(1000 * found["bound"]) / 1000  # as the statement rounds it
    return f"{what}: below {bound:.3f} ({found['kind']})"


def _rows(found: dict[str, Any], is_band: bool) -> list[dict[str, str]]:
    if is_band:
        terms = {name: found[name] for name in ("radius", "rank", "n", "alpha", "delta")}
    else:
        terms = {"bound": found["bound"], "n": found["n"], "δ": found["delta"], **found["terms"]}
    return [
        {"name": name, "value": "none" if value is None else f"{value:.4g}"}
        for name, value in terms.items()
    ]


def stacked_bar(name: str, parts: dict[str, float]) -> str:
    """The terms of a bound side by side; one is where it says nothing."""
    panel = Panel(f"certificate-{name}", 6.4, 1.5)
    with panel as axes:
        left = 0.0
        for part, width in parts.items():
            if abs(width) < 1e-4:
                continue
            label = f"{part} {width:.3f}"
            axes.barh(0, width, left=left, color=COLOURS.get(part, INK), height=0.6, label=label)
            left += width
        axes.axvline(1, color=INK, lw=1, ls="--")
        axes.set(xlim=(0, max(1.05, left * 1.02)), yticks=[], xlabel=f"bound {left:.3f}")
        axes.spines["left"].set_visible(False)
        axes.legend(ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0), handlelength=1)
    return panel.svg
