"""Sweeps: what is tried, how it is searched, what matters, and what is stopped early."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from hybridsde import InputError
from hybridsde.__main__ import app
from hybridsde.engine import LocalExecutor, Outcome
from hybridsde.engine.importance import importance
from hybridsde.engine.ledger import held
from hybridsde.engine.run_sweep import FACTOR, Trial, run_sweep
from hybridsde.engine.search import ROUND, search_of
from hybridsde.engine.space import Choice, Range, axes_of
from hybridsde.engine.sweep import SweepJob
from hybridsde.project.settings_file import read_settings

SPACE = {
    "train.learning_rate": {"low": 1e-3, "high": 0.1, "log": True},
    "model": {"hidden": [[4], [8, 8]]},
    "train.batch_size": {"low": 1, "high": 8},
}


def test_a_space_names_settings_with_or_without_quotes():
    axes = axes_of(SPACE, "mine.toml")
    assert [axis.name for axis in axes] == [
        "model.hidden",
        "train.batch_size",
        "train.learning_rate",
    ]
    hidden, size, rate = axes
    assert {str(hidden.at(share)) for share in (0.0, 0.49, 0.5, 0.99)} == {"[4]", "[8, 8]"}
    assert {size.at(share) for share in np.linspace(0, 0.999, 200)} == set(range(1, 9))
    assert rate.grid() == [0.001, 0.01, 0.1]
    assert rate.at(0.0) == 0.001


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({}, "has no table"),
        ({"train.seed": [1, 2]}, "scored alike"),
        ({"data.test": [0.1, 0.2]}, "scored alike"),
        ({"forecast.horizon": [1, 2]}, "scored alike"),
        ({"train.epochs": 3}, "must be a list"),
        ({"train.epochs": {"low": 3}}, "two numbers"),
        ({"train.epochs": {"low": 3, "high": 1}}, "below high"),
        ({"train.clip": {"low": 0.0, "high": 1.0, "log": True}}, "above zero"),
        ({"train.clip": {"low": 0.1, "high": 1.0, "step": 2}}, "no key 'step'"),
    ],
)
def test_a_space_that_cannot_be_tried_is_named(table, message):
    with pytest.raises(InputError, match=message):
        axes_of(table, "mine.toml")


def test_searches_propose_the_same_again():
    axes = axes_of(SPACE, "mine.toml")
    grid = search_of("grid", axes, None, 0).ask()
    assert len(grid) == 2 * 3 * 3
    with pytest.raises(InputError, match="18 points"):
        search_of("grid", axes, 10, 0)
    shorter, longer = (search_of("random", axes, count, 7).ask() for count in (5, 9))
    assert longer[:5] == shorter
    assert search_of("random", axes, 5, 8).ask() != shorter
    with pytest.raises(InputError, match="no search 'luck'"):
        search_of("luck", axes, 5, 0)


def test_optuna_is_asked_in_rounds_of_one_size():
    pytest.importorskip("optuna")
    axes = (
        Range("train.learning_rate", 1e-3, 0.1, log=True),
        Choice("model.far", ("fade", "free")),
    )

    def proposed():
        search, rounds = search_of("optuna", axes, 20, 3), []
        while asked := search.ask():
            rounds.append(asked)
            loss = [abs(math.log(one["train.learning_rate"] / 0.01)) for one in asked]
            search.tell([(score, score < 1) for score in loss])
        return rounds

    first = proposed()
    assert [len(one) for one in first] == [ROUND, ROUND, 20 - 2 * ROUND]
    assert proposed() == first


def test_importance_is_high_for_what_decides_and_low_for_what_does_not():
    random = np.random.default_rng(0)
    rate, size = random.random(60), [str(n) for n in random.integers(0, 3, 60)]
    scores = (rate - 0.5) ** 2
    assert importance(Range("a", 0.0, 1.0), rate.tolist(), scores) > 0.5
    assert importance(Choice("b", ("0", "1", "2")), size, scores) < 0.15
    assert np.isnan(importance(Choice("b", ("0",)), ["0"] * 60, scores))
    scores[:3] = np.inf  # a trial that failed is the worst, no more
    assert importance(Range("a", 0.0, 1.0), rate.tolist(), scores) > 0.4


def test_a_trial_with_a_failed_seed_is_not_the_best():
    good, bad = Trial(1, {}), Trial(2, {})
    rows = [{"units": {"a": 1.0}, "whole": True}, {"units": {"a": 2.0}, "whole": True}]
    good.outcomes.append(Outcome(rows))
    bad.outcomes.append(Outcome([{"units": {"a": 0.5}, "whole": True}, {"failure": "no"}]))
    assert good.score == 1.5
    assert bad.score == np.inf
    assert not bad.whole


SETTINGS = """
[data]
files = "d.csv"
id = "id"
states = ["x"]
test = 0.25
validation = 0.25

[model]
learned = "network"
hidden = [2]
members = 1
diffusion = 0.1
noise = 0.1

[train]
epochs = 9
samples = 1

[forecast]
draws = 8

[sweep]
"train.learning_rate" = { low = 1e-4, high = 0.1, log = true }
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep")
    random, rows = np.random.default_rng(0), []
    for name in range(8):
        x = 1 + random.random()
        for step in range(8):
            rows.append({"id": f"r{name}", "t": step / 4, "x": x})
            x += -0.2 * x + 0.05 * random.normal()
    pd.DataFrame(rows).to_csv(folder / "d.csv", index=False)
    (folder / "settings.toml").write_text(SETTINGS)
    return folder


def test_names_and_values_are_checked_before_anything_is_tried(project, tmp_path):
    (project / "wrong.toml").write_text(SETTINGS + '"train.rate" = [1, 2]\n')
    with pytest.raises(InputError, match="no key 'rate'"):
        SweepJob.read(project / "wrong.toml")
    (project / "worse.toml").write_text(SETTINGS + '"train.epochs" = [0, 2]\n')
    with pytest.raises(InputError, match="greater than or equal to 1"):
        SweepJob.read(project / "worse.toml")
    result = CliRunner().invoke(
        app, ["sweep", str(project / "wrong.toml"), "--out", str(tmp_path / "s")]
    )
    assert result.exit_code == 2
    assert not (tmp_path / "s").exists()


@pytest.mark.slow
def test_a_sweep_from_its_space_to_settings_that_fit_takes(project, tmp_path):
    out = tmp_path / "sweep"
    command = ["sweep", str(project / "settings.toml"), "--out", str(out), "--trials", "6"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    table = pd.read_csv(out / "sweep.csv")
    assert len(table) == 7  # and the settings as they are
    assert np.sum(table["whole"].to_numpy(bool)) >= 2
    assert set(table["epochs"]) <= {1, 3, 9}  # rungs of a ninth, a third and all epochs
    scores = table["score"].to_numpy(float)
    best = float(scores[table["whole"].to_numpy(bool)].min())
    assert scores[0] == best
    first = scores[table["trial"].to_numpy() == 0].item()
    others = table["whole"].to_numpy(bool) & (table["trial"].to_numpy() > 0)
    assert np.allclose(table["gain"].to_numpy(float)[others], first - scores[others])
    assert np.all(table["gain_se"].to_numpy(float)[others] > 0)
    settings = read_settings(out / "best.toml")
    assert settings.paths(out)[0].resolve() == (project / "d.csv").resolve()
    assert "not trained on" in (out / "sweep.md").read_text()
    assert (out / "importance.png").stat().st_size > 1000
    assert "What matters" in (out / "sweep.html").read_text()
    before = {path: path.stat().st_mtime_ns for path in (out / "tasks").rglob("*.json")}
    assert CliRunner().invoke(app, command).exit_code == 0
    assert before == {path: path.stat().st_mtime_ns for path in (out / "tasks").rglob("*.json")}
    other = CliRunner().invoke(app, [*command[:-1], "7"])
    assert other.exit_code == 2
    assert "other settings" in other.output
    content = json.loads((out / "job.json").read_text())
    assert content["devices"] == 2


@pytest.mark.slow
def test_a_third_goes_on_at_every_rung(project, tmp_path):
    job = SweepJob.read(project / "settings.toml", trials=8, rungs=2)
    seen = []
    with held(tmp_path / "s", job, 1) as ledger:
        found = run_sweep(job, LocalExecutor(), ledger, seen.append)
    went_on = [one for one in found.trials if len(one.outcomes) == 2]
    assert len(went_on) == 1 + -(-8 // FACTOR)  # with the settings as they are
    others = [one for one in found.trials[1:] if one not in went_on]
    assert max(one.score_at(0) for one in went_on[1:]) <= min(one.score_at(0) for one in others)
    assert found.lowest in went_on
