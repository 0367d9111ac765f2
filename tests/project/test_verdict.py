"""Where a simple forecaster wins, a comparison says so."""

import re

import numpy as np
import pandas as pd
import pytest

from hybridsde.project.compare import FLOOR, OWN, headline, score_row, summarise, verdict
from hybridsde.project.comparison_folder import read_scores
from hybridsde.project.project import plain_scores, scaled_by_lead
from hybridsde.report.comparison import comparison_markdown
from hybridsde.report.overview import lead_table, score_table

BOTH = np.ones(2, bool)


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
        {**score_row(scores_of([1.0 * units, 0.1]), spread, BOTH), "method": "hybrid"},
        {**score_row(scores_of([0.9 * units, 0.3]), spread, BOTH), "method": "var"},
    ]
    return pd.DataFrame(rows).assign(seed=0, objective=["e", OWN])


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
    row = score_row(scores_of([0.4], ("mass",)), np.array([2.0]), BOTH[:1])
    assert set(row) == {"rmse", "nll", "crps", "coverage90"}
    assert "spreads" not in comparison_markdown(
        summarise(pd.DataFrame([{**row, "method": "var", "objective": OWN, "seed": 0}]))
    )


def test_a_state_without_test_values_leaves_the_others():
    spread = np.array([2.0, 0.5])
    row = score_row(scores_of([np.nan, 0.1]), spread, np.array([False, True]))
    assert row["crps_scaled"] == pytest.approx(0.2)
    frame = pd.DataFrame([{**row, "method": "var", "objective": OWN}]).assign(seed=0)
    nothing = frame.assign(method="hybrid", objective="e", crps_scaled=np.nan)
    assert verdict(summarise(pd.concat([frame, nothing]))) is None


def test_a_state_without_forecasts_wins_nothing():
    """It was measured, so that no number is no forecast of it."""
    row = score_row(scores_of([np.nan, 0.1]), np.array([2.0, 0.5]), BOTH)
    assert np.isnan(row["crps_scaled"])


def test_no_name_of_a_state_hides_another():
    row = score_row(scores_of([1.0, 2.0], ("x", "x_se")), np.ones(2), BOTH)
    rows = [{**row, "method": "var", "objective": OWN, "seed": seed} for seed in (0, 1)]
    text = comparison_markdown(summarise(pd.DataFrame(rows)))
    assert "| method | objective | x | x_se | seeds |" in text
    assert "| var | own loss | 1 ± 0 (1.00) | 2 ± 0 (2.00) | 2 |" in text


def test_a_comparison_with_a_floor_can_be_read_again(tmp_path):
    names = ("mse", "rmse", "nll", "nll_gaussian", "crps", "coverage90", "width90", "seed")
    rows = [{**dict.fromkeys(names, 1.0), "method": FLOOR, "objective": OWN}]
    pd.DataFrame(rows).to_csv(tmp_path / "scores.csv", index=False)
    assert len(read_scores(tmp_path / "scores.csv")) == 1


def test_leads_are_judged_in_spreads_too():
    rows = [(lead, name, crps) for lead in (0, 1) for name, crps in
            (("a", 4.0), ("b", 0.1), ("overall", 2.05))]  # fmt: skip
    table = pd.DataFrame(rows, columns=["lead", "obs", "crps"])
    table = table.assign(rmse=2 * table["crps"], origins=7, coverage90=0.9)
    found = scaled_by_lead(table, np.array([4.0, 0.2]), BOTH)
    overall = found["obs"] == "overall"
    np.testing.assert_allclose(found.loc[overall, "crps_scaled"], 0.75)
    assert found.loc[~overall, "crps_scaled"].isna().all()
    alone = scaled_by_lead(table[table["obs"] != "b"], np.array([4.0]), BOTH[:1])
    assert alone.columns.tolist() == table.columns.tolist()
    shown = cells(lead_table(found))
    assert shown["crps"] == ["0.75", "0.75"]
    assert shown["rmse"] == ["1.5", "1.5"]
    assert shown["crps of a"] == ["4", "4"]


def cells(table) -> dict[str, list[str]]:
    """What a table of a terminal shows, by column."""
    return {str(column.header): list(column.cells) for column in table.columns}


def test_scores_of_several_states_together_are_in_spreads():
    """Not the mean of kilograms and volts."""
    scores = plain_scores(scores_of([4.0, 0.1]), np.array([4.0, 0.2]), BOTH)
    assert (scores.shown("crps"), scores.overall["crps"]) == (0.75, 2.05)
    shown = cells(score_table(scores, ""))
    assert shown["state"][-1] == "all, in spreads of the data"
    assert shown["crps"] == ["4", "0.1", "0.75"]
    alone = plain_scores(scores_of([4.0], ("mass",)), np.array([4.0]), BOTH[:1])
    assert (alone.in_spreads, alone.shown("crps")) == (False, 4.0)
    assert cells(score_table(alone, ""))["state"] == ["mass", "all"]
