"""From a table to equations: fit, discover, and the settings for the next fit."""

import numpy as np
import pytest
from typer.testing import CliRunner

import hybridsde as hs
from hybridsde.__main__ import app
from hybridsde.datasets.predator_prey import recordings
from hybridsde.project.discovery import settings_with
from hybridsde.project.project import Project

pytestmark = pytest.mark.slow


def call(*command):
    return CliRunner().invoke(app, [str(word) for word in command])


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("example")
    assert call("init", "--example", "--out", folder, "--trajectories", 8).exit_code == 0
    result = call("fit", folder / "settings.toml", "--out", folder / "run", "--quiet")
    assert result.exit_code == 0, result.output
    assert "Learned part, chosen by the fit: library" in result.output
    assert "dx = growth*x - eaten*x*y" in result.output
    return folder


def test_check_says_what_the_learned_part_will_be(project):
    result = call("check", project / "settings.toml")
    assert "a library of 10 terms; where that leaves a doubt, 4 networks" in result.output.replace(
        "\n", " "
    )


def test_discovered_equations_become_the_physics_of_the_next_fit(project):
    target = project / "next.toml"
    found = call("discover", project / "run", "--out", target)
    assert found.exit_code == 0, found.output
    assert "x*y" in found.output
    assert "explain 100% of the learned drift" in found.output
    again = call("discover", project / "run", "--out", target)
    assert again.exit_code != 0
    assert call("check", target).exit_code == 0
    known = Project.open(target).model.physics
    assert known.known(("x", "y"), ()) == ("x", "y")


def test_further_recordings_update_a_run(project):
    more = project / "more.csv"
    recordings(4, seed=1).to_csv(more, index=False)
    result = call("update", project / "run", "--data", more, "--out", project / "up")
    assert result.exit_code == 0, result.output
    assert "Updated with 4 further recordings." in result.output.replace("\n", " ")
    assert call("verify", project / "up").exit_code == 0
    assert call("discover", project / "up").exit_code == 0
    again = call("update", project / "up", "--data", more, "--out", project / "up2")
    assert again.exit_code == 2
    assert "count twice" in again.output
    assert not (project / "up2").exists()


def test_recordings_of_the_test_are_not_learned_from(project):
    tested = Project.open(project / "settings.toml").split.test
    assert tested is not None
    table, file = recordings(8), project / "tested.csv"
    table[table["run"].astype(str).isin(tested.ids)].to_csv(file, index=False)
    found = call("update", project / "run", "--data", file, "--out", project / "no")
    assert found.exit_code == 2
    assert "keeps for its test" in found.output.replace("\n", " ")


def test_the_report_shows_terms_and_why_they_were_chosen(project):
    assert call("report", project / "run").exit_code == 0
    page = (project / "run" / "report.html").read_text()
    assert "Learned terms" in page
    assert "Chosen by the fit: library" in page
    assert "a few terms out of a library" in page


def test_python_finds_what_the_command_line_finds(project):
    parts = Project.open(project / "settings.toml").split
    physics = hs.equations("dx = growth*x - eaten*x*y", growth=2.0, eaten=1.0)
    run = hs.fit(
        hs.HybridSDE(states=("x", "y"), physics=physics), parts.train, validation=parts.validation
    )
    theirs = hs.Run.load(project / "run")
    assert run.metadata.choice == theirs.metadata.choice
    np.testing.assert_array_equal(
        run.forecaster.model.network.means, theirs.forecaster.model.network.means
    )


def test_learned_parameters_stay_learned_and_begin_where_they_ended(project):
    found = hs.Run.load(project / "run").equations(
        Project.open(project / "settings.toml").split.train
    )
    physics = {
        "parameters": {
            "growth": {"value": 2.0, "learn": True, "low": 0.1, "high": 9.0},
            "eaten": 1,
        },
        "exact": ["x"],
    }
    text = (
        "[data]\nfiles = 'a.csv'\n\n[physics]\nequations = []\n"
        "[physics.parameters]\ng = 1\n[train]\nseed = 1\n"
    )
    written = settings_with(text, found, physics)
    assert written.count("[physics]") == 1
    assert "growth = { value = 2, learn = true, low = 0.1, high = 9.0 }" in written
    assert "eaten = 1\n" in written
    assert 'exact = ["x"]' in written
    assert "[train]\nseed = 1" in written
    assert "g = 1\n[train]" not in written


@pytest.mark.slow
def test_networks_are_tried_where_a_library_leaves_a_doubt():
    """A kink that no term has, and steps that show it: errors of the library hang together."""
    rng = np.random.default_rng(0)

    def records(count):
        h, out = rng.normal(size=(count, 1)), []
        for _ in range(80):
            out.append(h + 0.002 * rng.normal(size=h.shape))
            for _ in range(20):
                h = h + 0.01 * np.sign(np.sin(6 * h)) + 0.005 * rng.normal(size=h.shape)
        return hs.Trajectories.from_arrays(
            [0.2 * np.arange(80)] * count, list(np.stack(out, 1)), states=("x",)
        )

    spec = hs.HybridSDE(states=("x",), hidden=(8,), members=1, degree=1, functions=())
    run = hs.fit(
        spec, records(6), validation=records(3), training=hs.Training(epochs=3, batch_size=3)
    )
    assert "both were fitted" in str(run.metadata.choice)
    alone = hs.fit(spec, records(6), training=hs.Training(epochs=3, batch_size=3))
    assert "recordings that the networks had not seen" in str(alone.metadata.choice)
