"""`hybridsde demo`."""

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from hybridsde.cli.app import app
from hybridsde.cli.options import Show, notices, show_page


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the scores and the picture.")] = Path(
        "demo"
    ),
    seed: Annotated[int, typer.Option(help="The same seed gives the same numbers.")] = 0,
    epochs: Annotated[
        int, typer.Option(min=1, help="Shorter or longer training of the black box.")
    ] = 300,
    show: Show = True,
) -> None:
    """Run the embedded example: a pendulum whose gravity is known and whose friction is not.

    Three short recordings of small swings are learned from. Forty new ones, longer and larger, are
    forecast by a black box, by gravity alone and by both together. Writes OUT/demo.png,
    OUT/scores.csv, the hybrid as a run folder, and its report.
    """
    from hybridsde._files import make_folder, write_whole
    from hybridsde.project.demo import NEW, run_demo
    from hybridsde.report.demo_picture import demo_picture
    from hybridsde.report.figures import write_figure
    from hybridsde.report.page import write_page
    from hybridsde.report.terminal import fit_progress, frame_table

    console = Console()
    began = time.monotonic()
    console.print(
        "A simulated pendulum with noisy sensors. Given: dq = v, dv = −w sin q, with w about 5. "
        "Not given: that there is friction, and that w is 6."
    )
    with fit_progress(console) as callbacks:
        result = run_demo(seed=seed, epochs=epochs, callbacks=callbacks)
    make_folder(out)
    write_whole(out / "scores.csv", result.scores.to_csv())
    write_figure(demo_picture(result), out / "demo.png")
    columns = ["rmse", "crps", "coverage90", "width90"]
    title = f"Forecasts of {NEW} new swings; rad and rad/s"
    console.print(frame_table(result.scores.reindex(columns=columns), title))
    for sentence in result.sentences():
        console.print(f"- {sentence}", soft_wrap=True, highlight=False)
    with notices(console), console.status("Writing the report …"):
        page = write_page(result.keep(out))
    seconds = time.monotonic() - began
    console.print(
        f"Wrote {out / 'demo.png'}, {out / 'scores.csv'} and {page} in {seconds:.0f} s.",
        soft_wrap=True,
    )
    show_page(page, show=show)
