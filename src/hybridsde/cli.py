"""Commands: thin verbs over the library."""

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

app = typer.Typer(
    help="Learn the missing part of a stochastic dynamical system, keep the known part, and "
    "forecast with honest uncertainty.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _version(asked: bool) -> bool:
    if asked:
        import hybridsde

        typer.echo(hybridsde.__version__)
        raise typer.Exit
    return asked


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Hybridsde."""
    del version


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the scores and the picture.")] = Path(
        "demo"
    ),
    seed: Annotated[int, typer.Option(help="The same seed gives the same numbers.")] = 0,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Shorter or longer training than the default 500.")
    ] = None,
) -> None:
    """Run the embedded example: Lorenz with one equation known, against a black box.

    The second equation is given with a wrong parameter (29 instead of 28), the other two are
    learned. Both models see 20 short sequences. Writes OUT/scores.csv and OUT/forecast.png.
    """
    from hybridsde.datasets import lorenz
    from hybridsde.experiments.demo import WRONG_KAPPA, run_demo
    from hybridsde.experiments.lorenz import PROTOCOLS
    from hybridsde.report.figures import compare_forecasts
    from hybridsde.report.terminal import fit_progress, score_table

    console = Console()
    began = time.monotonic()
    console.print(
        "Stochastic Lorenz attractor; known: dy = (x(κ − z) − y) dt with "
        f"κ = {WRONG_KAPPA:g} (truth {lorenz.TRUE['kappa']:g}); dx and dz are to be learned."
    )
    with fit_progress(console) as callbacks:
        result = run_demo(seed=seed, epochs=epochs, callbacks=callbacks)
    out.mkdir(parents=True, exist_ok=True)
    result.scores.to_csv(out / "scores.csv", index_label="forecaster")
    figure = compare_forecasts(
        result.forecasts,
        result.truth,
        title="Forecasts of the Lorenz attractor from one start",
        trained=(PROTOCOLS["24"].train_length - 1) * lorenz.INTERVAL,
    )
    figure.savefig(out / "forecast.png", dpi=150)
    columns = ["mse", "rmse", "crps", "coverage90", "width90"]
    console.print(
        score_table(result.scores.reindex(columns=columns), "23 steps ahead, 20 test sequences")
    )
    console.print(
        f"Wrote {out / 'scores.csv'} and {out / 'forecast.png'} "
        f"in {time.monotonic() - began:.0f} s."
    )


reproduce = typer.Typer(help="Run the paper's experiments.", no_args_is_help=True)
app.add_typer(reproduce, name="reproduce")

Out = Annotated[Path, typer.Option(help="Folder for tables and figures.")]
Repetitions = Annotated[int, typer.Option(min=1, help="Independent repetitions of every row.")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same numbers.")]
Quick = Annotated[bool, typer.Option("--quick", help="Two repetitions: a trial in minutes.")]


@reproduce.command("lorenz")
def reproduce_lorenz(
    out: Out = Path("runs/lorenz"),
    preset: Annotated[
        str, typer.Option(help="paper, recommended, or both: whose settings to train with.")
    ] = "both",
    protocol: Annotated[
        str, typer.Option(help="24: sequences of 24 as in the table; appendix: 50 and 100.")
    ] = "24",
    repetitions: Repetitions = 50,
    seed: Seed = 0,
    quick: Quick = False,
) -> None:
    """Table 1: the Lorenz attractor with one equation known, none, or all.

    Writes results.json, results.csv and results.md to OUT. Rows that are already there with the
    same settings are not computed again.
    """
    from hybridsde.experiments import lorenz
    from hybridsde.report.reproduction import results_table
    from hybridsde.report.terminal import fit_progress

    _choice(preset, (*lorenz.PRESETS, "both"), "--preset")
    _choice(protocol, tuple(lorenz.PROTOCOLS), "--protocol")
    console = Console()
    presets = tuple(lorenz.PRESETS) if preset == "both" else (preset,)
    repetitions = 2 if quick else repetitions
    rows = len(lorenz.PUBLISHED) - 1
    epochs = sum(rows * lorenz.PRESETS[name].training.epochs for name in presets)
    with fit_progress(console, epochs) as watch:
        results = lorenz.reproduce(
            out,
            presets=presets,
            repetitions=repetitions,
            protocol=protocol,
            seed=seed,
            watch=watch,
        )
    console.print(results_table(results, "Lorenz attractor, Table 1"))
    console.print(f"Wrote results.json, results.csv and results.md to {out}.")


def _choice(value: str, allowed: tuple[str, ...], option: str) -> None:
    if value not in allowed:
        raise typer.BadParameter(
            f"{value!r} is not one of {', '.join(allowed)}.", param_hint=option
        )
