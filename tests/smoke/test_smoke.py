"""The main job in a few seconds, with nothing but the package and its dependencies.

Run with the lowest declared versions by `make test-lowest`, and with the newest by `make test`.
"""

import numpy as np
import pytest
from typer.testing import CliRunner

import hybridsde as hs
from hybridsde.__main__ import app
from hybridsde.datasets.predator_prey import recordings

FEW = hs.Training(epochs=2)
pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def data():
    columns = hs.Columns(states=("x", "y"), time="t", id="run")
    frame = recordings(10, regular=True).groupby("run").head(8)
    return hs.from_frame(frame, columns)


def test_fit_forecast_score_certify_save_and_load(data, tmp_path):
    train, test = data.split(0.6, seed=0)
    model = hs.HybridSDE(
        states=("x", "y"),
        physics=hs.equations("dx = growth*x - x*y", growth=hs.Bounded.of(2.0, 1.0, 3.0)),
        hidden=(4,),
    )
    run = hs.fit(model, train, training=FEW)
    scores = run.score(test, draws=20)
    assert np.isfinite(scores.to_numpy()).all()
    assert 0 < run.certify(test, loss="interval").bound <= 1
    run.save(tmp_path / "run")
    back = hs.Run.load(tmp_path / "run")
    ours, theirs = (r.forecast(test.start(), elapsed=[0.1], draws=8) for r in (run, back))
    np.testing.assert_array_equal(ours.states, theirs.states)
    ours.plot(test)


@pytest.mark.parametrize("name", ["LinearGaussian", "NpODE", "Climatology"])
def test_systems_to_compare_with(name, data):
    kind = getattr(hs.baselines, name)
    small = {"LinearGaussian": {"iterations": 2}, "NpODE": {"inducing": 5}}.get(name, {})
    run = hs.fit(kind(observed=("x", "y"), **small), data, training=FEW)
    assert np.isfinite(run.score(data, draws=20).to_numpy()).all()


def test_the_command_line_answers(tmp_path):
    def call(*words):
        result = CliRunner().invoke(app, [str(word) for word in words])
        assert result.exit_code == 0, result.output
        return result.output

    call("init", "--example", "--trajectories", 8, "--out", tmp_path / "example")
    assert "All is well" in call("check", tmp_path / "example" / "settings.toml")
    assert "reproduce" in call("--help")
