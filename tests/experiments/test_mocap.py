"""The walking table on generated data: every row trains, scores and is remembered."""

from dataclasses import replace

import numpy as np
import pytest

import hybridsde as hs
from hybridsde.datasets.mocap import Walking
from hybridsde.experiments import mocap


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


@pytest.fixture
def small(monkeypatch):
    model = replace(
        mocap.PAPER.model,
        states=("z0", "z1"),
        observed=("a", "b", "c", "d"),
        latent=hs.Latent(3, (8,), (8,)),
        hidden=(8,),
    )
    preset = replace(mocap.PAPER, model=model, iterations=((6, 8),), batch_size=4)
    monkeypatch.setitem(mocap.PRESETS, "paper", preset)


def test_every_row_is_there_and_kept(small, tmp_path):
    data = Walking(steps(8, seed=1), steps(2, seed=2), steps(3, seed=3))
    given = {"repetitions": 2, "data": data, "walkers": steps(6, 30, seed=4)}
    named = []

    def watch(name):
        named.append(name)
        return ()

    results = mocap.reproduce(tmp_path, watch=watch, **given)
    assert [(row.known, row.method) for row in results.rows] == list(mocap.PUBLISHED)
    assert all(np.isfinite(row.mse_mean) for row in results.rows)
    assert named.count("the walkers") == 1
    assert (tmp_path / "results.md").exists()
    count = len(named)
    mocap.reproduce(tmp_path, watch=watch, **given)
    assert len(named) == count


def test_iterations_become_epochs():
    training = mocap.PAPER.training(16, 300)
    assert training.snippets == ((43, 30), (107, 50), (71, 100))
    assert training.steps(16, 300) == pytest.approx(3000, rel=0.02)


def test_references_of_a_known_case():
    data = Walking(steps(5, seed=1), steps(2, seed=2), steps(5, seed=1))
    found = mocap.references(data)
    assert found["nearest_training_sequence_mse"] == 0
    assert found["predict_zero_mse"] == pytest.approx(0.5, abs=0.05)
    assert found["pca_3_floor_mse"] < 1e-3
