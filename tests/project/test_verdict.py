"""Where a simple forecaster wins, a comparison says so."""

import re

import numpy as np
import pandas as pd
import pytest

from hybridsde.project.compare import OWN, headline, score_row, summarise, verdict
from hybridsde.report.comparison import comparison_markdown


def table(hybrid, other, error=0.01) -> pd.DataFrame:
    rows = [
        ("hybrid", "bayes", hybrid + 1.0),
        ("hybrid", "pac-bayes", hybrid),
        ("black box", "bayes", 0.1),
        ("analogues", OWN, other),
        ("climatology", OWN, 99.0),
    ]
    frame = pd.DataFrame(rows, columns=["method", "objective", "crps"])
    return frame.assign(crps_se=error)


@pytest.mark.parametrize(
    ("hybrid", "other", "error", "said"),
    [
        (4.0, 3.0, 0.01, r"analogues forecasts .* better than the hybrid \(CRPS 3 against 4\)"),
        (4.0, 3.9, 0.5, "within the noise of the seeds"),
    ],
)
def test_the_winner_is_named(hybrid, other, error, said):
    found = verdict(table(hybrid, other, error))
    assert found is not None
    assert re.search(said, found)


def test_nothing_is_said_where_the_hybrid_wins():
    assert verdict(table(3.0, 4.0)) is None
    assert verdict(table(3.0, 2.0).iloc[:3]) is None


def scores_of(crps: list[float], names=("mass", "volt")) -> pd.DataFrame:
    """What a run says of its scores."""
    columns = ("rmse", "nll", "crps", "coverage90")
    each = pd.DataFrame(dict.fromkeys(columns, crps), index=list(names), dtype=float)
    return pd.concat([each, each.mean().to_frame("overall").T])


def rows_of(units: float) -> pd.DataFrame:
    """Two systems, one better in mass and one in volt; mass is measured in other units."""
    spread = np.array([2.0 * units, 0.5])
    rows = [
        {**score_row(scores_of([1.0 * units, 0.1]), spread), "method": "hybrid", "objective": "e"},
        {**score_row(scores_of([0.9 * units, 0.3]), spread), "method": "var", "objective": OWN},
    ]
    return pd.DataFrame(rows).assign(seed=0)


def test_the_units_of_one_state_do_not_decide():
    small, large = (summarise(rows_of(units)) for units in (1.0, 1000.0))
    assert headline(small) == "crps_scaled"
    np.testing.assert_allclose(small["crps_scaled"], [(0.5 + 0.2) / 2, (0.45 + 0.6) / 2])
    np.testing.assert_allclose(small["crps_scaled"], large["crps_scaled"])
    assert verdict(small) is None
    assert verdict(large) is None  # though a mean of raw numbers would prefer the other
    raw = large["crps"].to_numpy(float)
    assert raw[1] < raw[0]


def test_every_state_is_told_in_its_own_units():
    text = comparison_markdown(summarise(rows_of(1000.0)))
    assert "| method | objective | RMSE, in spreads | NLL | CRPS, in spreads |" in text
    assert "| method | objective | mass | volt | seeds |" in text
    assert "| hybrid | e | 1e+03 (1000.00) | 0.1 (0.10) | 1 |" in text


def test_a_single_state_needs_no_spreads():
    row = score_row(scores_of([0.4], ("mass",)), np.array([2.0]))
    assert set(row) == {"rmse", "nll", "crps", "coverage90"}
    assert "spreads" not in comparison_markdown(
        summarise(pd.DataFrame([{**row, "method": "var", "objective": OWN, "seed": 0}]))
    )
