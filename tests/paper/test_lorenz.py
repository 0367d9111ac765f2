"""The Lorenz experiment on a small budget."""

import json
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from hybridsde import trainable
from hybridsde.__main__ import app
from hybridsde.datasets import lorenz, lotka_volterra
from hybridsde.fit import Training
from hybridsde.model.drift import make_gate
from hybridsde.paper import learning_curve
from hybridsde.paper.lorenz import (
    KNOWN,
    PRESETS,
    PROTOCOLS,
    PUBLISHED,
    SYSTEM,
)
from hybridsde.paper.row import floors, prepare, run_row
from hybridsde.paper.system import recording
from hybridsde.paper.table import fingerprint


def test_recording_follows_the_protocol(getkey):
    path = np.asarray(jax.jit(lambda key: lorenz.observe(key=key))(getkey()))
    assert path.shape == (2000, 3)
    np.testing.assert_array_equal(path[0], [1, 1, 28])
    assert np.isfinite(path).all()
    assert (np.abs(path[:, :2]) < 40).all()
    train, test = recording(SYSTEM, PROTOCOLS["24"], key=jr.key(0))
    assert train.values.shape == test.values.shape == (20, 24, 3)
    np.testing.assert_allclose(train.times[-1, -1], 4.79, rtol=1e-5)
    np.testing.assert_allclose(test.times[0, 0], 10.0, rtol=1e-6)


def test_protocols_of_the_text_cut_1920_rows_and_may_share_a_recording():
    keys, gate = jr.split(jr.key(0), 3), SYSTEM.gate(("y",))
    model = replace(PRESETS["paper"].model, hidden=(2,))
    train, test, models = prepare(SYSTEM, PROTOCOLS["960-one"], model, gate, keys)
    np.testing.assert_allclose(test.times[:, 0, 0], 9.6, rtol=1e-6)
    np.testing.assert_array_equal(train.values[0], train.values[2])
    np.testing.assert_array_equal(test.values[0], test.values[2])
    assert len(set(np.asarray(models.known.physics.parameters["kappa"].value).tolist())) == 3
    other, _, _ = prepare(SYSTEM, PROTOCOLS["24"], model, gate, keys)
    np.testing.assert_array_equal(other.values[0], train.values[0])
    assert np.abs(np.asarray(other.values[0] - other.values[2])).max() > 1


@pytest.mark.long
@pytest.mark.slow
def test_increments_have_the_drift_and_noise_of_the_equations(getkey):
    """Over one interval of 0.01 from the start: mean drift·Δt to first order, variance Δt."""
    firsts = jax.jit(jax.vmap(lambda key: lorenz.observe(key=key)[1]))(jr.split(getkey(), 200))
    moved = np.asarray(firsts) - np.array([1, 1, 28])
    x, y, z = 1.0, 1.0, 28.0
    drift = np.array([10 * (y - x), x * (28 - z) - y, x * y - 2.67 * z])
    assert (np.abs(moved.mean(0) / 0.01 - drift) < 5 * 10 / np.sqrt(200) + 0.1).all()
    assert (np.abs(moved.var(0) / 0.01 - 1) < 5 * np.sqrt(2 / 200) + 0.1).all()


def test_parameters_are_off_by_one_draw_per_repetition(getkey):
    physics = SYSTEM.noisy(key=getkey())
    assert physics.known(lorenz.STATES, ()) == lorenz.STATES
    draws = jax.vmap(lambda key: SYSTEM.noisy(key=key).parameters["zeta"].value)(
        jr.split(getkey(), 4000)
    )
    assert abs(float(draws.mean()) - 10) < 5 / np.sqrt(4000)
    assert abs(float(draws.std()) - 1) < 5 / np.sqrt(8000)


@pytest.mark.slow
@pytest.mark.long
def test_a_known_equation_helps():
    """A tenth of the budget, two repetitions: the hybrid is ahead, both of persistence (50)."""
    recommended = PRESETS["recommended"]
    preset = replace(recommended, training=replace(recommended.training, epochs=50))
    error = {}
    for known in ("none", "y"):
        found = run_row(SYSTEM, PROTOCOLS["24"], preset, KNOWN[known], "e-pac-bayes", repetitions=2)
        assert found.scores["mse"].shape == (2, 4)
        assert not found.diverged.any()
        error[known] = float(found.scores["mse"][:, -1].mean())
    assert error["y"] < error["none"] < 10


def test_presets_are_the_papers_and_ours():
    paper = PRESETS["paper"]
    assert not paper.model.standardise
    assert paper.model.weights == "local"
    assert paper.training == Training(
        epochs=100, batch_size=2, learning_rate=1e-3, schedule="constant", clip=None, longest=None
    )
    assert PRESETS["recommended"].model.standardise


@pytest.mark.long
def test_reproduce_writes_every_row_and_reuses_it(tmp_path, monkeypatch):
    """All rows on a small budget; a second call computes none of them."""
    from hybridsde.paper import experiment as tables
    from hybridsde.paper import lorenz as experiment

    monkeypatch.setattr(learning_curve, "SIZES", (2,))

    short = replace(PRESETS["recommended"], training=Training(epochs=1, batch_size=100))
    monkeypatch.setitem(experiment.PRESETS, "recommended", short)
    command = ["reproduce", "lorenz", "--preset", "recommended", "--quick", "--out", str(tmp_path)]
    first = CliRunner().invoke(app, command)
    assert first.exit_code == 0, first.output
    written = json.loads((tmp_path / "results.json").read_text())
    named = [(row["known"], row["method"]) for row in written["rows"]]
    assert named == [*PUBLISHED, *((known, "library") for known in experiment.KNOWN)]
    assert written["persistence_mse"] > 10 > written["oracle_mse"] > 0
    physics = written["rows"][len(PUBLISHED) - 1]
    assert physics["published_mse"] == 16.40
    assert physics["repetitions"] == 2
    assert physics["mse_se"] == pytest.approx(physics["mse_sd"] / 2**0.5)
    with monkeypatch.context() as changed:
        other = replace(short, samples=3)
        assert fingerprint(other) != fingerprint(short) == fingerprint(replace(short))
        changed.setattr(tables, "run_row", None)
        changed.setitem(experiment.PRESETS, "recommended", other)
        assert CliRunner().invoke(app, command).exit_code == 1
    monkeypatch.setattr(tables, "run_row", None)
    again = CliRunner().invoke(app, command)
    assert again.exit_code == 0, again.output
    assert json.loads((tmp_path / "results.json").read_text())["rows"] == written["rows"]
    assert len((tmp_path / "results.csv").read_text().splitlines()) == 1 + len(named)
    assert "| all | physics |" in (tmp_path / "results.md").read_text()
    for name in ("attractor", "forecast_100", "forecast_1000", "paths_1000", "knowledge"):
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (tmp_path / f"{name}.svg").read_text()
    gate = pd.read_csv(tmp_path / "gate.csv", index_col="state")
    assert gate.loc["x", "learned"] == 0
    assert set(gate["quantised"].round(1) * 10 % 1) == {0}


@pytest.mark.slow
def test_a_library_with_one_known_equation_is_near_the_true_equations():
    found = run_row(
        SYSTEM, PROTOCOLS["24"], PRESETS["recommended"], ("y",), "library", repetitions=2
    )
    mse = np.asarray(found.scores["mse"])[:, -1]
    oracle, persistence = floors(SYSTEM, PROTOCOLS["24"], 2, 0)
    assert mse.mean() < 1.5 * oracle < persistence
    assert not found.diverged.any()


def test_unknown_choices_are_refused():
    result = CliRunner().invoke(app, ["reproduce", "lorenz", "--preset", "papre"])
    assert result.exit_code == 2
    assert "is not one of paper, recommended, both" in result.output


def test_a_gate_on_the_grid_costs_its_logarithm(getkey):
    """Quantising leaves γ at the nearest point; |Γ| points cost ln|Γ| inside the root."""
    gate = make_gate("learn", ("x", "y"), ("y",))
    moved = eqx.tree_at(lambda g: g.strength.raw, gate, jnp.array([0.0, 0.6]))
    fixed = moved.quantised()
    np.testing.assert_allclose(fixed.value, [0.0, 0.6], atol=1e-6)
    assert fixed.choices == moved.choices == 11
    assert not any(jax.tree.leaves(trainable(fixed)))


def test_lotka_volterra_recordings_survive(getkey):
    paths = jax.jit(jax.vmap(lambda key: lotka_volterra.observe(key=key)))(jr.split(getkey(), 20))
    assert paths.shape == (20, 1000, 2)
    assert (np.asarray(paths) > 0).all()


@pytest.mark.long
def test_reproduce_lotka_volterra(tmp_path, monkeypatch):
    from hybridsde.paper import lotka_volterra as experiment

    short = replace(experiment.PRESETS["recommended"], training=Training(epochs=10, batch_size=5))
    monkeypatch.setitem(experiment.PRESETS, "recommended", short)
    command = ["reproduce", "lotka-volterra", "--preset", "recommended", "--quick"]
    result = CliRunner().invoke(app, [*command, "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    rows = json.loads((tmp_path / "results.json").read_text())["rows"]
    error = {(row["known"], row["method"]): row["mse_mean"] for row in rows}
    assert error["all", "e-pac-bayes"] < error["all", "physics"]
    assert (tmp_path / "forecast_200.png").exists()


def test_what_knowledge_saves_is_read_off_the_black_box_curve():
    """Errors 1/n for the black box and 1/(2n) for a hybrid: knowledge is worth a factor of two."""
    sizes = np.array([2, 4, 8, 16])
    frames = [
        pd.DataFrame({"known": known, "sequences": sizes, "repetition": r, "mse": 1 / (k * sizes)})
        for known, k in (("none", 1), ("y", 2))
        for r in range(3)
    ]
    saved = learning_curve.equivalents(pd.concat(frames))
    np.testing.assert_allclose(saved["y"], [4, 8, 16, np.nan])
    assert list(learning_curve.readable(saved)["y"]) == ["4.0", "8.0", "16.0", "not reached"]
