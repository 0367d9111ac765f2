"""What is said about the second protocol of walking: published numbers, tables, notes."""

from hybridsde.paper.table import Row

TITLE = "CMU walking, second protocol: 100 frames given, 200 forecast"
PUBLISHED: dict[str, tuple[float, float | None]] = {
    "latent SDE": (9.52, None),
    "NCDSSM": (4.74, None),
    "SDE Matching": (4.26, None),
    "best published": (3.41, 0.27),
}
"""Test MSE on centred data, and its spread where it is given."""
NOTES = """TO BE WRITTEN"""


def tables(rows: list[Row]) -> list[str]:
    """Published numbers, then every row with its test, validation and left-out scores."""
    header = (
        "| known | method | preset | data | MSE | sd | one path | NLL | CRPS | 90 % coverage | "
        "validation MSE | coverage | left-out MSE | coverage | n |"
    )
    lines = [header, "|---" * 15 + "|"]
    for name, (mean, sd) in PUBLISHED.items():
        spread = "–" if sd is None else f"{sd:.2f}"
        lines.append(f"| – | {name} | published | centred | {mean:.2f} | {spread} |{' – |' * 9}")
    return lines + [_line(row) for row in rows]


def _line(r: Row) -> str:
    return (
        f"| {r.known} | {r.method} | {r.preset} | {r.protocol} | {r.mse_mean:.2f} | "
        f"{r.mse_sd:.2f} | {r.mse_sample_mean:.2f} | {r.nll_mean:.2f} | {r.crps_mean:.2f} | "
        f"{r.coverage90_mean:.2f} | {_number(r.validation_mse)} | "
        f"{_number(r.validation_coverage90)} | {_number(r.left_out_mse)} | "
        f"{_number(r.left_out_coverage90)} | {r.repetitions} |"
    )


def _number(value: float) -> str:
    """A dash where it was not measured."""
    return f"{value:.2f}" if value == value else "–"
