"""`hybridsde certify`: how far can the forecasts of a run be trusted?"""

import json
from typing import Annotated

import typer
from rich.console import Console

from hybridsde._types import LossName
from hybridsde.cli.app import app, as_options
from hybridsde.cli.options import Json, RunFolder, Trust, notices

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
    loss: Annotated[LossName, typer.Option(help=LOSS_HELP)] = "error",
    bound: Annotated[str, typer.Option(help=BOUND_HELP)] = "auto",
    delta: Annotated[float, typer.Option(help="The promise may be false this often.")] = 0.05,
    models_compared: Annotated[
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
    from hybridsde.project.recordings import Certification
    from hybridsde.report.certificates import band_table, certificate_table

    console = Console(stderr=as_json)
    with notices(console), console.status("Forecasting …"):
        work = Certification.open(run, data, bound, windows, trust=trust)
        if bound == "conformal":
            found, path = work.conformal(alpha=alpha, confidence=confidence, seed=seed)
            table = band_table(found)
        else:
            found, path = work.certify(
                loss=loss,
                bound=bound,
                delta=delta,
                models_compared=models_compared,
                dependence=dependence,
                ensemble=ensemble,
                draws=draws,
                seed=seed,
            )
            table = certificate_table(found)
    if as_json:
        typer.echo(json.dumps(found.to_dict(), indent=1, ensure_ascii=False))
        return
    console.print(table)
    console.print(f"[bold]{found.statement}[/bold]", highlight=False)
    for line in found.assumptions:
        said = as_options(line, certify.__annotations__)
        console.print(f"not checked: {said}", highlight=False, markup=False)
    console.print(f"Wrote {path}.", soft_wrap=True)
