"""Reproduced tables in a terminal."""

from collections.abc import Iterator

from rich.table import Table

from hybridsde.paper import cost
from hybridsde.paper.factorial import Effect
from hybridsde.paper.mocap_history_notes import PUBLISHED, number
from hybridsde.paper.table import Results, Row, published


def results_tables(results: Results, title: str) -> Iterator[Table]:
    """Measured MSE, CRPS and coverage beside the paper's MSE, a table per preset and protocol."""
    for preset, protocol in dict.fromkeys((row.preset, row.protocol) for row in results.rows):
        table = Table(title=f"{title}, {preset} settings, protocol {protocol}")
        for name in ("known", "method"):
            table.add_column(name, no_wrap=True)
        for name in ("paper", "MSE ± s.e.", "median", "CRPS", "in 90 %"):
            table.add_column(name, justify="right", no_wrap=True)
        for row in results.rows:
            if (row.preset, row.protocol) == (preset, protocol):
                table.add_row(*_cells(row))
        floors = [f"{name.replace('_mse', '')} {value:.3g}" for name, value in _floors(results)]
        table.caption = "MSE of " + ", ".join(floors)
        yield table


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.known,
        row.method,
        published(row),
        f"{row.mse_mean:.3g} ± {row.mse_se:.2g}",
        f"{row.mse_median:.3g}",
        f"{row.crps_mean:.3g}",
        f"{row.coverage90_mean:.2f}",
    )


def history_table(rows: list[Row]) -> Table:
    """MSE on test, validation and left-out sequences, beside what others have published."""
    table = Table(title="CMU walking, 100 frames given, 200 forecast")
    for name in ("known", "method"):
        table.add_column(name, no_wrap=True)
    for name in ("MSE", "sd", "one path", "in 90 %", "CRPS", "validation", "left out"):
        table.add_column(name, justify="right")
    for r in rows:
        scores = (r.mse_mean, r.mse_sd, r.mse_sample_mean, r.coverage90_mean, r.crps_mean)
        numbers = (number(score) for score in (*scores, r.validation_mse, r.left_out_mse))
        table.add_row(r.known, r.method, *numbers)
    said = (f"{name} {mean:g}" for name, (mean, _) in PUBLISHED.items())
    table.caption = "Published MSE: " + ", ".join(said)
    return table


def _floors(results: Results) -> list[tuple[str, float]]:
    return [(name, value) for name, value in results.extra.items() if "_mse" in name]


def effects_rich(found: list[Effect]) -> Table:
    """Paired changes of a 2×2 design."""
    table = Table(title="Change of the MSE, repetition by repetition (below zero is better)")
    for name in ("preset", "change", "given"):
        table.add_column(name)
    for name in ("mean", "95 % interval", "p"):
        table.add_column(name, justify="right", no_wrap=True)
    for e in found:
        interval = f"{e.low:+.2f} to {e.high:+.2f}"
        table.add_row(e.preset, e.change, e.given, f"{e.mean:+.2f}", interval, f"{e.p:.2g}")
    return table


def cost_tables(rows: list[Row]) -> Iterator[Table]:
    """Slopes of the time of an iteration beside the paper's exponents, and the methods."""
    sweeps = Table(title="Time of a training iteration: how it grows")
    for name in ("varied", "slope", "exponent", "O(·)"):
        sweeps.add_column(name, justify="left" if name in ("varied", "O(·)") else "right")
    for name, times in cost.sweep_times(rows).items():
        plan = cost.SWEEPS[name]
        sweeps.add_row(name, f"{cost.slope(times):.2f}", f"{plan.exponent}", plan.formula)
    yield sweeps
    methods = Table(title="Time of a training iteration: by method")
    for name in ("method", "ms", "O(·)"):
        methods.add_column(name, justify="right" if name == "ms" else "left")
    for name, seconds in cost.method_times(rows).items():
        methods.add_row(name, f"{1e3 * seconds:.3g}", cost.METHOD_SETTINGS[name][1])
    yield methods
