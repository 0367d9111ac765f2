"""`hybridsde fleet | sweep`: many fits, here or on many machines."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from hybridsde.cli.app import app
from hybridsde.cli.engine_options import Address, Engine, Workers
from hybridsde.cli.options import Config, Json, Quiet, notices
from hybridsde.cli.stopping import stoppable


@app.command()
def fleet(
    config: Config,
    out: Annotated[Path, typer.Option(help="Folder of the fleet; the same command goes on.")],
    by: Annotated[
        str | None,
        typer.Option(help="Column that names the member of a row; each trajectory by default."),
    ] = None,
    common: Annotated[
        bool,
        typer.Option("--common", help="Begin at a model of many members; draw parameters to it."),
    ] = False,
    group: Annotated[int, typer.Option(min=1, help="Members that are fitted together.")] = 50,
    engine: Engine = "local",
    address: Address = None,
    workers: Workers = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Fit one model per member: machines, patients, wells, each with parameters of its own.

    Members of equal shape are fitted as one program. Each keeps a run folder in OUT/members.
    Writes fleet.csv (scores, parameters with errors, failures), outliers.csv, and fleet.html, a
    page with a row per member. What is finished stays: after Ctrl-C or a crash the same command
    goes on, here or elsewhere, and ends with the same numbers.

    With --common parameters begin where one model of the first members ends, and the table also
    holds each as it is drawn towards the others, as far as its error asks for.
    """
    from hybridsde.cli.engines import executor_of, job_progress, settle_devices
    from hybridsde.engine.fleet import FleetJob
    from hybridsde.engine.ledger import held
    from hybridsde.engine.run_fleet import run_fleet
    from hybridsde.report.fleet import fleet_tables, write_fleet_page

    console = Console(stderr=as_json)
    job = FleetJob.read(config, out, by=by, common=common, group=group)
    devices = settle_devices(out)
    bars = Console(stderr=as_json, quiet=quiet)
    again = stoppable("fleet", config, "--out", out)
    with notices(console), held(out, job, devices) as ledger, again:
        with executor_of(engine, address, workers, devices) as executor:
            bars.print(f"On {executor.description}.", soft_wrap=True)
            with job_progress(bars, "groups") as report:
                found = run_fleet(job, executor, ledger, report)
        page = write_fleet_page(out, found)
    if as_json:
        typer.echo(found.table.to_json(orient="records", indent=1))
    else:
        console.print(*fleet_tables(found))
        console.print(f"Wrote {page}. Open it in a browser.", soft_wrap=True)
    if found.lost:
        console.print(f"{found.lost} groups were lost. Repeat the command to try them again.")
        raise typer.Exit(1)


@app.command()
def sweep(
    config: Config,
    out: Annotated[Path, typer.Option(help="Folder of the sweep; the same command goes on.")],
    trials: Annotated[
        int | None, typer.Option(min=1, help="How many; 30 by default, or the whole grid.")
    ] = None,
    search: Annotated[str, typer.Option(help="`random`, `grid` or `optuna`.")] = "random",
    seeds: Annotated[int, typer.Option(min=1, help="Fits of every trial.")] = 1,
    rungs: Annotated[
        int,
        typer.Option(min=1, max=6, help="Stages of training, each three times as long; 1: whole."),
    ] = 3,
    engine: Engine = "local",
    address: Address = None,
    workers: Workers = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Try settings, and recommend others where they are better beyond doubt; no test data.

    CONFIG has a table [sweep] with settings by their dotted names, as in
    "train.learning_rate" = { low = 1e-3, high = 3e-2, log = true } or
    "model.learned" = ["library", "network"]. Trials are trained for a ninth of their epochs, the
    best third for a third, and the best third of those to the end. The settings as they are take
    part as trial 0, and stay unless a trial beats them by more than chance would: over recordings
    that it was not trained on, which are those of data.validation, or parts that take turns.

    Writes sweep.html, a page that needs no network, sweep.csv, sweep.md, importance.png/svg, and
    best.toml, which `hybridsde fit` takes.
    What is finished stays: after Ctrl-C or a crash the same command goes on.
    """
    from hybridsde._files import write_whole
    from hybridsde.cli.engines import executor_of, job_progress, settle_devices
    from hybridsde.engine.ledger import held
    from hybridsde.engine.run_sweep import BEST, run_sweep
    from hybridsde.engine.sweep import SweepJob
    from hybridsde.report.figures import save
    from hybridsde.report.sweep import importance_figure, statement, sweep_markdown, sweep_table
    from hybridsde.report.sweep_page import write_sweep_page

    console = Console(stderr=as_json)
    job = SweepJob.read(config, trials=trials, search=search, seeds=seeds, rungs=rungs)
    job.new_search()  # says what is wrong with it before there is a folder
    devices = settle_devices(out)
    bars = Console(stderr=as_json, quiet=quiet)
    again = stoppable("sweep", config, "--out", out)
    with notices(console), held(out, job, devices) as ledger, again:
        with executor_of(engine, address, workers, devices) as executor:
            bars.print(f"On {executor.description}.", soft_wrap=True)
            with job_progress(bars, "trials") as report:
                found = run_sweep(job, executor, ledger, report)
        write_whole(out / "sweep.md", sweep_markdown(found))
        save(importance_figure(found, job.axes), out, "importance")
        page = write_sweep_page(out, found, job.axes)
    if as_json:
        typer.echo(found.table.to_json(orient="records", indent=1))
    else:
        console.print(sweep_table(found))
        console.print(statement(found), soft_wrap=True, highlight=False)
        console.print(f"Wrote {page}. Next: hybridsde fit {out / BEST} --out RUN", soft_wrap=True)
    if found.lost:
        console.print(f"{found.lost} trials were lost. Repeat the command to try them again.")
        raise typer.Exit(1)
