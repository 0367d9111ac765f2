"""A first look: what is found in recordings that were spoiled on purpose."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import hybridsde as hs
from hybridsde.__main__ import app
from hybridsde.project.look import look, outliers, roughness, stretches, stuck
from hybridsde.report.look import write_look


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
    assert "The longest gap, 6.1 units of time (61 usual intervals), comes after 9.9" in said
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


def walk(seed, rows=600, digits=12):
    """An Ornstein–Uhlenbeck process with noise, as a sensor with so many digits shows it."""
    rng = np.random.default_rng(seed)
    states = [0.0]
    for step in rng.normal(size=rows - 1):
        states.append(0.98 * states[-1] + 0.2 * step)
    return np.round(np.array(states) + 0.05 * rng.normal(size=rows), digits)


@pytest.mark.parametrize("digits", [12, 2, 1])
def test_a_sensor_that_hangs_is_found(digits):
    """At a value inside its range, with and without rounding; and nothing where it does not."""
    for seed in range(5):
        values = walk(seed, digits=digits)
        assert stretches(recordings(values), 0) == []
        first = 300 + int(np.argmin(np.abs(values[300:400] - np.median(values))))
        values[first : first + 60] = values[first]
        values[first + 60] += 1  # it has moved on meanwhile
        ((series, begin, end),) = stretches(recordings(values), 0)
        assert (series, end) == (0, first + 60)
        assert first - 3 <= begin <= first


@pytest.mark.parametrize(
    "values",
    [
        np.round(np.exp(-np.arange(300) / 20.0) + np.sin(np.arange(300) / 300), 2),
        np.round(3 + np.exp(-np.arange(300) / 10.0), 3),
        np.round(np.sin(np.arange(300) / 40), 1),
        np.repeat([1.0, 3.0, 2.0, 5.0, 4.0, 6.0], 50),
        np.where(np.arange(200) < 50, 0.0, np.arange(200) - 49.0),
    ],
    ids=["slow and rounded", "comes to rest", "coarse", "steps", "begins late"],
)
def test_a_state_at_rest_is_no_sensor_that_hangs(values):
    assert stretches(recordings(values), 0) == []


def test_findings_name_moments_and_lines_as_the_table_has_them(tmp_path):
    """With time zones and a comment above: the line is that of an editor."""
    values = walk(3)
    values[98] += 9
    values[300:360] = values[300]
    moments = pd.date_range("2026-03-02 00:00+01:00", periods=600, freq="5min")
    rows = [f"{moment.isoformat()};{value}" for moment, value in zip(moments, values, strict=True)]
    (tmp_path / "tank.csv").write_text("\n".join(["# by the logger", "time;level [m]", *rows]))
    found = look(tmp_path / "tank.csv")
    said = " ".join(found.findings)
    assert "first at 2026-03-02 08:10" in said
    assert "empty this cell: line 101." in said
    assert "from 2026-03-03 01:00 to 2026-03-03 05:55 (lines 303 to 362)" in said
    assert "UTC" not in said
    assert found.doubts[0].lines == (101,)
    assert (tmp_path / "tank.csv").read_text().splitlines()[100] == rows[98]
    page = write_look(found, tmp_path / "page.html").read_text()
    assert '"clock":"time, UTC+01:00"' in page
    assert '"times":["2026-03-02 00:00:00","2026-03-02 00:05:00"' in page


def test_look_goes_on_after_words(tmp_path):
    rows = [f"{k},{'Bad Input' if k in (0, 7) else k % 5 + k / 9}" for k in range(40)]
    (tmp_path / "a.csv").write_text("\n".join(["t,x", *rows]))
    found = look(tmp_path / "a.csv")
    assert found.columns.loc["x", "values"] == 38
    assert found.findings[0].startswith('Cells that say "Bad Input" are read as missing')


def test_lines_of_a_long_table_are_those_of_the_quantity(tmp_path):
    rows = [f"{k},{name},{value}" for k, (one, two) in enumerate(zip(walk(1, 60), walk(2, 60),
            strict=True)) for name, value in (("a", one), ("b", two + 9 * (k == 30)))]  # fmt: skip
    (tmp_path / "long.csv").write_text("\n".join(["t,what,value", *rows]))
    (doubt,) = look(tmp_path / "long.csv").doubts
    assert (doubt.state, doubt.lines) == ("b", (2 + 61,))
