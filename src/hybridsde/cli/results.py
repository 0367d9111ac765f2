"""`hybridsde report | discover | verify`: what was learned, and whether it is still so."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from hybridsde._errors import InputError
from hybridsde.cli.app import app
from hybridsde.cli.options import RunFolder, Show, Trust, notices, show_page


@app.command()
def report(
    run: Annotated[Path, typer.Argument(help="Folder of `hybridsde fit` or `compare`.")],
    trust: Trust = False,
    show: Show = True,
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
    else:
        with notices(console), console.status("Forecasting the held-out trajectories …"):
            path = write_page(run, trust=trust)
    console.print(f"Wrote {path}. Open it in a browser.", soft_wrap=True)
    show_page(path, show=show)


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
