"""`hybridsde demo`."""

import time
import webbrowser
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from hybridsde.cli.app import app
from hybridsde.cli.options import can_open, notices


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the scores and the picture.")] = Path(
        "demo"
    ),
    seed: Annotated[int, typer.Option(help="The same seed gives the same numbers.")] = 0,
    epochs: Annotated[
        int, typer.Option(min=1, help="Shorter or longer training than the default.")
    ] = 500,
    show: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the report in a browser at the end.")
    ] = True,
) -> None:
    """Run the embedded example: Lorenz with one equation known, against a black box.

    The second equation is given with a wrong parameter (29 instead of 28), the other two are
    learned. Both models see 20 short sequences. Writes OUT/scores.csv, OUT/forecast.png, the hybrid
    as a run folder, and its report.
    """
    from hybridsde._files import make_folder, write_whole
    from hybridsde.datasets import lorenz
    from hybridsde.project.demo import LENGTH, WRONG_KAPPA, run_demo
    from hybridsde.report.figures import compare_forecasts, write_figure
    from hybridsde.report.page import write_page
    from hybridsde.report.terminal import fit_progress, frame_table

    console = Console()
    began = time.monotonic()
    console.print(
        "Stochastic Lorenz attractor; known: dy = (x(κ − z) − y) dt with "
        f"κ = {WRONG_KAPPA:g} (truth {lorenz.TRUE['kappa']:g}); dx and dz are to be learned."
    )
    with fit_progress(console) as callbacks:
        result = run_demo(seed=seed, epochs=epochs, callbacks=callbacks)
    make_folder(out)
    write_whole(out / "scores.csv", result.scores.to_csv())
    figure = compare_forecasts(
        result.forecasts,
        result.truth,
        title="Forecasts of the Lorenz attractor from one start",
        trained=(LENGTH - 1) * lorenz.RECORDER.interval,
    )
    write_figure(figure, out / "forecast.png")
    columns = ["mse", "rmse", "crps", "coverage90", "width90"]
    console.print(
        frame_table(result.scores.reindex(columns=columns), "23 steps ahead, 20 test sequences")
    )
    with notices(console), console.status("Writing the report …"):
        page = write_page(result.keep(out))
    console.print(
        f"Wrote {out / 'scores.csv'}, {out / 'forecast.png'} and {page} "
        f"in {time.monotonic() - began:.0f} s.",
        soft_wrap=True,
    )
    if show and can_open():
        webbrowser.open(page.resolve().as_uri())
