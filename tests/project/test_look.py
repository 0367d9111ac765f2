"""A first look: what is found in recordings that were spoiled on purpose."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import hybridsde as hs
from hybridsde.__main__ import app
from hybridsde.project.look import look, outliers, roughness, stuck


def recordings(values, times=None):
    values = np.atleast_2d(values)
    grid = np.arange(values.shape[1]) / 10 if times is None else times
    return hs.Trajectories.from_arrays([grid] * len(values), list(values[..., None]), states=("x",))


def test_roughness_is_the_noise_on_a_straight_line():
    """Of n second differences the median has a relative standard error of about 1.2/√n · √3."""
    rng = np.random.default_rng(0)
    times = np.cumsum(rng.uniform(0.5, 1.5, 4000))
    found = roughness(recordings(3 * times + 0.2 * rng.normal(size=4000), times), 0)
    assert found == pytest.approx(0.2, rel=4 * 1.2 * 3**0.5 / 4000**0.5)


def test_outliers_are_found_where_they_are():
    values = np.sin(np.arange(200) / 10) + 0.01 * np.random.default_rng(1).normal(size=200)
    values[[50, 120]] += [2.0, -1.0]
    assert outliers(recordings(values), 0) == [(0, 50), (0, 120)]
    assert outliers(recordings(np.sign(np.sin(np.arange(1, 201) / 10))), 0) == []


def test_values_at_an_end_for_long_are_stuck():
    values = np.clip(np.sin(np.arange(200) / 10), -2, 0.8)
    low, high = stuck(recordings(values), 0)
    assert low == 0
    assert high == (values[:190] == 0.8).sum() > 10  # the last two are no stretch
    assert stuck(recordings(np.ones(50)), 0) == (0, 0)


def test_a_table_that_was_spoiled_is_described(tmp_path):
    time = np.delete(np.arange(200) / 10, slice(100, 160))
    rng = np.random.default_rng(2)
    level = np.clip(3 + 2 * np.sin(time) + 0.02 * rng.normal(size=len(time)), None, 4.5)
    count = np.exp(2 * np.cos(time / 2))
    count[20] = np.nan
    count[:20:2] = np.nan
    table = pd.DataFrame({"time": time, "level": level, "count": count})
    table.to_csv(tmp_path / "mine.csv", index=False)
    said = " ".join(look(tmp_path / "mine.csv").findings)
    assert "The longest gap, 6.1 units of time (61 usual intervals), is in" in said
    assert "There is one recording" in said
    assert "level stands at an end of its range" in said
    assert "saturates = { level = [-inf, 4.5] }" in said
    assert "count is missing in" in said
    assert 'positive = ["count"]' in said

    result = CliRunner().invoke(app, ["look", str(tmp_path / "mine.csv")])
    assert result.exit_code == 0, result.output
    page = (tmp_path / "mine-look.html").read_text()
    assert "default-src 'none'" in page
    assert "states = [&#34;level&#34;, &#34;count&#34;]" in page
    assert len(page) < 3_000_000


def test_settings_are_looked_at_too_and_nonsense_is_refused(tmp_path):
    runner = CliRunner()
    assert runner.invoke(app, ["init", "--example", "--out", str(tmp_path / "e")]).exit_code == 0
    settings = tmp_path / "e" / "settings.toml"
    found = runner.invoke(app, ["look", str(settings), "--out", str(tmp_path / "page.html")])
    assert found.exit_code == 0, found.output
    assert (tmp_path / "page.html").exists()
    (tmp_path / "bad.csv").write_text("a,b\nx,y\n")
    refused = runner.invoke(app, ["look", str(tmp_path / "bad.csv")])
    assert refused.exit_code == 2
    assert refused.output.startswith("error:")
    assert runner.invoke(app, ["look", str(tmp_path / "none.csv")]).exit_code == 2
