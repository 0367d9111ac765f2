"""Pages of sweeps and comparisons: they say first who was best, and need no network."""

import pandas as pd
import pytest

from hybridsde.engine.run_sweep import BEST, Sweep, Trial
from hybridsde.engine.space import Choice, Range
from hybridsde.engine.task import Outcome
from hybridsde.forecast import SCORES
from hybridsde.project.compare import OWN
from hybridsde.project.comparison_folder import SCORES_FILE
from hybridsde.project.settings_file import check_settings
from hybridsde.report.comparison import write_comparison_page
from hybridsde.report.sweep_page import write_sweep_page

RATE, KIND = "train.learning_rate", "model.learned"


def trial(number, changes, score, whole=True):
    units = {name: score + step for name, step in {"a": -0.01, "b": 0.0, "c": 0.01}.items()}
    return Trial(number, changes, [Outcome([{"units": units, "whole": whole}])])


@pytest.fixture
def sweep(tmp_path):
    trials = (
        trial(0, {}, 0.5),
        trial(1, {RATE: 0.01, KIND: "library"}, 0.3),
        trial(2, {RATE: 0.002, KIND: "network"}, 0.7, whole=False),
    )
    rows = [{"trial": one.number, "score": one.score, **one.changes} for one in trials]
    table = pd.DataFrame(rows).assign(seconds=1.0, failure=None, gain_se=0.0, rmse=1.0)
    settings = check_settings({"data": {"files": "a.csv", "states": ["x"]}}, "a.toml")
    (tmp_path / BEST).write_text("# <the best>\n")
    return Sweep(trials, table.sort_values("score"), {RATE: 0.6, KIND: 0.1}, settings, 0)


def test_a_sweep_says_what_was_best_and_what_matters(sweep, tmp_path):
    axes = [Range(RATE, 1e-3, 1e-1, log=True), Choice(KIND, ("library", "network"))]
    text = write_sweep_page(tmp_path, sweep, axes).read_text()
    assert "The best of 2 trials is 1 (score 0.3, a gain of 0.2 ± " in text
    assert text.count("<svg") == 3
    assert '<tr class="own"><td>1</td>' in text
    assert "# &lt;the best&gt;" in text
    assert "default-src 'none'" in text


def test_a_comparison_names_the_winner(tmp_path):
    methods = [("hybrid", "bayes", 0.2), ("black box", "bayes", 0.4), ("persistence", OWN, 0.1)]
    rows = [
        {**dict.fromkeys(SCORES, 1.0), "method": m, "objective": o, "seed": seed,
         "crps": crps + 0.01 * seed}
        for m, o, crps in methods for seed in (0, 1)
    ]  # fmt: skip
    pd.DataFrame(rows).to_csv(tmp_path / SCORES_FILE, index=False)
    text = write_comparison_page(tmp_path).read_text()
    assert "persistence forecasts best, with a CRPS of 0.105" in text
    assert "hybrid (bayes) comes next with 0.205." in text
    assert "persistence forecasts these recordings better than the hybrid" in text
    assert text.count('<tr class="own">') == 1
