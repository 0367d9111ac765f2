"""`hybridsde compare`: your recordings with and without physics, and what else could be used."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from hybridsde._errors import InputError
from hybridsde.cli.app import app
from hybridsde.cli.engine_options import Address, Engine, Workers
from hybridsde.cli.options import Config, Json, Quiet, notices
from hybridsde.cli.stopping import stoppable


@app.command()
def compare(
    config: Config,
    out: Annotated[Path, typer.Option(help="Folder for the table and the figure.")],
    seeds: Annotated[int, typer.Option(min=1, help="Fits of every variant.")] = 5,
    methods: Annotated[
        str,
        typer.Option(
            help="Other systems beside them: `simple` ones, `all`, `proposed` for none, or names "
            "with commas between them: neural-ode, npode, npsde, ode2vae, ode2vae-kl, dtsbn-s, "
            "linear-gaussian, persistence, climatology, analogues, mean-curve, var."
        ),
    ] = "simple",
    origins: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Also forecast from so many rows along each held-out record, all rows before "
            "given, and score by lead time.",
        ),
    ] = None,
    horizon: Annotated[
        int | None,
        typer.Option(min=1, help="With --origins: rows ahead; that of the settings by default."),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Go on with a comparison that was stopped, or add systems."),
    ] = False,
    engine: Engine = "local",
    address: Address = None,
    workers: Workers = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Black box, physics alone and hybrid, with and without PAC-Bayes, on the same split.

    And simple forecasters that they should beat; with `--methods all` also what else could have
    been used. Every system is trained by its own settings; all are calibrated on the same
    validation recordings.

    Writes scores.csv (one row per fit, after every system), comparison.csv, comparison.md and
    comparison.png/svg, and every fit into runs/, as a run folder with the settings of the
    project; with --origins also backtest.csv and backtest.png/svg.
    """
    from hybridsde._files import write_whole
    from hybridsde.cli.engines import LOCAL, executor_of, job_progress, settle_devices
    from hybridsde.engine.comparison import FOLDER, ComparisonJob, compare_through
    from hybridsde.project.compare import (
        OF,
        by_observation,
        headline,
        others,
        summarise,
        variants,
        verdict,
    )
    from hybridsde.project.comparison_folder import backtest_into, check_folder, compare_into
    from hybridsde.project.project import Project
    from hybridsde.project.recordings import horizon_of
    from hybridsde.report.comparison import (
        comparison_figure,
        comparison_markdown,
        lead_figure,
        lead_summary,
        variant_names,
    )
    from hybridsde.report.figures import save
    from hybridsde.report.terminal import fit_progress, frame_table

    if horizon is not None and origins is None:
        raise InputError("--horizon goes with --origins.")
    console = Console(stderr=as_json)
    again = ["compare", config, "--out", out, "--seeds", seeds, "--methods", methods]
    again += [] if engine == LOCAL else ["--engine", engine]
    for name, asked in (("--origins", origins), ("--horizon", horizon)):
        again += [] if asked is None else [name, asked]
    with notices(console):
        project = Project.open(config)
        ahead = horizon_of(project.settings.forecast, horizon) if origins else None
        check_folder(out, project, seeds, resume=resume)
        compared = others(project, methods)
        bars = Console(stderr=as_json, quiet=quiet)
        with stoppable(*again, "--resume"):
            if engine == LOCAL:
                known = len(variants(project)) * project.training.epochs
                with fit_progress(bars, None if compared or resume else known) as watch:
                    scores = compare_into(out, project, seeds, watch, compared, resume=resume)
            else:
                job = ComparisonJob.of(project, out, seeds, methods)
                candidates = [*variants(project), *compared]
                devices = settle_devices(out / FOLDER)
                with (
                    executor_of(engine, address, workers, devices) as executor,
                    job_progress(bars, "systems") as report,
                ):
                    scores = compare_through(
                        job, project, candidates, executor, devices, report, resume=resume
                    )
    table = summarise(scores)
    write_whole(out / "comparison.csv", table.to_csv(index=False))
    write_whole(out / "comparison.md", comparison_markdown(table))
    save(comparison_figure(scores), out, "comparison")
    by_lead = None
    if ahead is not None:
        with notices(console), stoppable(*again, "--resume"):
            by_lead = backtest_into(out, project, scores, ahead, origins)
        save(lead_figure(by_lead), out, "backtest")
    if as_json:
        typer.echo(table.to_json(orient="records", indent=1))
        return
    shown = table.assign(variant=variant_names(table)).set_index("variant")
    by = headline(table)
    columns = [by.replace("crps", "rmse"), "nll", by, f"{by}_se", "coverage90"]
    units = ", errors in spreads of the data" if by != "crps" else ""
    console.print(
        frame_table(shown.reindex(columns=columns), f"Held-out trajectories, {seeds} seeds{units}")
    )
    each = by_observation(table, "crps")
    if each:
        own = shown.reindex(columns=each)
        own.columns = [name.split(OF, 1)[1] for name in each]
        console.print(frame_table(own, "CRPS of each state, in its own units"))
    if by_lead is not None:
        console.print(frame_table(lead_summary(by_lead), f"CRPS by rows ahead, {seeds} seeds"))
    said = verdict(table)
    if said:
        console.print(said, soft_wrap=True, highlight=False)
    console.print(f"Wrote {out}. Next: hybridsde report {out}", soft_wrap=True)
