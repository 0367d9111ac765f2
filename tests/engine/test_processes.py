"""One fit by two processes, and what killed sweeps end with."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]
SETTINGS = """
[data]
files = "d.csv"
id = "id"
states = ["x"]
test = 0.25
validation = 0

[model]
learned = "network"
hidden = [2]
members = 1
diffusion = 0.1
noise = 0.1

[train]
epochs = 2
samples = 128
estimator = "mean_log"

[forecast]
draws = 16
"""


def write_project(folder):
    random, rows = np.random.default_rng(0), []
    for name in range(8):
        x = 1 + random.random()
        for step in range(5):
            rows.append({"id": f"r{name}", "t": step / 4, "x": x})
            x += -0.2 * x + 0.05 * random.normal()
    pd.DataFrame(rows).to_csv(folder / "d.csv", index=False)
    (folder / "settings.toml").write_text(SETTINGS)


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@pytest.mark.slow
def test_two_processes_share_one_fit(tmp_path):
    """128 samples of 4 series are enough to be spread; the numbers are those of one process."""
    write_project(tmp_path)
    command = [sys.executable, "-m", "hybridsde", "fit", "settings.toml", "--quiet", "--out"]
    shared = [*command, "two", "--coordinator", f"127.0.0.1:{free_port()}", "--processes", "2"]
    quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    both = [
        subprocess.Popen([*shared, "--process", str(n)], cwd=tmp_path, env=os.environ, **quiet)
        for n in (0, 1)
    ]
    told = [one.communicate(timeout=240) for one in both]
    assert [one.returncode for one in both] == [0, 0], told
    assert any("Gloo" in text for pair in told for text in pair)  # they did talk
    subprocess.run([*command, "one"], cwd=tmp_path, check=True, capture_output=True)
    two, one = (pd.read_csv(tmp_path / name / "history.csv") for name in ("two", "one"))
    np.testing.assert_allclose(two, one, rtol=1e-4)


@pytest.mark.long
def test_a_sweep_survives_kills():
    """The benchmark in short; see `benchmarks/kill_engine.py`."""
    pytest.importorskip("ray")
    words = ["--trials", "10", "--kills", "2", "--pause", "4", "--seed", "2"]
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "kill_engine.py"), *words],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert sum(found["kills"].values()) >= 1
    assert found["same_rows"]
    assert found["left_behind"] == 0
