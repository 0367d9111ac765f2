"""Fleets: a table over members, who stands out, and the same bytes from any engine."""

import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from helpers import assert_mean_close
from hybridsde import Run
from hybridsde.data import to_frame
from hybridsde.datasets import machines
from hybridsde.engine import Outcome
from hybridsde.engine.fleet import FleetJob
from hybridsde.engine.fleet_table import (
    Population,
    fleet_frame,
    outliers,
    populations,
    robust_z,
    with_population,
)
from hybridsde.engine.member_folder import member_folder
from hybridsde.engine.run_fleet import Fleet
from hybridsde.project.verification import verify
from hybridsde.report.fleet import write_fleet_page

SETTINGS = """
[data]
files = "m.csv"
id = "machine"
states = ["x"]
inputs = ["u"]
test = 0.25

[physics]
equations = ["dx = -k*(x - u)"]
exact = ["x"]

[physics.parameters]
k = { value = 0.6, learn = true, low = 0.05, high = 5.0 }

[model]
hidden = []

[train]
epochs = 5

[forecast]
draws = 20
"""


def row(name, k, error, crps=0.1):
    scores = {"rmse": 2 * crps, "nll": 0.0, "crps": crps, "coverage90": 0.9}
    parameters = {"k": {"value": k, "error": error}}
    return {
        "member": name,
        "failure": None,
        "rows": 9,
        "terms": None,
        "parameters": parameters,
    } | scores


def test_a_population_is_told_apart_from_the_errors():
    """ξ_i ~ N(2, 0.5²) with errors as large: mean, spread, and shrunk members nearer the truth."""
    random = np.random.default_rng(1)
    truth = 2 + 0.5 * random.normal(size=2000)
    errors = random.uniform(0.3, 0.9, 2000)
    seen = truth + errors * random.normal(size=2000)
    found = Population.of(seen, errors)
    assert abs(found.mean - 2) < 5 * 0.8 / np.sqrt(2000)
    assert abs(found.sd - 0.5) < 0.05
    drawn, spread = found.shrunk(seen, errors)
    assert ((drawn - truth) ** 2).mean() < 0.6 * ((seen - truth) ** 2).mean()
    assert_mean_close(((drawn - truth) / spread) ** 2, 1.0)
    alike = Population.of(np.array([1.0, 1.1, 0.9]), np.array([1.0, 1.0, 1.0]))
    assert alike.sd == 0


def test_who_stands_out():
    rows = [
        row(f"m{n}", 1 + 0.1 * np.sin(n), 0.05, 0.1 * np.exp(0.2 * np.cos(n))) for n in range(30)
    ]
    rows += [row("odd", 3.0, 0.05), row("blurred", 3.0, 3.0), row("bad", 1.0, 0.05, 5.0)]
    rows.append({"member": "none", "failure": "too short"})
    table = fleet_frame([Outcome(rows, 34.0)])
    assert table["seconds"].tolist() == [1.0] * 34
    found = outliers(table)
    assert {(one.member, one.what) for one in found.itertuples()} == {
        ("odd", "k"), ("bad", "crps"), ("bad", "rmse"),
    }  # fmt: skip
    assert list(populations(table)) == ["k"]
    shrunk = with_population(table).set_index("member")
    assert abs(float(shrunk.loc["blurred", "k in fleet"]) - 1) < 0.3
    assert np.isnan(robust_z(np.ones(9))).all()


def test_the_page_names_and_escapes(tmp_path):
    rows = [row(f"m{n}", 1 + 0.01 * n, 0.05) for n in range(9)]
    rows += [row("<b>odd</b>", 9.0, 0.05), {"member": "none", "failure": "too <short>"}]
    table = fleet_frame([Outcome(rows, 1.0)])
    text = write_fleet_page(tmp_path, Fleet(table, outliers(table), 0)).read_text()
    assert "<b>odd</b>" not in text
    assert "&lt;b&gt;odd&lt;/b&gt;" in text
    assert "too &lt;short&gt;" in text
    assert "src=" not in text
    assert text.count("<tr>") == 1 + 1 + 1 + 11  # outliers with their head, members with theirs


def test_folders_have_names_that_folders_can_have(tmp_path):
    assert member_folder(tmp_path, "pump-7").name == "pump-7"
    odd = {
        member_folder(tmp_path, name).name for name in ("../../etc", "a/b", "a:b", "", "x" * 300)
    }
    assert len(odd) == 5
    assert all("/" not in name and not name.startswith(".") and len(name) < 100 for name in odd)


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fleet")
    table = to_frame(machines.load(seed=0, count=6, rows=17), id="machine")
    short = table[table["machine"] == "machine00001"].head(3)
    others = table[table["machine"] != "machine00001"]
    pd.concat([others, short]).to_csv(folder / "m.csv", index=False)
    (folder / "settings.toml").write_text(SETTINGS)
    return folder / "settings.toml"


def test_groups_and_marks_depend_on_the_job_alone(settings, tmp_path):
    job = FleetJob.read(settings, tmp_path, group=4)
    members = job.recordings.members()
    tasks = job.member_tasks(members, {"numerics": {}})
    assert [len(task.payload["members"]) for task in tasks] == [4, 2]
    assert job.about == FleetJob.read(settings, tmp_path / "elsewhere", group=4).about
    assert job.about != FleetJob.read(settings, tmp_path, group=5).about


def fleet(settings, out, *more):
    command = ["fleet", str(settings), "--out", str(out), "--group", "3", "--quiet", *more]
    words = [sys.executable, "-m", "hybridsde", *command]
    return subprocess.run(words, capture_output=True, text=True, check=False, env=os.environ)


@pytest.mark.slow
def test_members_that_fail_do_not_take_others_with_them_and_ray_finds_the_same(settings, tmp_path):
    pytest.importorskip("ray")
    for name, more in {"here": (), "ray": ("--engine", "ray", "--workers", "2")}.items():
        done = fleet(settings, tmp_path / name, *more)
        assert done.returncode == 0, done.stderr
    tables = [pd.read_csv(tmp_path / name / "fleet.csv") for name in ("here", "ray")]
    same = [table.drop(columns="seconds") for table in tables]
    pd.testing.assert_frame_equal(*same, check_exact=True)
    here = tables[0].set_index("member")
    assert "too few" in here["failure"]["machine00001"]
    assert int(here["failure"].notna().sum()) == 1
    folders = [tmp_path / name / here["folder"]["machine00003"] for name in ("here", "ray")]
    for path in folders[0].iterdir():
        assert path.read_bytes() == (folders[1] / path.name).read_bytes(), path.name
    run = Run.load(folders[0])
    assert run.metadata.parameters is not None
    assert run.metadata.parameters["k"]["value"] == here["k"]["machine00003"]
    assert verify(folders[0]).agrees
    content = json.loads((tmp_path / "here" / "job.json").read_text())
    assert content["about"]["kind"] == "fleet"
