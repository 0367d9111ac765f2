"""The walking table on generated data: every row trains, scores and is remembered."""

import json
import os
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import hybridsde as hs
from hybridsde.cli import app
from hybridsde.datasets.mocap import Walking
from hybridsde.experiments import mocap, walking_sde


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
        walking_sde.PAPER.model,
        states=("z0", "z1"),
        observed=("a", "b", "c", "d"),
        latent=hs.Latent(3, (8,), (8,)),
        hidden=(8,),
    )
    monkeypatch.setitem(walking_sde.PRESETS, "paper", short(walking_sde.PAPER, model=model))
    monkeypatch.setitem(walking_sde.OBJECTIVES, "d-bnn (sgld)", hs.SGLD(samples=1, steps=8, keep=2))


def reproduce(folder, rows):
    """Some rows on generated data, and the names of the fits that it took."""
    preset = replace(walking_sde.PRESETS["paper"], rows=rows)
    data = Walking(steps(8, seed=1), steps(2, seed=2), steps(3, seed=3))
    named = []

    def watch(name):
        named.append(name)
        return ()

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(walking_sde.PRESETS, "paper", preset)
        walkers = steps(6, 30, seed=4)
        given = {"repetitions": 2, "data": data, "walkers": walkers, "watch": watch}
        results = mocap.reproduce(folder, **given)
    assert [(row.known, row.method) for row in results.rows] == list(rows)
    for row in results.rows:
        assert np.isfinite([row.mse_mean, row.mse_all_mean, row.nll_mean]).all()
        assert row.mse_sample_mean >= row.mse_mean == pytest.approx(np.mean(row.mse_each))
        assert row.mse_low < row.mse_mean < row.mse_high
    return named, (folder / "results.md").read_text()


def test_the_other_bayesian_networks_are_there_and_kept(small, tmp_path):
    rows = (("none", "d-bnn (sgld)"), ("none", "d-bnn (vi)"))
    named, text = reproduce(tmp_path, rows)
    assert len(named) == 2
    assert "13.89 ± 2.56" in text
    assert reproduce(tmp_path, rows)[0] == []


def test_the_four_rows_of_the_design_are_compared(small, tmp_path):
    named, text = reproduce(tmp_path, walking_sde.FACTORIAL)
    assert named.count("the walkers") == 1
    assert "| 42 walkers instead of none | e-pac-bayes |" in text


def test_the_paper_has_six_rows():
    asked = {*walking_sde.PAPER.rows, *((walking_sde.NONE, name) for name in mocap.COMPARED)}
    assert asked == set(mocap.PUBLISHED)
    assert (len(walking_sde.PAPER.rows), len(asked)) == (6, 11)


@pytest.mark.skipif("HYBRIDSDE_DATA" not in os.environ, reason="HYBRIDSDE_DATA is not set")
def test_the_command_on_the_real_recordings(tmp_path, monkeypatch):
    rows = (("none", "d-bnn (vi)"), ("42 walkers", "e-pac-bayes"))
    monkeypatch.setitem(
        walking_sde.PRESETS, "recommended", short(walking_sde.RECOMMENDED, rows=rows, members=2)
    )
    out = tmp_path / "walk"
    command = ["reproduce", "mocap", "--preset", "recommended", "--quick", "--out", str(out)]
    found = CliRunner().invoke(app, command)
    assert found.exit_code == 0, found.output
    written = {path.name for path in out.iterdir()}
    tables = {"results.json", "results.csv", "results.md"}
    assert written == {*tables, "angles.png", "angles.svg", "walking.gif"}
    results = json.loads((out / "results.json").read_text())
    assert results["predict_zero_mse"] == pytest.approx(33.67, abs=0.01)
    assert results["pca_3_floor_mse"] == pytest.approx(4.41, abs=0.02)
    assert [row["published_mse"] for row in results["rows"]] == [9.05, 7.84]


def test_iterations_become_epochs():
    training = walking_sde.PAPER.training(16, 300)
    assert training.snippets == ((43, 30), (107, 50), (71, 100))
    assert training.steps(16, 300) == pytest.approx(3000, rel=0.02)


def test_references_of_a_known_case():
    data = Walking(steps(5, seed=1), steps(2, seed=2), steps(5, seed=1))
    found = mocap.references(data)
    assert found["nearest_training_sequence_mse"] == 0
    assert found["predict_zero_mse"] == pytest.approx(0.5, abs=0.05)
    assert found["pca_3_floor_mse"] < 1e-3
