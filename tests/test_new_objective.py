"""The objective of CONTRIBUTING.md through fit, forecast, scores and a folder."""

import re
from pathlib import Path

import numpy as np
import pytest

import hybridsde as hs
from helpers import tiny_model, wiggles

PAGE = Path(__file__).parents[1] / "CONTRIBUTING.md"
BLOCK = next(
    block
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    if "class MyObjective" in block
)


@pytest.fixture(scope="module")
def run():
    namespace: dict = {"__name__": "__docs__"}
    exec(compile(BLOCK, str(PAGE), "exec"), namespace)
    brief = hs.Training(epochs=2, batch_size=6)
    return hs.fit(tiny_model(), wiggles(), objective=namespace["MyObjective"](), training=brief)


def test_it_is_fitted_with_its_own_scheme(run):
    assert run.metadata.objective == "MyObjective"
    assert isinstance(run.forecaster.solver, hs.EulerMaruyama)
    assert np.isfinite(run.history["loss"]).all()


def test_it_forecasts_scores_and_is_saved(run, tmp_path):
    ahead = run.forecast(wiggles().start(), elapsed=[0.1], draws=8)
    table = run.score(wiggles(seed=9), draws=20)
    assert np.isfinite(table.to_numpy()).all()
    run.save(tmp_path / "run")
    again = hs.Run.load(tmp_path / "run", trust=True)
    again = again.forecast(wiggles().start(), elapsed=[0.1], draws=8)
    np.testing.assert_array_equal(again.states, ahead.states)
