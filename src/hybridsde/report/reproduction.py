"""Reproduced tables in a terminal."""

from collections.abc import Iterator

from rich.table import Table

from hybridsde.experiments.table import Results, Row


def results_tables(results: Results, title: str) -> Iterator[Table]:
    """Measured MSE, CRPS and coverage beside the paper's MSE, a table per preset."""
    for preset in dict.fromkeys(row.preset for row in results.rows):
        table = Table(title=f"{title}, {preset} settings")
        for name in ("known", "method"):
            table.add_column(name, no_wrap=True)
        for name in ("paper", "MSE ± s.e.", "median", "CRPS", "90 % covers"):
            table.add_column(name, justify="right", no_wrap=True)
        for row in results.rows:
            if row.preset == preset:
                table.add_row(*_cells(row))
        floors = [f"{name.removesuffix('_mse')} {value:.3g}" for name, value in _floors(results)]
        table.caption = "MSE of " + ", ".join(floors)
        yield table


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.known,
        row.method,
        "–" if row.published_mse is None else f"{row.published_mse:.2f}",
        f"{row.mse_mean:.3g} ± {row.mse_se:.2g}",
        f"{row.mse_median:.3g}",
        f"{row.crps_mean:.3g}",
        f"{row.coverage90_mean:.2f}",
    )


def _floors(results: Results) -> list[tuple[str, float]]:
    return [(name, value) for name, value in results.extra.items() if name.endswith("_mse")]
