"""`hybridsde certify`: how far can the forecasts of a run be trusted?"""

import hashlib
import json
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from hybridsde._errors import InputError
from hybridsde.cli.app import app
from hybridsde.cli.own_data import Json, RunFolder, Trust, notices, open_run

LOSS_HELP = (
    "error (squared, cut off), interval (share of values outside the 90 % interval), band (any "
    "value outside a band), crps, or likelihood."
)
BOUND_HELP = (
    "auto, holdout, holdout-kl, ub, kl, catoni, paper (a diagnostic), or conformal (a band instead "
    "of a bound)."
)


@app.command()
def certify(
    run: RunFolder,
    data: Annotated[
        str | None,
        typer.Option(help="Trajectories that the fit has not used; those it kept by default."),
    ] = None,
    loss: Annotated[str, typer.Option(help=LOSS_HELP)] = "error",
    bound: Annotated[str, typer.Option(help=BOUND_HELP)] = "auto",
    delta: Annotated[float, typer.Option(help="The promise may be false this often.")] = 0.05,
    union: Annotated[
        int, typer.Option(min=1, help="Models that were compared on these trajectories.")
    ] = 1,
    dependence: Annotated[
        str, typer.Option(help="iid, or sequential for windows of one recording.")
    ] = "iid",
    windows: Annotated[
        int | None,
        typer.Option(min=1, help="Cut trajectories into windows of this many rows ahead."),
    ] = None,
    alpha: Annotated[
        float, typer.Option(help="For conformal: how often a trajectory may leave the band.")
    ] = 0.1,
    confidence: Annotated[
        float | None,
        typer.Option(help="For conformal: hold for this share of calibration sets, as 0.95."),
    ] = None,
    ensemble: Annotated[
        int, typer.Option(min=1, help="Networks in one forecast, for ub, kl and catoni.")
    ] = 1,
    seed: Annotated[int | None, typer.Option(help="Of the sampling.")] = None,
    draws: Annotated[int, typer.Option(min=2, help="Sampled forecasters.")] = 10_000,
    as_json: Json = False,
    trust: Trust = False,
) -> None:
    """Bound the expected loss of forecasts on new trajectories, or refuse and say why.

    A certificate is a promise: with probability 1 − DELTA the expected loss on a new trajectory
    from the same source is below the bound. It needs trajectories that the fit has not used. To
    certify on training data, fit with `train.prior_fraction = 0.5`. Where the settings name a
    horizon, the first so many rows of every trajectory count. Each certificate is kept in
    RUN/certificates and shown by `hybridsde report`.
    """
    from hybridsde._files import make_folder
    from hybridsde.report.certificates import FOLDER, band_table, certificate_table

    console = Console(stderr=as_json)
    with notices(console):
        loaded, recordings, reference = _recordings(run, data, bound, windows, trust)
        with console.status("Forecasting …"):
            if bound == "conformal":
                rest = None if confidence is None else 1 - confidence
                found: Any = loaded.conformal(recordings, alpha=alpha, delta=rest, seed=seed)
            else:
                found = loaded.certify(
                    recordings,
                    loss=loss,
                    bound=bound,
                    delta=delta,
                    union=union,
                    dependence=dependence,
                    ensemble=ensemble,
                    draws=draws,
                    reference=reference,
                    seed=seed,
                )
    make_folder(run / FOLDER)
    name = bound if bound in ("conformal", "paper") else f"{loss}-{bound}"
    digest = hashlib.sha256(json.dumps(found.to_dict(), sort_keys=True).encode()).hexdigest()
    path = run / FOLDER / f"{name}-{digest[:6]}.json"
    found.save(path)
    if as_json:
        typer.echo(json.dumps(found.to_dict(), indent=1, ensure_ascii=False))
        return
    console.print(band_table(found) if bound == "conformal" else certificate_table(found))
    console.print(f"[bold]{found.target}[/bold]", highlight=False)
    for line in found.assumptions:
        console.print(f"not checked: {line}", highlight=False, markup=False)
    console.print(f"Wrote {path}.", soft_wrap=True)


def _recordings(folder: Path, data: str | None, bound: str, windows: int | None, trust: bool):
    """A run, trajectories to certify it on, and others to settle constants on."""
    from hybridsde.run.project import as_certified, division_of

    if data is not None:
        loaded, recordings = open_run(folder, data, trust)
    else:
        loaded, recordings = _kept(folder, bound, trust)
    if np.any(recordings.lengths <= loaded.declared.context):
        raise InputError("A trajectory ends with its start, so nothing can be forecast. Remove it.")
    if windows is not None:
        recordings = recordings.pieces(windows + 1)
    else:
        recordings = as_certified(loaded, recordings)
    if "reference" in loaded.facts:
        return loaded, recordings, None
    try:
        reference = as_certified(loaded, division_of(folder, loaded).train)
    except InputError:
        reference = None
    return loaded, recordings, reference


def _kept(folder: Path, bound: str, trust: bool):
    """All recordings of the run folder that a certificate may use."""
    from hybridsde.run import Run
    from hybridsde.run.project import division_of

    loaded = Run.load(folder, trust=trust)
    parts = list(division_of(folder, loaded).parts().values())
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.join(part)
    return loaded, loaded.certifiable(whole, bound)
