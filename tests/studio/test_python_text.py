"""The script of a run is the run: the same data, split, model and training."""

import pytest

import hybridsde as hs
from hybridsde.project.project import Project
from hybridsde.project.settings_file import read_settings
from hybridsde.store.spec_io import write_spec
from hybridsde.studio.python_text import USUAL, literal, python_text
from hybridsde.studio.workspace import Workspace

LEARNED = "growth = { value = 2.0, learn = true, low = 0.5, high = 4.0 }\neaten = 1.0\n"
MORE = {
    "plain": "",
    "library": '[model]\nlearned = "library"\ndegree = 3\nterms = ["x/(1 + x)"]\n',
    "network": '[model]\nlearned = "network"\nhidden = [8, 8]\nmembers = 2\n[train]\nseed = 3\n',
    "trained": "[train]\nepochs = 7\nbatch_size = 3\nobjective = 'bayes'\nsubsteps = 2\n"
    "[forecast]\nhorizon = 6\ndraws = 50\n",
}


class Stop(Exception):
    """After the call of `fit`."""


def called(script, folder, monkeypatch):
    """What the script gives to `fit`."""
    found = {}

    def fit(model, data, **rest):
        found.update(rest, model=model, data=data)
        raise Stop

    monkeypatch.chdir(folder)
    monkeypatch.setattr(hs, "fit", fit)
    names = {"__name__": "__main__"}
    with pytest.raises(Stop):
        exec(compile(script, "fit.py", "exec"), names)
    return found


QUICK = ("library",)


@pytest.mark.parametrize(
    "more",
    [pytest.param(one, marks=() if one in QUICK else pytest.mark.slow) for one in MORE],
)
def test_a_script_fits_what_the_settings_say(tmp_path, monkeypatch, more):
    path = tmp_path / Workspace(tmp_path).add_example()
    text = path.read_text().replace("growth = 2.0\neaten = 1.0\n", LEARNED)
    text = text.replace(
        'unit = "years"', 'unit = "years"\npositive = ["x"]\nbounds = {y = [0, inf]}'
    )
    path.write_text(text + MORE[more])
    project = Project.open(path)
    script = python_text(read_settings(path), "run-1", project.training)
    found = called(script, path.parent, monkeypatch)
    assert found["data"].ids == project.split.train.ids
    assert project.split.validation is not None
    assert found["validation"].ids == project.split.validation.ids
    assert found["seed"] == project.settings.train.seed
    assert found.get("horizon") == project.settings.forecast.horizon
    mine = found["model"].settled(found["data"])
    left_out = {**USUAL, "observed": list(mine.states)}
    spec = {name: left_out.get(name) if v is None else v for name, v in write_spec(mine).items()}
    assert spec == write_spec(project.model)
    assert found.get("training") in (None, project.training)
    assert repr(found.get("objective")) == repr(project.objective)


def test_a_script_of_the_published_method_is_short(tmp_path, monkeypatch):
    path = tmp_path / Workspace(tmp_path).add_example()
    path.write_text(path.read_text() + '[model]\npreset = "paper"\n[train]\nsamples = 2\n')
    project = Project.open(path)
    script = python_text(project.settings, "run-1", project.training)
    assert "model, how = hs.published(" in script
    found = called(script, path.parent, monkeypatch)
    assert found["training"] == project.training
    assert repr(found["objective"]) == repr(project.objective)
    assert write_spec(found["model"]) == {**write_spec(project.model), "observed": None}


@pytest.mark.parametrize(
    "value", [float("inf"), (1,), [1, 2], {"a": [0.0, float("-inf")]}, "ü'\"\\"]
)
def test_literals_are_read_back(value):
    assert eval(literal(value)) == value


def test_a_script_reads_a_table_as_the_settings_do(tmp_path, monkeypatch):
    rows = [f"{k};{k % 7},5;{'-' if k == 3 else k % 5}" for k in range(60)]
    text = "\n".join(["t;TI-101.PV;y", *rows]).encode()
    path = tmp_path / Workspace(tmp_path).add_table("plant.csv", text)
    project = Project.open(path)
    script = python_text(read_settings(path), "run-1", project.training)
    assert 'columns={"TI_101_PV": "TI-101.PV"}, decimal=",", missing=("-",)' in script
    assert called(script, path.parent, monkeypatch)["data"].states == ("TI_101_PV", "y")
