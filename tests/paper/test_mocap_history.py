"""The second protocol of walking on generated walkers: what is trained on, scored and kept."""

import json
import os
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from hybridsde.__main__ import app
from hybridsde.paper import mocap_history
from hybridsde.paper.mocap_data import Walking
from hybridsde.paper.ridge import RidgeComponents

from .test_gait import NAMES, walkers

RIDGE = RidgeComponents(observed=NAMES, given=100, components=4, lags=10, penalty=1.0)
ROW = ("none", "ridge")


@pytest.fixture
def data(monkeypatch):
    monkeypatch.setitem(mocap_history.SYSTEMS, "centred", {ROW: RIDGE})
    parts = (walkers(count, 300, seed)[0] for seed, count in enumerate((5, 2, 3)))
    return Walking(*parts)


def test_only_first_frames_are_trained_on(data):
    found = mocap_history.first_frames(data.train)
    np.testing.assert_array_equal(found.values, data.train.values[:, :200])
    assert (found.lengths == 200).all()


@pytest.mark.slow
def test_a_row_has_all_scores_and_is_kept(data, tmp_path):
    given = {"presets": ("recommended",), "repetitions": 2, "data": data}
    (row,) = mocap_history.reproduce(tmp_path, **given, watch=lambda name: ()).rows
    assert (row.known, row.method, row.repetitions) == (*ROW, 2)
    scores = (row.mse_mean, row.mse_sample_mean, row.validation_mse, row.left_out_mse, row.nll_mean)
    assert np.isfinite(scores).all()
    assert row.mse_sample_mean > row.mse_mean
    text = (tmp_path / "results.md").read_text()
    assert "| best published | published | centred | 3.41 | 0.27 |" in text
    (again,) = mocap_history.reproduce(tmp_path, **given, watch=lambda name: ()).rows
    assert again == row  # its seconds too: it was not computed again


@pytest.mark.slow
def test_the_sequence_that_is_left_out_is_not_trained_on(data):
    """Where one sequence is another motion, its own error is large, and those of others are not."""
    values = data.train.values.copy()
    values[0] = values[0][:, ::-1] + 20.0
    found = mocap_history.left_out(RIDGE, replace(data.train, values=values), seed=0)["mse"][:, -1]
    assert found[0] > 3 * found[1:].max()


@pytest.mark.skipif("HYBRIDSDE_DATA" not in os.environ, reason="HYBRIDSDE_DATA is not set")
@pytest.mark.long
def test_the_command_on_the_real_recordings(tmp_path, monkeypatch):
    quick = ["reproduce", "mocap", "--protocol", "2", "--preset", "recommended", "--quick"]
    wrong = CliRunner().invoke(app, [*quick, "--methods", "all", "--out", str(tmp_path / "none")])
    assert "--protocol 1 only" in wrong.output
    out = tmp_path / "walk"
    found = CliRunner().invoke(app, [*quick, "--out", str(out)])
    assert found.exit_code == 0, found.output
    tables = {"results.json", "results.csv", "results.md"}
    assert {path.name for path in out.iterdir()} == {
        *tables,
        "angles.png",
        "angles.svg",
        "walking.gif",
    }
    rows = {row["method"]: row for row in json.loads((out / "results.json").read_text())["rows"]}
    assert rows["ridge 12×30"]["mse_mean"] == pytest.approx(3.73, abs=0.1)
    assert rows["gait SDE"]["left_out_mse"] < rows["ridge 12×50"]["left_out_mse"]
    assert rows["gait SDE"]["validation_mse"] < 5
    assert 0.8 < rows["gait SDE"]["left_out_coverage90"] < 0.95
