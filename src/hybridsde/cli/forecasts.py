"""`hybridsde forecast | states | score`: what a run says of records."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from hybridsde._errors import InputError
from hybridsde._types import Reading
from hybridsde.cli.app import app
from hybridsde.cli.options import Json, RunFolder, Trust, notices

MOST_DRAWS = 1_000_000


@app.command()
def forecast(
    run: RunFolder,
    out: Annotated[Path, typer.Option(help="File to write: .csv, .parquet or .nc.")],
    data: Annotated[
        str | None,
        typer.Option(help="A record up to now; rows without values at its end are the future."),
    ] = None,
    steps: Annotated[
        int | None, typer.Option(min=1, max=10_000_000, help="Steps of the data's usual interval.")
    ] = None,
    times: Annotated[
        Path | None, typer.Option(help="File with a time since then on every line.")
    ] = None,
    begin: Annotated[
        str,
        typer.Option("--from", help="Go on after the `last` measured row, or after the `first`."),
    ] = "last",
    hold_inputs: Annotated[
        bool,
        typer.Option("--hold-inputs", help="Keep the last inputs after the end of the record."),
    ] = False,
    draws: Annotated[
        int | None, typer.Option(min=1, max=MOST_DRAWS, help="Sampled futures.")
    ] = None,
    hidden: Annotated[
        bool, typer.Option("--hidden", help="Also states that are not measured.")
    ] = False,
    estimator: Annotated[
        Reading,
        typer.Option(help="What reads the record: auto, extended, cubature, particles, ensemble."),
    ] = "extended",
    layout: Annotated[
        str,
        typer.Option(
            "--format", help="Columns of the table: `own`, or `nixtla`: unique_id, ds, hybridsde, …"
        ),
    ] = "own",
    trust: Trust = False,
) -> None:
    """Go on after the last measured row of every trajectory, with quantiles.

    All rows of the record count: they are filtered, so that states are known which nobody
    measured. Future inputs stand in the same file, in rows without values; without --steps and
    --times these rows are what is forecast. A forecast that goes beyond them is refused unless
    --hold-inputs says to keep the last. With --from first only the first row counts, and all
    times of the data are forecast.

    CSV and Parquet hold mean, standard deviation and quantiles of what would be measured; .nc
    holds every draw of states and measurements. With --format nixtla they hold unique_id, ds,
    hybridsde (the mean), and the ends of the 50 % and 90 % intervals as hybridsde-lo-90, …
    """
    from hybridsde.forecast.export import write_forecast
    from hybridsde.project.exchange import OWN, check_layout, write_long_frame
    from hybridsde.project.recordings import forecast_run

    console = Console()
    if steps and times:
        raise InputError("Give --steps or --times, not both.")
    check_layout(layout, out)
    with notices(console):
        found, calendar = forecast_run(
            run,
            data,
            steps,
            times,
            draws,
            begin=begin,
            estimator=estimator,
            hold_inputs=hold_inputs,
            trust=trust,
        )
        if layout == OWN:
            write_forecast(found, out, hidden=hidden, calendar=calendar)
        else:
            write_long_frame(found, out, calendar)
    sizes = found.observations.sizes
    console.print(
        f"Wrote {out}: {sizes['trajectory']} trajectories, {sizes['time']} times, "
        f"{sizes['draw']} draws.",
        soft_wrap=True,
    )


@app.command()
def states(
    run: RunFolder,
    out: Annotated[Path, typer.Option(help="File to write: .csv, .parquet or .nc.")],
    data: Annotated[
        str | None,
        typer.Option(help="Records; those held out of the fit by default."),
    ] = None,
    filtered: Annotated[
        bool, typer.Option("--filtered", help="Given the rows up to each, not all of them.")
    ] = False,
    draws: Annotated[int | None, typer.Option(min=2, max=MOST_DRAWS, help="Sampled paths.")] = None,
    estimator: Annotated[
        Reading,
        typer.Option(
            help="extended (Kalman), cubature, unscented, ensemble, particles, parallel (in time, "
            "for a GPU), or auto: the first, unless particles explain the record better."
        ),
    ] = "auto",
    trust: Trust = False,
) -> None:
    """Estimate every state at every row of a record, also those that nobody measured.

    Given the whole record, or with --filtered the rows up to each. Missing values are filled in;
    rows without values are answered too, so add some to see what happens between measurements.
    CSV and Parquet hold mean, standard deviation and quantiles; .nc holds every draw.
    """
    from hybridsde.forecast.export import write_table
    from hybridsde.project.recordings import states_run

    console = Console()
    with notices(console):
        found, calendar = states_run(
            run, data, draws, smooth=not filtered, estimator=estimator, trust=trust
        )
        write_table(found.table, found.dataset, out, calendar)
    evidence = float(found.log_evidence.sum())
    console.print(
        f"Wrote {out}: {found.states.sizes['trajectory']} trajectories, "
        f"{', '.join(map(str, found.states['state'].values))}. Log evidence {evidence:.4g}. "
        f"Estimator: {found.estimator}. {found.why}",
        soft_wrap=True,
    )


@app.command()
def score(
    run: RunFolder,
    data: Annotated[
        str | None,
        typer.Option(help="Recordings to forecast; those held out of the fit by default."),
    ] = None,
    draws: Annotated[
        int | None, typer.Option(min=2, max=MOST_DRAWS, help="Sampled futures.")
    ] = None,
    origins: Annotated[
        int | None,
        typer.Option(min=1, help="Forecast from so many rows along each record, all before given."),
    ] = None,
    horizon: Annotated[
        int | None,
        typer.Option(min=1, help="With --origins: rows ahead; that of the settings by default."),
    ] = None,
    as_json: Json = False,
    trust: Trust = False,
) -> None:
    """Score forecasts from the first row of every trajectory: MSE, NLL, CRPS, coverage.

    Where the settings name a horizon, trajectories are cut into pieces of that many rows first.
    With --origins forecasts begin at rolling origins along each record instead, each is given all
    rows before it, and scores come by lead time.
    """
    from hybridsde.project.recordings import backtest_run, score_run
    from hybridsde.report.overview import lead_table, score_table

    console = Console(stderr=as_json)
    if origins is not None:
        with notices(console):
            table = backtest_run(run, data, origins, horizon, draws, trust=trust)
        if as_json:
            typer.echo(table.to_json(orient="records", indent=1))
        else:
            console.print(lead_table(table))
        return
    if horizon is not None:
        raise InputError("--horizon goes with --origins.")
    with notices(console):
        scores, count = score_run(run, data, draws, trust=trust)
    if as_json:
        typer.echo(json.dumps(scores.to_dict(), indent=1))
    else:
        console.print(score_table(scores, f"{count} trajectories"))
