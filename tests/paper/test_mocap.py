"""The walking table on generated data: every row trains, scores and is remembered."""

import json
import os
import sys
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import hybridsde as hs
from hybridsde.__main__ import app
from hybridsde.paper import mocap, mocap_sde
from hybridsde.paper.mocap_data import Walking
from hybridsde.paper.mocap_others import OTHERS

pytestmark = pytest.mark.slow


def steps(series, rows=24, seed=0):
    """Four channels that swing together, each sequence with its own phase."""
    rng = np.random.default_rng(seed)
    times = np.arange(rows) / 12
    values = [
        np.stack([np.sin(6 * times + phase + shift) for shift in range(4)], -1)
        for phase in rng.uniform(0, 6, series)
    ]
    names = ("a", "b", "c", "d")
    ids = [f"{seed} {n}" for n in range(series)]
    return hs.Trajectories.from_arrays([times] * series, values, states=names, ids=ids)


def short(preset, **changes):
    """A preset that trains for a moment."""
    return replace(preset, iterations=((6, 8),), batch_size=4, **changes)


@pytest.fixture
def small(monkeypatch):
    model = replace(
        mocap_sde.PAPER.model,
        states=("z0", "z1"),
        observed=("a", "b", "c", "d"),
        latent=hs.Latent(3, (8,), (8,)),
        hidden=(8,),
    )
    monkeypatch.setitem(mocap_sde.PRESETS, "paper", short(mocap_sde.PAPER, model=model))
    loss, _ = mocap_sde.METHODS["d-bnn (sgld)"]
    quick = (loss, hs.Langevin(steps=8, keep=2))
    monkeypatch.setitem(mocap_sde.METHODS, "d-bnn (sgld)", quick)


def reproduce(folder, rows):
    """Some rows on generated data, and the names of the fits that it took."""
    preset = replace(mocap_sde.PRESETS["paper"], rows=rows)
    data = Walking(steps(8, seed=1), steps(2, seed=2), steps(3, seed=3))
    named = []

    def watch(name):
        named.append(name)
        return ()

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(mocap_sde.PRESETS, "paper", preset)
        walkers = steps(6, 30, seed=4)
        given = {"repetitions": 2, "data": data, "walkers": walkers, "watch": watch}
        results = mocap.reproduce(folder, **given)
    assert [(row.known, row.method) for row in results.rows] == list(rows)
    for row in results.rows:
        assert np.isfinite([row.mse_mean, row.mse_all_mean, row.nll_mean]).all()
        assert row.mse_sample_mean >= row.mse_mean == pytest.approx(np.mean(row.mse_each))
        assert row.mse_low < row.mse_mean < row.mse_high
    return named, (folder / "results.md").read_text()


@pytest.mark.long
def test_the_other_bayesian_networks_are_there_and_kept(small, tmp_path):
    rows = (("none", "d-bnn (sgld)"), ("none", "d-bnn (vi)"))
    named, text = reproduce(tmp_path, rows)
    assert len(named) == 2
    assert "13.89 ± 2.56" in text
    assert reproduce(tmp_path, rows)[0] == []


@pytest.mark.long
def test_the_four_rows_of_the_design_are_compared(small, tmp_path):
    named, text = reproduce(tmp_path, mocap_sde.FACTORIAL)
    assert named.count("the walkers") == 1
    assert "| 42 walkers instead of none | e-pac-bayes |" in text


@pytest.mark.long
def test_other_systems_have_rows_of_their_own(small, tmp_path, monkeypatch):
    names = ("a", "b", "c", "d")
    other = replace(OTHERS["neural-ode"], observed=names, latent=hs.Latent(3, (), ()), hidden=())
    average = replace(OTHERS["climatology"], observed=names)
    monkeypatch.setitem(OTHERS, "neural-ode", other)
    monkeypatch.setitem(OTHERS, "climatology", average)
    data = Walking(steps(8, seed=1), steps(2, seed=2), steps(3, seed=3))
    results = mocap.reproduce(
        tmp_path,
        presets=(),
        others=("climatology", "neural-ode"),
        repetitions=2,
        data=data,
        watch=lambda name: (),
    )
    rows = {row.method: row for row in results.rows}
    assert list(rows) == ["neural-ode", "climatology"]
    assert (rows["neural-ode"].published_mse, rows["neural-ode"].published_sd) == (22.49, 0.88)
    assert rows["climatology"].published_mse is None
    train, test = (part.values for part in (data.train, data.test))
    expected = ((test[:, 3:] - train.mean((0, 1))) ** 2).mean()
    assert rows["climatology"].mse_mean == pytest.approx(expected, rel=1e-4)
    text = (tmp_path / "results.md").read_text()
    assert "| none | neural-ode | paper | centred | 22.49 ± 0.88 |" in text
    assert "| none | climatology | paper | centred | – |" in text


def test_a_system_that_is_not_installed_is_refused_before_anything_begins(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "diffrax", None)
    names = ("a", "b", "c", "d")
    monkeypatch.setitem(OTHERS, "ode2vae", replace(OTHERS["ode2vae"], observed=names))
    data = Walking(steps(8, seed=1), steps(2, seed=2), steps(3, seed=3))
    with pytest.raises(hs.InputError, match="ODE²VAE needs diffrax"):
        mocap.reproduce(tmp_path, others=("ode2vae",), data=data, watch=lambda name: ())


def test_the_table_has_eleven_rows():
    asked = {*mocap_sde.PAPER.rows, *((mocap_sde.NONE, name) for name in mocap.COMPARED)}
    assert asked == set(mocap.PUBLISHED)
    assert (len(mocap_sde.PAPER.rows), len(asked)) == (6, 11)


@pytest.mark.skipif("HYBRIDSDE_DATA" not in os.environ, reason="HYBRIDSDE_DATA is not set")
@pytest.mark.long
def test_the_command_on_the_real_recordings(tmp_path, monkeypatch):
    rows = (("none", "d-bnn (vi)"),)
    monkeypatch.setitem(
        mocap_sde.PRESETS, "recommended", short(mocap_sde.RECOMMENDED, rows=rows, members=2)
    )
    out = tmp_path / "walk"
    command = ["reproduce", "mocap", "--preset", "recommended", "--quick", "--out", str(out)]
    wrong = CliRunner().invoke(app, [*command, "--methods", "arima"])
    assert "'arima' is not one of" in wrong.output
    found = CliRunner().invoke(app, [*command, "--methods", "climatology"])
    assert found.exit_code == 0, found.output
    written = {path.name for path in out.iterdir()}
    tables = {"results.json", "results.csv", "results.md"}
    assert written == {*tables, "angles.png", "angles.svg", "walking.gif"}
    results = json.loads((out / "results.json").read_text())
    assert results["predict_zero_mse"] == pytest.approx(33.67, abs=0.01)
    assert results["pca_3_floor_mse"] == pytest.approx(4.41, abs=0.02)
    assert [row["published_mse"] for row in results["rows"]] == [None, 9.05]
    assert results["rows"][0]["mse_mean"] == pytest.approx(results["predict_zero_mse"], abs=0.01)


def test_iterations_become_epochs():
    training = mocap_sde.PAPER.training(16, 300)
    assert training.windows == ((43, 30), (107, 50), (71, 100))
    assert training.steps(16, 300) == pytest.approx(3000, rel=0.02)


def test_references_of_a_known_case():
    data = Walking(steps(5, seed=1), steps(2, seed=2), steps(5, seed=1))
    found = mocap.references(data)
    assert found["nearest_training_sequence_mse"] == 0
    assert found["predict_zero_mse"] == pytest.approx(0.5, abs=0.05)
    assert found["pca_3_floor_mse"] < 1e-3
