"""Where a simple forecaster wins, a comparison says so."""

import re

import pandas as pd
import pytest

from hybridsde.project.compare import OWN, verdict


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
