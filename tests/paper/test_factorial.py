"""Paired changes of a 2×2 design."""

import numpy as np
import pytest
from scipy import stats

from hybridsde.paper.factorial import effects, effects_table
from hybridsde.paper.table import Row

KNOWN, METHODS = ("none", "walkers"), ("bayes", "pac")


def row(known, method, each, preset="paper"):
    return Row(known, method, preset, "centred", len(each), 0, "", mse_each=tuple(each))


def test_differences_are_taken_within_repetitions():
    rng = np.random.default_rng(0)
    luck = 10 * rng.normal(size=8)
    cells = {
        ("none", "bayes"): luck,
        ("none", "pac"): luck + rng.normal(size=8),
        ("walkers", "bayes"): luck - 3 + 0.1 * rng.normal(size=8),
        ("walkers", "pac"): luck - 3,
    }
    rows = [row(*cell, each) for cell, each in cells.items()]
    found = effects(rows, known=KNOWN, methods=METHODS)
    assert [(e.change, e.given) for e in found] == [
        ("walkers instead of none", "bayes"),
        ("walkers instead of none", "pac"),
        ("pac instead of bayes", "known: none"),
        ("pac instead of bayes", "known: walkers"),
    ]
    change = cells["walkers", "bayes"] - cells["none", "bayes"]
    first = found[0]
    assert first.mean == pytest.approx(change.mean())
    reach = stats.t.ppf(0.975, 7) * change.std(ddof=1) / 8**0.5
    assert (first.low, first.high) == pytest.approx((change.mean() - reach, change.mean() + reach))
    statistic = abs(change.mean()) / (change.std(ddof=1) / 8**0.5)
    assert first.p == pytest.approx(2 * stats.t.sf(statistic, 7), rel=1e-6)
    assert len(effects_table(found)) == 5 + 4


def test_nothing_is_said_where_a_row_is_missing():
    rows = [row("none", method, [1.0, 2.0]) for method in METHODS]
    assert effects(rows, known=KNOWN, methods=METHODS) == []
    assert effects_table([]) == []
