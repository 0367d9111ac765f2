"""`hybridsde update`: learn from further recordings."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from hybridsde.cli.app import app
from hybridsde.cli.options import Quiet, RunFolder, Trust, notices


@app.command()
def update(
    run: RunFolder,
    data: Annotated[str, typer.Option(help="Further recordings, with the columns of the first.")],
    out: Annotated[Path, typer.Option(help="Folder for the updated run; it must not exist yet.")],
    trust: Trust = False,
    quiet: Quiet = False,
) -> None:
    """Learn from further recordings, with what was learned before as the prior.

    The first recordings are not fitted again: a library takes seconds, networks a part of the
    time of a fit. Physical parameters, diffusion, noise and starts stay as they are; after a change
    of the system, or with many times more recordings, fit anew. The old folder stays as it is.
    """
    from hybridsde.project.project import split_of
    from hybridsde.project.updates import update_run
    from hybridsde.report.overview import fit_notes, score_table
    from hybridsde.report.terminal import fit_progress

    console = Console()
    with notices(console), fit_progress(Console(quiet=quiet)) as watch:
        found, before = update_run(run, data, out, callbacks=watch("update"), trust=trust)
    for part in fit_notes(found, split_of(out, found).train):
        console.print(part, soft_wrap=True, highlight=False)
    if before is not None:
        console.print(score_table(before, "Forecasts of held-out trajectories, before"))
    if found.metadata.test_scores is not None:
        console.print(score_table(found.metadata.test_scores, "After"))
    console.print(f"Wrote {out}. Next: hybridsde report {out}", soft_wrap=True)
