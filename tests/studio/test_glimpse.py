"""What a fit under way knows, read from its checkpoint."""

import numpy as np
import pytest

import hybridsde as hs
from helpers import wiggles
from hybridsde.project.project import Project
from hybridsde.store.folder import CHECKPOINT
from hybridsde.studio.glimpse import Glimpse

SETTINGS = """
[data]
files = "mine.csv"
id = "id"
states = ["x", "y"]
[physics]
equations = ["dx = k*y"]
[physics.parameters]
k = { value = 1.5, learn = true, low = 0.5, high = 4.0 }
[model]
learned = "network"
hidden = [4]
members = 1
[train]
epochs = 3
substeps = 1
estimator = "mean_log"
"""


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """A project, and the folder of its fit, which was stopped."""
    folder = tmp_path_factory.mktemp("glimpse")
    hs.to_frame(wiggles(series=6)).to_csv(folder / "mine.csv", index=False)
    (folder / "settings.toml").write_text(SETTINGS)
    project = Project.open(folder / "settings.toml")

    def stop(progress):
        if progress.epoch == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        project.fit_into(folder / "run", callbacks=(stop,))
    return project, folder / "run"


def test_a_checkpoint_is_seen(stopped):
    project, out = stopped
    found = Glimpse(project)(out)
    assert found is not None
    assert found["epoch"] == 2
    assert 0.5 < found["parameters"]["k"] < 4.0
    seen = found["forecast"]
    assert seen["id"] == project.split.test.ids[0]
    assert len(seen["forecast"]["times"]) == len(seen["times"]) - seen["given"]
    assert np.isfinite(seen["forecast"]["quantiles"]).all()


def test_nothing_is_seen_before_a_checkpoint_or_of_another_model(stopped, tmp_path):
    project, out = stopped
    assert Glimpse(project)(tmp_path) is None
    (tmp_path / "settings.toml").write_text(SETTINGS.replace("hidden = [4]", "hidden = [5]"))
    (tmp_path / "mine.csv").write_bytes((out.parent / "mine.csv").read_bytes())
    other = Glimpse(Project.open(tmp_path / "settings.toml"))
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / CHECKPOINT).write_bytes((out / CHECKPOINT).read_bytes())
    assert other(tmp_path / "run") is None
