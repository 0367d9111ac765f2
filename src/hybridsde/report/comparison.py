"""The comparison of variants as a figure and as a table."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from hybridsde.report.figures import COLOURS, INK


def comparison_figure(scores: pd.DataFrame) -> Figure:
    """CRPS and coverage of every fit, and their means, one row per variant."""
    labels = [f"{m}, {o}" for m, o in zip(scores["method"], scores["objective"], strict=True)]
    names = list(dict.fromkeys(labels))
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(8.4, 0.55 * len(names) + 1.3), sharey=True, layout="constrained"
    )
    for row, name in enumerate(names):
        mine = np.array([label == name for label in labels])
        for axes, column in ((left, "crps"), (right, "coverage90")):
            values = np.asarray(scores[column], float)[mine]
            axes.plot(values, np.full(len(values), row), "o", ms=4, alpha=0.5, color=COLOURS[0])
            axes.plot(values.mean(), row, "d", ms=8, color=COLOURS[1])
    left.set_yticks(range(len(names)), names)
    left.invert_yaxis()
    left.set_xlabel("CRPS on held-out trajectories, lower is better")
    right.set_xlabel("share inside the 90 % interval")
    right.axvline(0.9, color=INK, lw=0.8, ls=":")
    right.set_xlim(0, 1.02)
    if np.max(scores["crps"]) > 20 * np.min(scores["crps"]):
        left.set_xscale("log")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="x", alpha=0.25)
    figure.suptitle("Dots: one fit each; diamonds: their mean")
    return figure


def comparison_markdown(table: pd.DataFrame) -> str:
    """Means ± standard errors over seeds."""
    lines = [
        "| method | objective | RMSE | NLL | CRPS | 90 % coverage | seeds |",
        "|---" * 7 + "|",
    ]
    for row in table.to_dict("records"):
        cells = [
            f"{row[name]:.3g} ± {row[f'{name}_se']:.1g}"
            for name in ("rmse", "nll", "crps", "coverage90")
        ]
        method, objective, seeds = row["method"], row["objective"], row["seeds"]
        lines.append(f"| {method} | {objective} | {' | '.join(cells)} | {seeds} |")
    return "\n".join(lines) + "\n"
