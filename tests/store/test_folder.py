"""Run folders: what is saved comes back, and nothing in them is executed."""

import json

import numpy as np
import pytest

import hybridsde as hs
from helpers import plain_fit, tiny_model, tree_allclose, wiggles

TRAINING = hs.Training(epochs=2, batch_size=3)


@pytest.fixture(scope="module")
def run():
    model = tiny_model(
        physics=hs.equations("dx = -rate*y", rate=hs.Bounded.of(0.8, 0.1, 2.0)),
        diffusion="learn",
        noise="learn",
        start="uncertain",
        gate="learn",
    )
    objective = hs.EmpiricalPACBayes(solver=hs.Heun(2))
    return hs.fit(model, wiggles(), objective=objective, training=TRAINING, seed=3)


@pytest.fixture
def folder(run, tmp_path):
    run.save(tmp_path / "run")
    return tmp_path / "run"


def test_a_loaded_run_forecasts_the_same_numbers(run, folder):
    back = hs.Run.load(folder)
    assert tree_allclose(back.forecaster.model, run.forecaster.model, rtol=0, atol=0)
    assert back.forecaster.solver == run.forecaster.solver
    assert back.seed == run.seed
    np.testing.assert_allclose(back.history, run.history, rtol=1e-6)
    test = wiggles(seed=5)
    ours, theirs = (r.forecast(test.start(), [0.1, 0.3], draws=8) for r in (back, run))
    np.testing.assert_array_equal(ours.observations, theirs.observations)
    assert back.metadata == run.metadata


def test_nothing_is_pickled(folder):
    assert sorted(path.name for path in folder.iterdir()) == [
        "history.csv",
        "run.json",
        "weights.safetensors",
    ]


def test_a_run_is_not_overwritten(run, folder):
    with pytest.raises(hs.InputError, match="holds a run already"):
        run.save(folder)


def change(path, edit):
    facts = json.loads(path.read_text())
    edit(facts)
    path.write_text(json.dumps(facts))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "weights.safetensors").write_bytes(b"12345"), "changed or cut short"),
        (lambda f: (f / "weights.safetensors").unlink(), "has no weights"),
        (lambda f: (f / "run.json").write_text("{"), "is damaged"),
        (lambda f: (f / "run.json").unlink(), "not the folder of a run"),
        (lambda f: change(f / "run.json", lambda r: r.update(format=99)), "has format 99"),
        (
            lambda f: change(f / "run.json", lambda r: r["spec"].update(hidden=[3])),
            "belongs to another model",
        ),
        (
            lambda f: change(f / "run.json", lambda r: r["spec"].update(colour="red")),
            "does not know 'colour'",
        ),
        (
            lambda f: change(
                f / "run.json", lambda r: r["forecaster"]["solver"].update(name="Milstein")
            ),
            "'Milstein', which this version does not know",
        ),
        (
            lambda f: change(f / "run.json", lambda r: r["spec"].update({"class": "Oracle"})),
            "no system of the kind 'Oracle'",
        ),
        (
            lambda f: change(f / "run.json", lambda r: r["metadata"].pop("used")),
            "it lacks 'used'",
        ),
        (lambda f: change(f / "run.json", lambda r: r.pop("spec")), "it lacks 'spec'"),
    ],
)
def test_damage_is_named(damage, message, folder):
    damage(folder)
    with pytest.raises(hs.InputError, match=message):
        hs.Run.load(folder)


def test_an_unfinished_fit_is_recognised(tmp_path):
    (tmp_path / "checkpoint").write_bytes(b"")
    with pytest.raises(hs.InputError, match="--resume"):
        hs.Run.load(tmp_path)
    with pytest.raises(hs.InputError, match="There is no folder"):
        hs.Run.load(tmp_path / "gone")


def known(x, y):
    return {"x": -y}


def test_python_physics_needs_trust(tmp_path):
    run = plain_fit(tiny_model(physics=hs.known_drift(known)), wiggles(), training=TRAINING)
    run.save(tmp_path / "run")
    with pytest.raises(hs.InputError, match="--trust"):
        hs.Run.load(tmp_path / "run")


def test_functions_without_a_file_cannot_be_saved(tmp_path):
    model = tiny_model(physics=hs.known_drift(lambda x, y: {"x": -y}))
    run = plain_fit(model, wiggles(), training=TRAINING)
    with pytest.raises(hs.InputError, match="move it into a file"):
        run.save(tmp_path / "run")
    assert not (tmp_path / "run").exists()
