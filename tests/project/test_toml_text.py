"""Settings written as a file that can be read again."""

import tomllib

import pytest

from hybridsde import InputError
from hybridsde.project.overrides import with_overrides
from hybridsde.project.settings_file import check_settings, read_settings
from hybridsde.project.toml_text import settings_text, toml_text

CONTENT = {
    "data": {
        "files": "runs/*.csv",
        "id": "run",
        "states": ["x", "y z"],
        "bounds": {"x": [0.0, float("inf")], "y z": [-1.5, 2.0]},
        "test": {"start": 3.0},
    },
    "physics": {
        "equations": ["dx = -k*x + 0*sin(x)"],
        "parameters": {"k": {"value": 0.5, "learn": True, "low": 0.1, "high": 2.0}},
    },
    "model": {"learned": ["library", "process"], "hidden": []},
    "train": {"learning_rate": 1e-3, "seed": 7},
}


def test_plain_data_come_back():
    assert tomllib.loads(toml_text(CONTENT)) == CONTENT
    odd = {"a b": {'quo"te': "back\\slash\n", "µ": True}, "n": -3}
    assert tomllib.loads(toml_text(odd)) == odd
    with pytest.raises(InputError, match="cannot be written"):
        toml_text({"a": object()})


def test_paths_lead_to_the_same_files(tmp_path):
    settings = check_settings(CONTENT, "settings")
    out = tmp_path / "sweep" / "best"
    text = settings_text(settings, tmp_path / "mine", out)
    out.mkdir(parents=True)
    (out / "best.toml").write_text(text)
    again = read_settings(out / "best.toml")
    there, here = (
        one.paths(place)[0] for one, place in ((settings, tmp_path / "mine"), (again, out))
    )
    assert here.resolve() == there.resolve()
    same = {"data": {**settings.data.model_dump(), "files": ""}}
    assert same == {"data": {**again.data.model_dump(), "files": ""}}
    assert again.physics == settings.physics
    assert again.model == settings.model


def test_overrides_by_dotted_names():
    settings = check_settings(CONTENT, "settings")
    changed = with_overrides(
        settings, {"train.learning_rate": 0.1, "physics.parameters.k.value": 1.0}, "here"
    )
    assert changed.train.learning_rate == 0.1
    assert changed.train.seed == 7
    assert changed.physics.parameters["k"].value == 1.0
    assert settings.physics.parameters["k"].value == 0.5
    for name, message in {
        "train.rate": "no key 'rate'",
        "epochs": "is no setting",
        "train.seed.more": "'seed' is no table",
    }.items():
        with pytest.raises(InputError, match=message):
            with_overrides(settings, {name: 1}, "here")
