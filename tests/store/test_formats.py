"""Folders of older versions load, or say exactly why not."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import hybridsde as hs
from helpers import wiggles
from hybridsde.store.formats import FORMAT, upgraded

FIRST = Path(__file__).parent / "format1"
"""Written by version 0.1.0: `HybridSDE(states=("x", "y"), physics=equations("dx = 2*y"),
hidden=(3,))` fitted to `wiggles()` with Heun(2)."""


def test_a_folder_of_version_0_1_loads():
    run = hs.Run.load(FIRST)
    model = run.forecaster.model
    found = [
        model.network.posterior.mean.layers[0].weight[0, 0],
        model.diffusion.sd.value[0],
        model.observation.sd.value[1],
        model.scale.value.states.mean[0],
    ]
    # As version 0.1.0 printed them.
    np.testing.assert_allclose(found, [0.55948520, 0.26625583, 0.03313288, 0.22690116], rtol=1e-6)
    assert run.forecaster.solver == hs.Heun(2)
    assert run.seed == 3
    assert np.isfinite(run.score(wiggles(seed=5), draws=20).to_numpy()).all()
    with pytest.raises(hs.InputError, match="'0' was seen before"):
        run.certify(wiggles())


def test_it_is_written_in_the_present_format(tmp_path):
    run = hs.Run.load(FIRST)
    run.save(tmp_path / "run")
    assert json.loads((tmp_path / "run" / "run.json").read_text())["format"] == FORMAT
    back = hs.Run.load(tmp_path / "run")
    assert back.metadata == run.metadata
    test = wiggles(seed=5)
    assert back.score(test, draws=20).equals(run.score(test, draws=20))


@pytest.mark.parametrize(
    ("lacks", "message"),
    [
        ("seen_steps", r"version 0\.1\.0\. It lacks 'seen_steps'.*needs\. Fit again"),
        ("model", "It lacks 'model'"),
        ("seed", "'seed'"),
    ],
)
def test_what_cannot_be_read_is_named(lacks, message, tmp_path):
    shutil.copytree(FIRST, tmp_path / "run")
    path = tmp_path / "run" / "run.json"
    content = json.loads(path.read_text())
    del content[lacks]
    path.write_text(json.dumps(content))
    with pytest.raises(hs.InputError, match=message):
        hs.Run.load(tmp_path / "run")


def test_a_model_of_format_2_does_not_fade(tmp_path):
    spec = {"class": "HybridSDE", "states": ["x"], "physics": {"kind": "none"}}
    frozen = {**spec, "physics": {"kind": "frozen", "model": spec}}
    found = upgraded({"format": 2, "weights_sha256": "", "spec": frozen}, tmp_path)["spec"]
    assert found["far"] == "free"
    assert found["physics"]["model"]["far"] == "free"
    other = {"class": "Persistence", "observed": ["x"]}
    written = {"format": 2, "weights_sha256": "", "spec": other}
    assert upgraded(written, tmp_path)["spec"] == other
