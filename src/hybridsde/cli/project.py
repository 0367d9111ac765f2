"""`hybridsde init | check | fit`: from a table to a run."""

import time
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from hybridsde._errors import InputError
from hybridsde.cli.app import app
from hybridsde.cli.options import Config, Quiet, notices
from hybridsde.cli.stopping import kept_of_fit, stoppable


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
    from hybridsde.project.guessing import guess_table, looks_like_doses
    from hybridsde.project.settings_template import template_of

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
    console = Console()
    with notices(console):
        guess = guess_table(table)
    write_whole(target, template_of(guess, table, target.parent, target.name))
    for line in guess.notes:
        typer.echo(line)
    for name in guess.doses:
        typer.echo(f"Left open: {looks_like_doses(name)} {target} says the choices.")
    typer.echo(f"Wrote {target}. Add the equations that you know, then: hybridsde check {target}")


@app.command()
def look(
    source: Annotated[Path, typer.Argument(help="A CSV file, or settings that name some.")],
    out: Annotated[
        Path | None, typer.Option(help="The page to write; beside the table by default.")
    ] = None,
) -> None:
    """Look at recordings before any fit: gaps, rates, outliers, saturation, suggested settings.

    Prints what stands out and writes one page that needs no network. Columns are guessed as `init`
    does; give a settings file to say what they are.
    """
    from hybridsde.project.look import look as looked
    from hybridsde.report.look import fact_rows, write_look
    from hybridsde.report.terminal import frame_table

    console = Console()
    with notices(console):
        found = looked(source)
    short = {"values": "rows", "missing": "gaps", "lowest": "low", "highest": "high"}
    facts = fact_rows(found).rename(columns=short)  # eighty columns hold them
    count = len(found.data)
    console.print(frame_table(facts, f"{count} recordings" if count > 1 else "1 recording"))
    for line in found.findings:
        console.print(f"- {line}", soft_wrap=True, highlight=False, markup=False)
    path = write_look(found, out or source.with_name(f"{source.stem}-look.html"))
    console.print(f"Wrote {path}. Open it in a browser.", soft_wrap=True)


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
    coordinator: Annotated[
        str | None,
        typer.Option(help="For one large fit by several processes: host:port of the first."),
    ] = None,
    processes: Annotated[int, typer.Option(min=1, help="With --coordinator: how many.")] = 1,
    process: Annotated[
        int, typer.Option(min=0, help="With --coordinator: which this is; 0 writes the folder.")
    ] = 0,
    profile: Annotated[
        bool,
        typer.Option("--profile", help="Also print profile intervals of learned parameters."),
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Fit the model that CONFIG describes and save it in the folder OUT.

    After Ctrl-C, a crash or a power cut --resume ends with the same numbers. Networks go on where
    they were at most a few seconds before; a library of terms is searched for anew.

    Ends with code 2 where settings or data cannot be used, and with 3 where no loss was a number.

    One large fit can be shared by processes on several machines: call each with the same
    --coordinator and --processes, and its own number as --process.
    """
    from hybridsde._devices import on_processor
    from hybridsde._watchdog import watched
    from hybridsde.project.project import Project, check_target
    from hybridsde.report.overview import fit_notes, profile_table, score_table
    from hybridsde.report.terminal import fit_progress

    console = Console()
    began = time.monotonic()
    if coordinator is not None:
        _join(coordinator, processes, process, resume=resume)
    if process:
        Project.open(config).fit_beside()
        return
    check_target(out, resume=resume)
    with notices(console):
        project = Project.open(config)
        again = stoppable("fit", config, "--out", out, "--resume", kept=lambda: kept_of_fit(out))
        # Processes that share a fit wait for each other, and rightly so.
        # On a GPU the processor may rightly rest.
        alone = watched() if coordinator is None and on_processor() else nullcontext()
        with again, alone, fit_progress(Console(quiet=quiet)) as watch:
            run = project.fit_into(out, resume=resume, callbacks=watch("fit"))
        for part in fit_notes(run, project.split.train):
            console.print(part, soft_wrap=True, highlight=False)
        if profile:
            console.print(profile_table(run, project.split.train))
    if run.metadata.test_scores is not None:
        title = "Forecasts of held-out trajectories"
        console.print(score_table(run.metadata.test_scores, title, run.metadata.floor))
    seconds = time.monotonic() - began
    console.print(f"Wrote {out} in {seconds:.0f} s. Next: hybridsde report {out}", soft_wrap=True)


def _join(coordinator: str, processes: int, process: int, *, resume: bool) -> None:
    """Bring processes together before anything is computed."""
    from hybridsde._devices import join_processes

    if process >= processes:
        raise InputError(f"--process counts from 0 to {processes - 1}.")
    if resume:
        raise InputError("--resume goes on with a fit of one process, without --coordinator.")
    join_processes(coordinator, processes, process)
