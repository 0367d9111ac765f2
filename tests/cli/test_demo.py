"""The demo: what it writes, and what it claims."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from hybridsde.__main__ import app
from hybridsde.datasets import pendulum


def test_a_pendulum_loses_energy_as_its_friction_says():
    """d/dt (½v² − w cos q) = −c v², but for a little noise."""
    _, exact = pendulum.recordings(20, 80, 1.5, seed=0)
    q, v = exact.values[..., 0], exact.values[..., 1]
    energy = 0.5 * v**2 - pendulum.TRUE["w"] * np.cos(q)
    power = -pendulum.TRUE["c"] * 0.5 * (v[:, 1:] ** 2 + v[:, :-1] ** 2)
    lost = (power * np.diff(exact.times, axis=1)).sum(1)
    assert (energy[:, -1] - energy[:, 0]).mean() == pytest.approx(lost.mean(), rel=0.05)


@pytest.mark.slow
def test_the_demo_shows_what_the_known_half_is_worth(tmp_path):
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path), "--epochs", "20"])
    assert result.exit_code == 0, result.output
    assert "was read off, out of a library of terms: friction" in " ".join(result.output.split())
    assert "Certified: of a further swing" in result.output
    scores = pd.read_csv(tmp_path / "scores.csv").set_index("forecaster")
    simple = ["persistence", "climatology", "gravity alone", "black box"]
    by_hand = "friction by hand"
    assert list(scores.index) == [*simple[:3], by_hand, "black box", "hybrid", "true equations"]
    crps = dict(zip(scores.index, scores["crps"].to_numpy(float), strict=True))
    assert crps["hybrid"] < 1.2 * crps["true equations"]
    assert min(crps[name] for name in simple) > 2 * crps["hybrid"]
    cover = dict(zip(scores.index, scores["coverage90"].to_numpy(float), strict=True))
    assert 0.85 < cover["hybrid"] < 0.95
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "hybrid" / "report.html").exists()
