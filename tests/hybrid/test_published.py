"""The method as it was published: one word in Python, one in a settings file, the same fit."""

import jax
import numpy as np
import pytest

import hybridsde as hs
from helpers import first_equation, wiggles
from hybridsde import InputError
from hybridsde.project.compare import variants
from hybridsde.project.project import Project
from hybridsde.project.settings_file import check_settings

STATES = ("x", "y")
FILE = """
[data]
files = "runs.csv"
id = "run"
states = ["x", "y"]
test = 0

[physics]
equations = ["dx = k*y"]
parameters = { k = 2.0 }

[model]
preset = "paper"
hidden = [8]
diffusion = 0.2
noise = 0.1

[train]
epochs = 2
samples = 2
seed = 3
"""


def opened(tmp_path, text=FILE):
    hs.to_frame(wiggles(), id="run", time="t").to_csv(tmp_path / "runs.csv", index=False)
    (tmp_path / "settings.toml").write_text(text)
    return Project.open(tmp_path / "settings.toml")


def test_a_settings_file_and_python_give_the_same_fit(tmp_path):
    project = opened(tmp_path)
    model, how = hs.published(
        STATES,
        physics=hs.equations("dx = k*y", k=2.0),
        diffusion=0.2,
        noise=0.1,
        hidden=(8,),
        epochs=2,
        samples=2,
    )
    by_hand = hs.fit(model, project.split.train, **how, seed=3)
    by_file = project.fit()
    assert project.split.validation is None
    for one, other in zip(
        jax.tree.leaves(by_hand.forecaster), jax.tree.leaves(by_file.forecaster), strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_saved_settings_of_a_preset_read_back(tmp_path):
    settings = opened(tmp_path).settings
    assert check_settings(settings.model_dump(mode="json"), "again") == settings


def test_a_comparison_keeps_the_method(tmp_path):
    found = {one.name: one for one in variants(opened(tmp_path))}
    assert set(found) == {
        "black box, bayes",
        "black box, pac-bayes",
        "physics alone, bayes",
        "hybrid, bayes",
        "hybrid, pac-bayes",
    }
    solver = hs.EulerMaruyama()
    wanted = {
        "bayes": hs.EmpiricalBayes(2, "log_mean", solver),
        "pac-bayes": hs.EmpiricalPACBayes(2, path_kl="sum", estimator="mean_log", solver=solver),
    }
    assert all(one.loss == wanted[one.objective] for one in found.values())


AGAINST = [
    ("[model]\n", "[model]\nmembers = 4\n", "model.members = 4 contradicts"),
    ("[model]\n", '[model]\nlearned = "auto"\n', "which has learned = 'network'"),
    ("[model]\n", '[model]\nfar = "fade"\n', "model.far"),
    ("diffusion = 0.2", 'diffusion = "learn"', "has a constant there"),
    ("test = 0\n", 'test = 0\npositive = ["x"]\n', "which has no positive"),
    ("[train]\n", "[train]\nclip = 10\n", "which has no clip"),
    ("[train]\n", '[train]\nobjective = "vi"\n', "is not what the paper proposes"),
    ("[train]\n", '[train]\nestimator = "filtered"\n', "train.estimator = 'filtered' contradicts"),
    ("[train]\n", '[knowledge]\ndecays = ["x"]\n[train]\n', "which has no knowledge"),
    ("k = 2.0", "k = { value = 2.0, learn = true }", "holds them"),
]


@pytest.mark.parametrize(("old", "new", "message"), AGAINST, ids=lambda text: text[:20].strip())
def test_a_setting_that_contradicts_the_preset_is_an_error(tmp_path, old, new, message):
    assert old in FILE
    with pytest.raises(InputError, match=message) as error:
        opened(tmp_path, FILE.replace(old, new))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"members": 4}, "members = 4 contradicts"),
        ({"positive": ["x"]}, "no positive"),
        ({"noise": hs.Positive.of(0.1, floor=0.01)}, "a constant there"),
        ({"diffusion": "learn"}, "a constant there"),
        ({"diffusion": [0.0, 0.2]}, "can be inverted"),
        ({"physics": hs.known_drift(first_equation, k=hs.Free(2.0))}, "holds them"),
        ({"objective": "vi"}, "pac-bayes or bayes"),
        ({"standardise": True}, "no standardise"),
    ],
    ids=lambda given: str(given)[:20],
)
def test_python_refuses_the_same(given, message):
    with pytest.raises(ValueError, match=message):
        hs.published(STATES, **given)


def test_spreads_are_constants_also_where_they_are_not_given():
    model, _ = hs.published(STATES, noise=None)
    begun = model.init(model.batch(wiggles()), key=jax.random.key(0))
    moved = hs.trainable(begun)
    assert not any(jax.tree.leaves((moved.diffusion, moved.observation)))
    assert any(jax.tree.leaves(moved.network))
