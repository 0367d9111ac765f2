"""`hybridsde reproduce`: the paper's experiments."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from hybridsde.cli.engine_options import Address, Workers

if TYPE_CHECKING:
    from rich.table import Table

    from hybridsde.engine import Progress
    from hybridsde.fit import CallbackFactory
    from hybridsde.paper.experiment import Elsewhere, Experiment
    from hybridsde.paper.table import Row, RowKey

reproduce = typer.Typer(help="Run the paper's experiments.", no_args_is_help=True)

Out = Annotated[Path, typer.Option(help="Folder for tables and figures.")]
Repetitions = Annotated[int, typer.Option(min=1, help="Independent repetitions of every row.")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same numbers.")]
PresetName = Annotated[
    str, typer.Option("--preset", help="paper, recommended, or both: settings to train with.")
]
SHOWN = 0
"""The test sequence of the walking figures."""
Where = Annotated[str, typer.Option("--engine", help="Rows in this process (`local`) or on `ray`.")]
Quick = Annotated[bool, typer.Option("--quick", help="Two repetitions: a trial in minutes.")]
BRIEF = 10
"""A quick trial of the Lorenz table trains for this part of the epochs."""


@reproduce.command("lorenz")
def reproduce_lorenz(
    out: Out = Path("runs/lorenz"),
    preset: PresetName = "both",
    protocol: Annotated[
        str,
        typer.Option(
            help="24: sequences of 24 as in the table; 960: from halves of 960 rows, as the text "
            "has it; appendix: of 50 and 100. 24-one, 960-one, appendix-one: one recording for all "
            "repetitions. Or several with commas between them."
        ),
    ] = "24",
    repetitions: Repetitions = 50,
    seed: Seed = 0,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Two repetitions and a tenth of the epochs: a trial."),
    ] = False,
    engine: Where = "local",
    address: Address = None,
    workers: Workers = None,
) -> None:
    """Table 1 and figures: the Lorenz attractor with one equation known, none, or all.

    Writes results.json, results.csv and results.md to OUT; with the protocol 24 also the figures of
    the appendix (PNG and SVG), what one known equation is worth in training sequences, and what a
    learned gate makes of a wrong equation. Rows that are already there with the same settings are
    not computed again.
    """
    from hybridsde.paper import lorenz
    from hybridsde.paper.experiment import QUICKLY
    from hybridsde.paper.learning_curve import SIZES
    from hybridsde.paper.tables import results_tables
    from hybridsde.report.terminal import fit_progress

    _check_out(out)
    protocols = tuple(name.strip() for name in protocol.split(","))
    for name in protocols:
        _choice(name, tuple(lorenz.PROTOCOLS), "--protocol")
    with_figures = next(iter(lorenz.PROTOCOLS)) in protocols
    console = Console()
    presets = _presets(preset, lorenz.PRESETS)
    experiment = lorenz.EXPERIMENT
    if quick:
        experiment = experiment.brief(BRIEF)
        presets = tuple(f"{name}{QUICKLY}" for name in presets)
    repetitions = 2 if quick else repetitions
    sizes = SIZES[:2] if quick else SIZES
    epochs = len(protocols) * experiment.epochs(presets)
    if with_figures:
        epochs += _figure_epochs(experiment, presets[-1], sizes)
    with fit_progress(console, epochs) as watch:
        for name in protocols:
            results = experiment.reproduce(
                out,
                presets=presets,
                repetitions=repetitions,
                protocol=name,
                seed=seed,
                watch=watch,
                elsewhere=None if quick else _elsewhere("lorenz", out, engine, address, workers),
            )
        shown = results_tables(results, "Lorenz attractor, Table 1")
        if with_figures:
            oracle = results.extra[f"oracle_mse_seed_{seed}" if seed else "oracle_mse"]
            more = _lorenz_figures(
                out, experiment, presets[-1], repetitions, sizes, seed, oracle, watch
            )
            shown = (*shown, *more)
    console.print(*shown)
    figures = " and the figures" if with_figures else ""
    console.print(f"Wrote results.json, results.csv, results.md{figures} to {out}.")


def _lorenz_figures(
    out: Path,
    experiment: "Experiment",
    preset: str,
    repetitions: int,
    sizes: tuple[int, ...],
    seed: int,
    oracle: float,
    watch: "CallbackFactory",
) -> "tuple[Table, ...]":
    """Figures, a learned gate, and what one equation is worth, by one preset; tables of the last
    two.
    """
    from hybridsde.paper.figure_data import lorenz_picture
    from hybridsde.paper.figures import attractor, bands, knowledge, paths
    from hybridsde.paper.gate import learn_gate
    from hybridsde.paper.learning_curve import equivalents, learning_curve, readable
    from hybridsde.paper.preset import LIBRARY
    from hybridsde.report.figures import save
    from hybridsde.report.terminal import frame_table

    chosen, settings = experiment.presets[preset], f"{preset} settings"
    picture = lorenz_picture(chosen, seed=seed, watch=watch)
    strengths, terms = learn_gate(chosen, seed=seed, watch=watch)
    method = LIBRARY if preset in experiment.beyond else "e-pac-bayes"
    curve = learning_curve(
        chosen, method, repetitions=min(repetitions, 10), seed=seed, watch=watch, sizes=sizes
    )
    strengths.to_csv(out / "gate.csv")
    terms.to_csv(out / "gate_terms.csv")
    curve.to_csv(out / "knowledge.csv", index=False)
    needed = equivalents(curve)
    needed.to_csv(out / "knowledge_saved.csv")
    save(attractor(picture), out, "attractor")
    for steps in (100, 200, 1000):
        title = f"Lorenz, {steps} steps from T = 10 ({settings})"
        save(bands(picture, steps, 2, title), out, f"forecast_{steps}")
    title = f"Lorenz, single paths of 1000 steps from T = 10 ({settings})"
    save(paths(picture, 1000, 7, title), out, "paths_1000")
    title = f"What one known equation is worth ({settings}, {method})"
    save(knowledge(curve, oracle, title), out, "knowledge")
    return (
        frame_table(strengths, "Gate: dy is right, dz has the wrong sign"),
        frame_table(readable(needed), "Sequences that the black box needs for the same error"),
    )


def _figure_epochs(experiment: "Experiment", preset: str, sizes: tuple[int, ...]) -> int:
    """Epochs of two figures, the gate, and the learning curve."""
    trained = preset not in experiment.beyond  # a library has no epochs
    whole = next(iter(experiment.protocols.values())).train_sequences
    curve = trained * sum(whole / size for size in sizes)
    return round((3 + curve) * experiment.presets[preset].training.epochs)


@reproduce.command("lotka-volterra")
def reproduce_lotka_volterra(
    out: Out = Path("runs/lotka-volterra"),
    preset: PresetName = "both",
    repetitions: Repetitions = 20,
    seed: Seed = 0,
    quick: Quick = False,
    engine: Where = "local",
    address: Address = None,
    workers: Workers = None,
) -> None:
    """Black box, white box with wrong parameters, and hybrid on Lotka–Volterra.

    Writes results.json, results.csv, results.md and the figure of the appendix to OUT. Rows that
    are already there with the same settings are not computed again.
    """
    from hybridsde.paper import lotka_volterra
    from hybridsde.paper.figure_data import lotka_volterra_picture
    from hybridsde.paper.figures import bands
    from hybridsde.paper.tables import results_tables
    from hybridsde.report.figures import save
    from hybridsde.report.terminal import fit_progress

    _check_out(out)
    console = Console()
    presets = _presets(preset, lotka_volterra.PRESETS)
    chosen = lotka_volterra.PRESETS[presets[-1]]
    epochs = lotka_volterra.EXPERIMENT.epochs(presets) + 2 * chosen.training.epochs
    with fit_progress(console, epochs) as watch:
        results = lotka_volterra.EXPERIMENT.reproduce(
            out,
            presets=presets,
            repetitions=2 if quick else repetitions,
            protocol="50",
            seed=seed,
            watch=watch,
            elsewhere=_elsewhere("lotka-volterra", out, engine, address, workers),
        )
        picture = lotka_volterra_picture(chosen, seed=seed, watch=watch)
    title = f"Lotka–Volterra, 200 steps from t = 1 ({presets[-1]} settings)"
    save(bands(picture, 200, 3, title), out, "forecast_200")
    console.print(*results_tables(results, "Lotka–Volterra"))
    console.print(f"Wrote results.json, results.csv, results.md and the figure to {out}.")


@reproduce.command("mocap")
def reproduce_mocap(
    out: Out = Path("runs/mocap"),
    preset: PresetName = "both",
    centred: Annotated[
        bool,
        typer.Option(
            help="Published data, each sequence centred on its own future, or the data without it."
        ),
    ] = True,
    methods: Annotated[
        str,
        typer.Option(
            help="`proposed`: the paper's own rows. `all`: the eleven rows of the table. Or names "
            "of other systems with commas between them: dtsbn-s, npode, neural-ode, ode2vae, "
            "ode2vae-kl, linear-gaussian, climatology, persistence."
        ),
    ] = "proposed",
    protocol: Annotated[
        int,
        typer.Option(
            min=1,
            max=2,
            help="1: the paper's, 3 frames given. 2: that of later work, 100 frames given and 200 "
            "forecast, trained on 200.",
        ),
    ] = 1,
    repetitions: Repetitions = 10,
    seed: Seed = 0,
    quick: Quick = False,
) -> None:
    """Table 2: walking, three frames given and 297 forecast, with a latent SDE.

    The six rows that the paper proposes or extends, and with `--methods all` the five systems that
    it compares with: Neural ODE, npODE, ODE²VAE, ODE²VAE-KL and DTSBN-S. `--protocol 2` is another
    table: 100 frames given, 200 forecast, with scores of validation and left-out sequences.

    Needs the motion-capture files; without them it says which, and where they come from. Writes
    results.json, results.csv and results.md, forecasts of joint angles (PNG and SVG) and a stick
    figure that walks (GIF) to OUT. Rows that are already there with the same settings are not
    computed again.
    """
    from hybridsde.paper import mocap
    from hybridsde.paper.figure_data import walking_picture
    from hybridsde.paper.mocap_data import posture, walking
    from hybridsde.paper.mocap_figures import angles, save_stick_figure
    from hybridsde.paper.mocap_others import OTHERS
    from hybridsde.paper.mocap_sde import PRESETS
    from hybridsde.paper.tables import effects_rich, results_tables
    from hybridsde.report.figures import save
    from hybridsde.report.terminal import fit_progress

    _check_out(out)
    console = Console()
    presets = _presets(preset, PRESETS)
    others = _others(methods, mocap.COMPARED, tuple(OTHERS))
    repetitions = 2 if quick else repetitions
    if protocol == 2:
        if others:
            raise typer.BadParameter("goes with --protocol 1 only.", param_hint="--methods")
        _walking_after_100(out, presets, centred, repetitions, seed)
        return
    data, pose = walking(centred=centred), posture(centred=centred)
    with fit_progress(console) as watch:
        results = mocap.reproduce(
            out,
            presets=presets,
            others=others,
            centred=centred,
            repetitions=repetitions,
            seed=seed,
            data=data,
            watch=watch,
        )
        chosen = PRESETS[presets[-1]]
        picture = walking_picture(chosen, data, SHOWN, seed=seed, watch=watch)
    title = f"Walking, 3 frames given ({presets[-1]} settings, test sequence {SHOWN})"
    save(angles(picture, title), out, "angles")
    save_stick_figure(picture, pose, out / "walking.gif", "Walking after 3 frames, half speed")
    console.print(*results_tables(results, "CMU walking, Table 2"))
    console.print(effects_rich(mocap.changes(results.rows)))
    console.print(f"Wrote results.json, results.csv, results.md and the figures to {out}.")


def _walking_after_100(
    out: Path, presets: tuple[str, ...], centred: bool, repetitions: int, seed: int
) -> None:
    """The second protocol of walking: its table, and two pictures of one test sequence."""
    from hybridsde.paper import mocap_history
    from hybridsde.paper.mocap_data import posture, walking
    from hybridsde.paper.mocap_figures import angles, save_stick_figure
    from hybridsde.paper.tables import history_table
    from hybridsde.report.figures import save
    from hybridsde.report.terminal import fit_progress

    console = Console()
    data, pose = walking(centred=centred), posture(centred=centred)
    with fit_progress(console) as watch:
        results = mocap_history.reproduce(
            out,
            presets=presets,
            centred=centred,
            repetitions=repetitions,
            seed=seed,
            data=data,
            watch=watch,
        )
        picture = mocap_history.picture(data, SHOWN, centred=centred, seed=seed)
    title = f"Walking, {mocap_history.GIVEN} frames given (gait SDE, test sequence {SHOWN})"
    save(angles(picture, title), out, "angles")
    save_stick_figure(picture, pose, out / "walking.gif", "Walking after 100 frames, half speed")
    console.print(history_table(results.rows))
    console.print(f"Wrote results.json, results.csv, results.md and the figures to {out}.")


@reproduce.command("cost")
def reproduce_cost(
    out: Out = Path("runs/cost"),
    seed: Seed = 0,
    quick: Annotated[
        bool, typer.Option("--quick", help="Two sizes of each and few timings: a trial.")
    ] = False,
) -> None:
    """The cost table: time of a training iteration against samples, length, width and dimension.

    Writes results.json, results.csv, results.md with the measured slopes beside the paper's O(·),
    and cost.png and cost.svg to OUT. Leave the machine alone while it measures.
    """
    from hybridsde.paper import cost
    from hybridsde.paper.figures import cost_figure
    from hybridsde.paper.tables import cost_tables
    from hybridsde.report.figures import save
    from hybridsde.report.terminal import counted

    _check_out(out)
    console = Console()
    with counted(console, len(cost.settings(quick))) as tick:
        results = cost.measure(out, quick=quick, seed=seed, tick=tick)
    sweeps = cost.sweep_times(results.rows)
    save(cost_figure(sweeps, {name: cost.SWEEPS[name].exponent for name in sweeps}), out, "cost")
    console.print(*cost_tables(results.rows))
    console.print(f"Wrote results.json, results.csv, results.md and the figure to {out}.")


def _elsewhere(
    table: str, out: Path, engine: str, address: str | None, workers: int | None
) -> "Elsewhere | None":
    """Computes rows on an engine; None where this process does."""
    from hybridsde.cli.engines import LOCAL, executor_of, settle_devices
    from hybridsde.paper.rows_elsewhere import FOLDER, compute

    if engine == LOCAL:
        return None
    devices = settle_devices(out / FOLDER)

    def rows(keys: "Sequence[RowKey]") -> "Mapping[RowKey, Row]":
        console = Console(stderr=True)

        def report(progress: "Progress") -> None:
            console.print(f"{progress.done} of {progress.of} rows", *progress.news, soft_wrap=True)

        with executor_of(engine, address, workers, devices) as executor:
            return compute(table, keys, out, executor, devices, report)

    return rows


def _check_out(out: Path) -> None:
    """Say so before anything is computed where the folder holds a broken table."""
    from hybridsde.paper.table import saved

    saved(out)


def _presets(asked: str, known: Mapping[str, object]) -> tuple[str, ...]:
    """The presets to run, the one for figures last."""
    _choice(asked, (*known, "both"), "--preset")
    return tuple(known) if asked == "both" else (asked,)


def _others(asked: str, compared: tuple[str, ...], known: tuple[str, ...]) -> tuple[str, ...]:
    """Names of the systems to compare with."""
    if asked == "proposed":
        return ()
    if asked == "all":
        return compared
    names = tuple(name.strip() for name in asked.split(","))
    for name in names:
        _choice(name, ("proposed", "all", *known), "--methods")
    return names


def _choice(value: str, allowed: tuple[str, ...], option: str) -> None:
    if value not in allowed:
        raise typer.BadParameter(
            f"{value!r} is not one of {', '.join(allowed)}.", param_hint=option
        )
