"""The forecaster of CONTRIBUTING.md through everything that a system can be asked."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import hybridsde as hs
from helpers import wiggles
from hybridsde import registry
from hybridsde.__main__ import app
from hybridsde.project.example import write_example

PAGE = Path(__file__).parents[1] / "CONTRIBUTING.md"
BLOCK = next(
    block
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    if "hs.register(" in block
)


@pytest.fixture
def spec(monkeypatch):
    """The class of the page, known to the registry for one test."""
    for known in ("_CLASSES", "SYSTEMS"):
        monkeypatch.setattr(registry, known, dict(getattr(registry, known)))
    for name in ("hybridsde.project.compare", "hybridsde.project.comparison_folder"):
        monkeypatch.setattr(f"{name}.SYSTEMS", registry.SYSTEMS)
    namespace: dict = {"__name__": "__docs__"}
    exec(compile(BLOCK, str(PAGE), "exec"), namespace)
    return namespace["FirstOrder"]


def test_it_is_short():
    assert len(BLOCK.splitlines()) < 60


@pytest.mark.slow
def test_from_fit_to_certificate_and_back_from_disk(spec, tmp_path):
    data, fresh = wiggles(series=12), wiggles(series=40, seed=9)
    run = hs.fit(spec(observed=("x", "y")), data, validation=wiggles(series=4, seed=3))
    assert run.metadata.calibration is not None
    table = run.score(fresh, draws=100)
    still = hs.fit(hs.baselines.Persistence(observed=("x", "y")), data).score(fresh)
    assert table.loc["overall", "crps"] < 0.5 * still.loc["overall", "crps"]
    ahead = run.forecast(fresh.start(), fresh.times[:, 1:4], draws=8)
    assert ahead.observations.sizes == {"draw": 8, "trajectory": 40, "time": 3, "obs": 2}
    found = run.certify(fresh, loss="interval")
    assert found.kind == "hold-out, betting"
    assert not found.vacuous
    assert "its own steps" in found.assumptions[2]
    assert run.conformal(fresh).radius > 0
    with pytest.raises(hs.InputError, match="was seen before"):
        run.certify(data)
    with pytest.raises(ValueError, match="moves in steps"):
        run.forecast(fresh.start(), [0.05], draws=8)
    run.save(tmp_path / "run")
    back = hs.Run.load(tmp_path / "run")
    assert back.metadata == run.metadata
    pd.testing.assert_frame_equal(back.score(fresh, draws=100), table)
    again = back.forecast(fresh.start(), fresh.times[:, 1:4], draws=8)
    np.testing.assert_array_equal(again.observations, ahead.observations)


@pytest.mark.slow
def test_it_joins_a_comparison(spec, tmp_path, monkeypatch):
    from hybridsde.project import compare

    settings = write_example(tmp_path, 6, regular=True)
    few = pd.read_csv(tmp_path / "recordings.csv").groupby("run").head(10)
    few.to_csv(tmp_path / "recordings.csv", index=False)
    monkeypatch.setattr(compare, "variants", lambda project: [])
    command = ["compare", str(settings), "--out", str(tmp_path / "c"), "--seeds", "1", "--methods"]
    result = CliRunner().invoke(app, [*command, "var-1, climatology"])
    assert result.exit_code == 0, result.output
    scores = pd.read_csv(tmp_path / "c" / "scores.csv").set_index("method")
    assert scores.loc["var-1", "crps"] < scores.loc["climatology", "crps"]
