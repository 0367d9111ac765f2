"""A 2×2 design: what prior knowledge and the PAC term change, repetition by repetition."""

from typing import NamedTuple

import numpy as np
from scipy.stats import ttest_rel

from hybridsde.paper.table import Row


class Effect(NamedTuple):
    """A change of the test MSE between two rows with the same seeds; below zero is better."""

    preset: str
    protocol: str
    change: str
    given: str
    mean: float
    low: float
    high: float
    """Ends of the 95 % interval of the mean change."""
    p: float
    """Two-sided, of a paired t-test: how often chance alone would change as much."""


def effects(rows: list[Row], *, known: tuple[str, str], methods: tuple[str, str]) -> list[Effect]:
    """Both changes under both conditions, wherever all four rows are there.

    Repetitions with the same number share their seed, so differences are taken within them.
    """
    found = []
    for preset, protocol in dict.fromkeys((row.preset, row.protocol) for row in rows):
        each = {
            (row.known, row.method): np.asarray(row.mse_each)
            for row in rows
            if (row.preset, row.protocol) == (preset, protocol)
        }
        cells = [(k, m) for k in known for m in methods]
        counts = {len(each.get(cell, ())) for cell in cells}
        if len(counts) != 1 or min(counts) < 2:
            continue
        for method in methods:
            change = f"{known[1]} instead of {known[0]}"
            pair = each[known[0], method], each[known[1], method]
            found.append(_effect(preset, protocol, change, method, *pair))
        for one in known:
            change = f"{methods[1]} instead of {methods[0]}"
            pair = each[one, methods[0]], each[one, methods[1]]
            found.append(_effect(preset, protocol, change, f"known: {one}", *pair))
    return found


def _effect(
    preset: str, protocol: str, change: str, given: str, before: np.ndarray, after: np.ndarray
) -> Effect:
    test = ttest_rel(after, before)
    interval = test.confidence_interval(0.95)
    mean = float(np.mean(after - before))
    ends = float(interval.low), float(interval.high)
    return Effect(preset, protocol, change, given, mean, *ends, float(test.pvalue))


def effects_table(found: list[Effect]) -> list[str]:
    """The effects as lines of Markdown."""
    if not found:
        return []
    lines = [
        "",
        "What changes, repetition by repetition (MSE, below zero is better):",
        "",
        "| preset | data | change | given | mean | 95 % interval | p |",
        "|---" * 7 + "|",
    ]
    for e in found:
        lines.append(
            f"| {e.preset} | {e.protocol} | {e.change} | {e.given} | {e.mean:+.2f} | "
            f"{e.low:+.2f} to {e.high:+.2f} | {e.p:.2g} |"
        )
    return lines
