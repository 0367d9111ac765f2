"""`hybridsde init | check | fit | forecast | score | states | discover | verify | report`."""

import json
import shlex
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from hybridsde._errors import InputError, InputNotice
from hybridsde.cli.app import app
from hybridsde.fit import FitDiverged

Config = Annotated[Path, typer.Argument(help="Settings, as written by `hybridsde init`.")]
RunFolder = Annotated[Path, typer.Argument(help="Folder that `hybridsde fit` wrote.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print results only, no progress.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for other programs.")]
Trust = Annotated[
    bool, typer.Option("--trust", help="Run the Python file with the physics of this run.")
]
INTERRUPTED = 130
MOST_DRAWS = 1_000_000


@contextmanager
def notices(console: Console) -> Iterator[None]:
    """Print notices about the input as they come, one line each."""
    shown = warnings.showwarning
    said: set[str] = set()

    def show(message, category, *rest, **named):
        if issubclass(category, InputNotice | FitDiverged):
            if str(message) in said:
                return
            said.add(str(message))
            console.print(f"note: {message}", soft_wrap=True, highlight=False, markup=False)
        else:
            shown(message, category, *rest, **named)

    with warnings.catch_warnings():
        warnings.simplefilter("always", InputNotice)
        warnings.showwarning = show
        yield


@contextmanager
def resumable(*again: object) -> Iterator[None]:
    """Where Ctrl-C ends the work inside, say what command goes on with it."""
    try:
        yield
    except KeyboardInterrupt:
        command = shlex.join(str(word) for word in ("hybridsde", *again, "--resume"))
        Console(stderr=True).print(f"Stopped. Go on with: {command}", soft_wrap=True, markup=False)
        raise typer.Exit(INTERRUPTED) from None


@app.command()
def init(
    table: Annotated[
        Path | None, typer.Argument(help="A CSV file: one row per time and trajectory.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Where to write; beside the table by default.")
    ] = None,
    example: Annotated[
        bool,
        typer.Option("--example", help="Generate an example, recordings and settings, instead."),
    ] = False,
    trajectories: Annotated[
        int, typer.Option(min=2, help="With --example: how many recordings.")
    ] = 24,
    regular: Annotated[
        bool,
        typer.Option("--regular", help="With --example: equal time steps and no missing values."),
    ] = False,
) -> None:
    """Write a commented settings file for a table, with its columns guessed.

    With --example: write predator–prey recordings and settings that know one of the two
    equations, into the folder OUT (lotka_volterra by default).
    """
    from hybridsde._files import write_whole
    from hybridsde.project.example import write_example
    from hybridsde.project.settings_template import settings_template

    if example:
        folder = out or Path("lotka_volterra")
        settings = write_example(folder, trajectories, regular=regular)
        typer.echo(f"Wrote {folder / 'recordings.csv'} and {settings}.")
        typer.echo(f"Next: hybridsde fit {settings} --out {folder / 'run'}")
        return
    if table is None:
        raise InputError("Name a CSV file, or say --example.")
    target = out or table.with_suffix(".toml")
    if target.exists():
        raise InputError(f"{target} exists. Choose another name with --out.")
    text = settings_template(table, target.parent)
    write_whole(target, text)
    typer.echo(f"Wrote {target}. Add the equations that you know, then: hybridsde check {target}")


@app.command()
def check(config: Config) -> None:
    """Check data, equations and settings without fitting, and say what a fit would do."""
    from hybridsde.project.project import Project
    from hybridsde.report.overview import overview

    console = Console()
    with notices(console):
        project = Project.open(config)
    for part in overview(project):
        console.print(part)
    console.print(f"All is well. Next: hybridsde fit {config} --out runs/{config.stem}")


@app.command()
def fit(
    config: Config,
    out: Annotated[Path, typer.Option(help="Folder for the run; it must not exist yet.")],
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a fit that was stopped or killed.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Fit the model that CONFIG describes and save it in the folder OUT.

    Ctrl-C, a crash or a power cut lose at most a few seconds of work: --resume goes on, and ends
    with the same numbers.
    """
    from hybridsde.project.project import Project, check_target
    from hybridsde.report.overview import fit_notes, score_table
    from hybridsde.report.terminal import fit_progress

    console = Console()
    began = time.monotonic()
    check_target(out, resume=resume)
    with notices(console):
        project = Project.open(config)
        again = ("fit", config, "--out", out)
        with resumable(*again), fit_progress(Console(quiet=quiet)) as watch:
            run = project.fit_into(out, resume=resume, callbacks=watch("fit"))
    for part in fit_notes(run, project.split.train):
        console.print(part, soft_wrap=True, highlight=False)
    if run.metadata.test_scores is not None:
        title = "Forecasts of held-out trajectories"
        console.print(score_table(run.metadata.test_scores, title))
    seconds = time.monotonic() - began
    console.print(f"Wrote {out} in {seconds:.0f} s. Next: hybridsde report {out}", soft_wrap=True)


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
    draws: Annotated[
        int | None, typer.Option(min=1, max=MOST_DRAWS, help="Sampled futures.")
    ] = None,
    hidden: Annotated[
        bool, typer.Option("--hidden", help="Also states that are not measured.")
    ] = False,
    trust: Trust = False,
) -> None:
    """Go on after the last measured row of every trajectory, with quantiles.

    All rows of the record count: they are filtered, so that states are known which nobody
    measured. Future inputs stand in the same file, in rows without values; without --steps and
    --times these rows are what is forecast. With --from first only the first row counts, and all
    times of the data are forecast.

    CSV and Parquet hold mean, standard deviation and quantiles of what would be measured; .nc
    holds every draw of states and measurements.
    """
    from hybridsde.forecast.export import write_forecast
    from hybridsde.project.recordings import forecast_run

    console = Console()
    if steps and times:
        raise InputError("Give --steps or --times, not both.")
    with notices(console):
        found, calendar = forecast_run(run, data, steps, times, draws, begin=begin, trust=trust)
        write_forecast(found, out, hidden=hidden, calendar=calendar)
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
        found, calendar = states_run(run, data, draws, smooth=not filtered, trust=trust)
        write_table(found.table, found.dataset, out, calendar)
    evidence = float(found.log_evidence.sum())
    console.print(
        f"Wrote {out}: {found.states.sizes['trajectory']} trajectories, "
        f"{', '.join(map(str, found.states['state'].values))}. Log evidence {evidence:.4g}.",
        soft_wrap=True,
    )


@app.command()
def discover(
    run: RunFolder,
    out: Annotated[
        Path | None,
        typer.Option(help="Settings with these equations as known physics, for the next fit."),
    ] = None,
    trust: Trust = False,
) -> None:
    """Print what was learned as equations, with errors and probabilities of every term.

    A library is read as it is; of networks, the terms that explain their drift. With --out: also
    write settings in which these equations are known. Put them beside the first ones, since files
    are named from there.
    """
    from hybridsde._files import write_whole
    from hybridsde.project.discovery import settings_with
    from hybridsde.project.project import SETTINGS, split_of
    from hybridsde.run import Run
    from hybridsde.store.folder import kept_file

    console = Console()
    if out is not None and out.exists():
        raise InputError(f"{out} exists. Choose another name with --out.")
    with notices(console):
        fitted = Run.load(run, trust=trust)
        found = fitted.equations(split_of(run, fitted).train)
    console.print(str(found), soft_wrap=True, highlight=False, markup=False)
    if out is not None:
        physics = (fitted.metadata.settings or {}).get("physics", {})
        text = kept_file(run, SETTINGS).decode("utf-8-sig", errors="replace")
        write_whole(out, settings_with(text, found, physics))
        console.print(f"Wrote {out}. Next: hybridsde check {out}", soft_wrap=True)


@app.command()
def verify(run: RunFolder, trust: Trust = False) -> None:
    """Check that the files of a run are as they were written, and compute its scores again.

    On the machine and with the versions that the run was made with, they are the same to the last
    digit; elsewhere to a tenth of a per cent. Ends with code 1 where they are not.
    """
    from hybridsde.project.verification import verify as verified

    console = Console()
    with notices(console):
        found = verified(run, trust=trust)
    console.print(f"Hashes are right: {', '.join(found.files)}.", soft_wrap=True)
    if found.elsewhere:
        lines = [f"  {one}" for one in found.elsewhere]
        console.print("\n".join(["Made elsewhere:", *lines]), soft_wrap=True, markup=False)
    if found.scores is not None and not found.agrees:
        wrong = found.scores[found.scores["stored"] != found.scores["again"]]
        for (state, name), row in wrong.iterrows():  # pyright: ignore[reportGeneralTypeIssues]
            console.print(f"  {name} of {state}: {row['stored']:.6g}, again {row['again']:.6g}")
    console.print(found.statement, soft_wrap=True)
    if not found.agrees:
        raise typer.Exit(1)


@app.command()
def report(
    run: Annotated[Path, typer.Argument(help="Folder of `hybridsde fit` or `compare`.")],
    trust: Trust = False,
) -> None:
    """Write RUN/report.html: one page with forecasts, scores, calibration and what was learned.

    The page needs no network and can be mailed. Nothing is trained. In the folder of a comparison
    the page holds its table and figures.
    """
    from hybridsde.project.comparison_folder import SCORES_FILE
    from hybridsde.report.comparison import write_comparison_page
    from hybridsde.report.page import write_page

    console = Console()
    if (run / SCORES_FILE).exists():
        path = write_comparison_page(run)
        console.print(f"Wrote {path}. Open it in a browser.", soft_wrap=True)
        return
    with notices(console), console.status("Forecasting the held-out trajectories …"):
        path = write_page(run, trust=trust)
    console.print(f"Wrote {path}. Open it in a browser.", soft_wrap=True)
