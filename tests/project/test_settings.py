"""Settings files: what they mean, and one line for what is wrong."""

import warnings

import numpy as np
import pytest

from hybridsde import InputError, InputNotice
from hybridsde.project.settings_file import check_settings, read_settings

DATA = '[data]\nfiles = "runs.csv"\nstates = ["x", "y"]\n'


def read(tmp_path, text):
    path = tmp_path / "settings.toml"
    path.write_text(text)
    return read_settings(path)


def test_data_alone_is_enough(tmp_path):
    settings = read(tmp_path, DATA)
    assert settings.model.diffusion == settings.model.noise == "learn"
    assert settings.train.estimator == "auto"


def test_parameters_are_held_or_learned(tmp_path):
    text = DATA + (
        '[physics]\nequations = ["dx = a*x - b*y"]\n'
        "[physics.parameters]\na = 2\nb = { value = 0.5, learn = true, low = 0.1, high = 1 }\n"
    )
    model = read(tmp_path, text).build_model(tmp_path, trust=False)
    assert float(model.physics.parameters["a"].value) == 2
    assert float(model.physics.parameters["b"].value) == pytest.approx(0.5)
    assert type(model.physics.parameters["b"]).__name__ == "Bounded"


BAD = [
    ('[data]\nfiles = "runs.csv"\nstaes = ["x"]\n', "needs the key 'states'"),
    (DATA + "tset = 0.2\n", r"\[data\] has no key 'tset'. Did you mean 'test'"),
    (DATA + "[trian]\n", "there is no key 'trian'. Did you mean 'train'"),
    (DATA + "test = 1.5\n", "data.test: .*less than 1 .found 1.5"),
    (DATA + "states = []\n", "is not TOML"),
    (
        DATA + '[train]\nobjective = "elbo"\n',
        "train.objective: .*'pac-bayes', 'bayes', 'vi' or 'sgld'",
    ),
    (DATA + '[train]\nepochs = "many"\n', "train.epochs: .*integer"),
    (DATA + "[train]\nseed = -1\n", "train.seed"),
    (DATA + "[physics.parameters]\na = 1\n", "parameters are given but no equations"),
    (DATA + '[physics]\nequations = ["dx = x"]\npython = "a.py:b"\n', "not both"),
    (
        DATA + '[physics]\nequations = ["dx = a"]\n[physics.parameters]\n'
        "a = { value = 3, learn = true, low = 0, high = 1 }\n",
        "value 3 must lie between low and high",
    ),
    (
        DATA + '[physics]\nequations = ["dx = a"]\n[physics.parameters]\na = { valu = 3 }\n',
        "physics.parameters.a",
    ),
    ('[data]\nfiles = "a.csv"\nstates = ["x"]\nhidden_states = ["x"]\n', "'x' is measured"),
    ("files = 3 = 4", "is not TOML"),
]


@pytest.mark.parametrize(("text", "message"), BAD)
def test_what_is_wrong_is_named_in_one_line(text, message, tmp_path):
    with pytest.raises(InputError, match=message) as error:
        read(tmp_path, text)
    assert "\n" not in str(error.value)
    assert "settings.toml" in str(error.value)


def test_a_missing_file_suggests_the_nearest(tmp_path):
    read(tmp_path, DATA)
    with pytest.raises(InputError, match=r"Did you mean 'settings.toml'"):
        read_settings(tmp_path / "setting.toml")


def test_saved_settings_read_back(tmp_path):
    settings = read(tmp_path, DATA)
    assert check_settings(settings.model_dump(mode="json"), "again") == settings


PHYSICS = "def drift(x, rate):\n    return {'x': -rate * x}\n"


def test_python_is_run_only_where_it_is_trusted(tmp_path):
    (tmp_path / "known.py").write_text(f"open('{tmp_path}/ran', 'w').close()\n" + PHYSICS)
    text = DATA + '[physics]\npython = "known.py:drift"\n[physics.parameters]\nrate = 2.0\n'
    settings = read(tmp_path, text)
    with pytest.raises(InputError, match="is not run unasked"):
        settings.build_model(tmp_path, trust=False)
    assert not (tmp_path / "ran").exists()
    assert settings.build_model(tmp_path, trust=True).physics.known(("x", "y"), ()) == ("x",)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("known.py:drfit", "no function 'drfit'.*Did you mean 'drift'"),
        ("gone.py:drift", "There is no file"),
        ("known.py", "must read file.py:function"),
        ("broken.py:drift", "cannot be run: SyntaxError"),
    ],
)
def test_python_that_cannot_be_used(source, message, tmp_path):
    (tmp_path / "known.py").write_text(PHYSICS)
    (tmp_path / "broken.py").write_text("def drift(:\n")
    settings = read(tmp_path, DATA + f'[physics]\npython = "{source}"\n')
    with pytest.raises(InputError, match=message):
        settings.build_model(tmp_path, trust=True)


def test_doses_that_are_held_are_said(tmp_path):
    """25 mg at one row would last until the next value, which is never."""
    rows = [f"{k},{'' if k % 9 == 0 else 3 + k % 4},{25 if k % 9 == 0 else ''}" for k in range(40)]
    (tmp_path / "a.csv").write_text("\n".join(["t,conc,dose", *rows]))
    data = {"files": "a.csv", "states": ["conc"], "inputs": ["dose"]}
    with pytest.warns(InputNotice) as said:
        check_settings({"data": data}, "here").read_data(tmp_path)
    (told,) = (str(one.message) for one in said if "as doses are" in str(one.message))
    assert "The input 'dose' is held from each row to the next, and an empty cell keeps" in told
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        start = {"data": data | {"inputs": [], "hidden_states": ["gut"]}, "start": {"gut": "dose"}}
        check_settings(start, "here").read_data(tmp_path)
    assert not any("as doses are" in str(one.message) for one in said)


def test_settings_name_columns_decimals_and_missing_words(tmp_path):
    (tmp_path / "a.csv").write_text("zeit;TI-1\n0;1,5\n1;-\n2;2,5\n")
    data = {"files": "a.csv", "states": ["T"], "time": "zeit", "columns": {"T": "TI-1"}}
    data |= {"separator": ";", "decimal": ",", "missing": ["-"]}
    found = check_settings({"data": data}, "here").read_data(tmp_path)
    np.testing.assert_array_equal(found.values[0, :, 0], [1.5, 0, 2.5])
