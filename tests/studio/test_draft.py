"""Settings that go to the page and come back."""

import math

import pytest

from hybridsde import InputError
from hybridsde.project.settings_file import check_settings, read_settings
from hybridsde.studio.draft import (
    merged,
    open_project,
    plain,
    read_draft,
    save_draft,
    settings_text,
)
from hybridsde.studio.results import flat
from hybridsde.studio.workspace import Workspace

STORED = {"data": {"files": "mine.csv", "states": ["x"]}, "physics": {"python": "f.py:f"}}


def test_the_page_names_no_file_and_no_code():
    sent = {
        "data": {"files": "/etc/passwd", "states": ["x", "y"], "separator": ";"},
        "physics": {"python": "evil.py:run"},
    }
    found = merged(STORED, sent, "mine.toml")
    assert found.data.files == "mine.csv"
    assert found.data.separator == ","
    assert found.physics.python == "f.py:f"
    assert found.data.states == ["x", "y"]
    assert merged({"data": STORED["data"]}, sent, "mine.toml").physics.python is None


def test_what_is_wrong_is_named():
    with pytest.raises(InputError, match="positives"):
        merged(STORED, {"data": {"states": ["x"], "positives": []}}, "mine.toml")
    with pytest.raises(InputError, match="must be a table"):
        merged(STORED, {"data": [1]}, "mine.toml")


def test_settings_survive_the_way_to_the_page_and_back(tmp_path):
    content = {
        "data": {"files": "a.csv", "states": ["x", "y"], "bounds": {"x": [0.0, math.inf]}},
        "start": {"z": [0.0, 2.0]},
        "physics": {
            "equations": ["dx = k*y"],
            "parameters": {"k": {"value": 1.5, "learn": True, "low": 0.1, "high": 9.0}},
            "exact": ["x"],
        },
        "train": {"seed": 3},
    }
    content["data"]["hidden_states"] = ["z"]
    settings = check_settings(content, "a.toml")
    assert plain(settings)["data"]["bounds"] == {"x": [0.0, None]}
    assert merged(plain(settings), plain(settings), "a.toml") == settings
    (tmp_path / "a.toml").write_text(settings_text(settings))
    assert read_settings(tmp_path / "a.toml") == settings


def test_what_a_person_wrote_is_left_alone(tmp_path):
    path = tmp_path / "mine.toml"
    text = '# My notes.\n[data]\nfiles = "a.csv"\nstates = ["x"]\n'
    path.write_text(text)
    settings, _ = read_draft(path)
    other = settings.model_copy(update={"data": settings.data.model_copy(update={"unit": "h"})})
    saved = save_draft(path, other)
    assert saved.name == "mine-2.toml"
    assert path.read_text() == text
    assert save_draft(saved, settings) == saved
    assert save_draft(path, settings) == saved


def test_python_physics_is_not_run(tmp_path):
    root = Workspace(tmp_path)
    path = tmp_path / root.add_example()
    (path.parent / "f.py").write_text("raise SystemExit('this was run')\n")
    text = path.read_text().split("[physics]")[0]
    path.write_text(text + '[physics]\npython = "f.py:f"\n')
    with pytest.raises(InputError, match="does not run"):
        open_project(path)


def test_settings_are_compared_one_by_one():
    content = {"data": {"states": ["x"], "id": None}, "physics": {"parameters": {"k": 1.5}}}
    assert flat(content) == {"data.states": '["x"]', "physics.parameters.k": "1.5"}
