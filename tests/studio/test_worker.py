"""A fit in a process of its own: what it says, and how it ends."""

import json
import sys
import warnings

import numpy as np
import pytest

from hybridsde import InputNotice
from hybridsde.fit import Progress
from hybridsde.studio import worker
from hybridsde.studio.workspace import Workspace


@pytest.fixture
def said(capsys):
    return lambda: [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.fixture
def alone(monkeypatch):
    """Without what a process does to itself, and with a project that is never read."""
    for name in ("use_all_cores", "compile_quickly", "keep_compiled"):
        monkeypatch.setattr(worker, name, lambda: None)
    monkeypatch.setattr(worker.signal, "signal", lambda *_: None)
    return monkeypatch


class Fitted:
    """A project whose fit ends at once."""

    def __init__(self, ends=lambda: None):
        self.ends = ends

    def fit_into(self, out, *, resume, callbacks):
        out.mkdir()
        warnings.warn("Look at x.", InputNotice, stacklevel=1)
        callbacks[0](Progress(3, 9, {"loss": np.array([1.0, 2.0]), "kl": np.ones(2)}))
        callbacks[0](Progress(4, 9, {"loss": np.array([np.nan, 2.0])}))
        self.ends()


def test_a_fit_tells_its_stages_and_leaves_scores_of_others(alone, said, tmp_path):
    alone.setattr(worker, "open_project", lambda path: Fitted())
    alone.setattr(worker, "alternatives", lambda project: {"persistence": {"crps": 1.0}})
    assert worker.main([str(tmp_path / "a.toml"), str(tmp_path / "run")]) == 0
    lines = said()
    stages = [one["stage"] for one in lines if "stage" in one]
    assert stages == ["Reading the recordings", "Compiling", "Scoring simple forecasters"]
    assert {"note": "Look at x."} in lines
    assert {"epoch": 3, "epochs": 9, "loss": 1.5} in lines
    assert {"epoch": 4, "epochs": 9} in lines  # a number that is none is not told
    assert lines[-1]["fitted"] is True
    assert json.loads((tmp_path / "run" / worker.ALTERNATIVES).read_text()) == {
        "persistence": {"crps": 1.0}
    }


def test_a_fit_that_is_stopped_says_so_by_its_code(alone, said, tmp_path):
    def stop():
        raise KeyboardInterrupt

    alone.setattr(worker, "open_project", lambda path: Fitted(stop))
    assert worker.main(["a.toml", str(tmp_path / "run")]) == worker.INTERRUPTED
    assert not any(one.get("fitted") for one in said())


def test_what_cannot_be_fitted_is_said_in_one_line(alone, said, tmp_path):
    path = tmp_path / "a.toml"
    path.write_text('[data]\nfiles = "none.csv"\nstates = ["x"]\n')
    assert worker.main([str(path), str(tmp_path / "run")]) == worker.FAILED
    assert "There is no file" in said()[-1]["error"]
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_simple_forecasters_are_scored_on_the_same_recordings(tmp_path):
    workspace = Workspace(tmp_path)
    project = worker.open_project(workspace.settings_path(workspace.add_example()))
    found = worker.alternatives(project)
    assert {"persistence", "climatology", "mean-curve"} <= set(found)
    assert all(0 < one["crps"] < one["rmse"] for one in found.values())


class Closed:
    """An output that nobody reads any more."""

    def write(self, text):
        raise BrokenPipeError

    flush = write


def test_it_works_on_where_nobody_listens(monkeypatch):
    monkeypatch.setattr(sys, "stdout", Closed())
    worker.tell(stage="Fitting")
    assert not isinstance(sys.stdout, Closed)
    worker.tell(stage="Still fitting")
    sys.stdout.close()
