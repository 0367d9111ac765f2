"""Reproduced tables in a terminal."""

from rich.table import Table

from hybridsde.experiments.table import Results


def results_table(results: Results, title: str) -> Table:
    """Measured MSE, CRPS and coverage of the 90 % interval beside the paper's MSE."""
    table = Table(title=title)
    for name in ("known", "method", "preset"):
        table.add_column(name, no_wrap=True)
    for name in ("paper", "MSE ± s.e.", "median", "CRPS", "90 %"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in results.rows:
        table.add_row(
            row.known,
            row.method,
            row.preset,
            "–" if row.published_mse is None else f"{row.published_mse:.2f}",
            f"{row.mse_mean:.3g} ± {row.mse_se:.2g}",
            f"{row.mse_median:.3g}",
            f"{row.crps_mean:.3g}",
            f"{row.coverage90_mean:.2f}",
        )
    caption = [
        f"{name.removesuffix('_mse')} {value:.3g}"
        for name, value in results.extra.items()
        if name.endswith("_mse")
    ]
    table.caption = "MSE of " + ", ".join(caption) if caption else None
    return table
