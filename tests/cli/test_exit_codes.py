"""Every exit code of the table in docs/own-data.md, and what is said with it."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
import typer
from typer.testing import CliRunner

from helpers import untrained_run
from hybridsde.__main__ import app
from hybridsde.cli import stopping
from hybridsde.project.project import Project
from hybridsde.store.folder import CHECKPOINT, RUN
from hybridsde.store.lock import is_unused

PAGE = Path(__file__).parents[2] / "docs/own-data.md"


def call(*command):
    return CliRunner().invoke(app, [str(word) for word in command])


def project(folder, **changes):
    """Settings of a growth that is measured, with keys of [model] changed."""
    t = np.linspace(0, 3, 12)
    parts = [pd.DataFrame({"id": n, "t": t, "x": np.exp(0.3 * t) + n}) for n in range(3)]
    pd.concat(parts).to_csv(folder / "x.csv", index=False)
    keys = "".join(f"{name} = {json.dumps(value)}\n" for name, value in changes.items())
    path = folder / "x.toml"
    path.write_text(
        '[data]\nfiles = "x.csv"\nid = "id"\ntime = "t"\nstates = ["x"]\ntest = 0.34\n'
        f"[train]\nepochs = 2\n[model]\n{keys}"
    )
    return path


def test_the_table_names_every_code():
    listed = set(re.findall(r"(?m)^\| (\d+) \|", PAGE.read_text()))
    assert listed == {"0", "1", "2", "3", "130", "143"}


def test_0_where_all_is_well(tmp_path):
    assert call("check", project(tmp_path)).exit_code == 0


def test_1_where_a_run_is_not_what_it_was(tmp_path, monkeypatch):
    from hybridsde.project import verification

    untrained_run().save(tmp_path / "run")
    row = pd.MultiIndex.from_tuples([("x", "crps")])
    scores = pd.DataFrame({"stored": [1.0], "again": [2.0]}, row)
    found = verification.Verification(("run.json",), (), scores, False)
    monkeypatch.setattr(verification, "verify", lambda run, trust: found)
    assert call("verify", tmp_path / "run").exit_code == 1


def test_2_where_input_cannot_be_used(tmp_path):
    result = call("check", project(tmp_path, learned="nonsense"))
    assert (result.exit_code, result.output[:6]) == (2, "error:")
    assert call("fit", "--no-such-option").exit_code == 2


def test_3_where_no_loss_was_a_number_and_no_run_is_left(tmp_path, monkeypatch):
    """Also where only the validation losses were none: there is nothing to keep then."""
    settings, out = project(tmp_path, learned="network", hidden=[3]), tmp_path / "run"
    text = settings.read_text().replace("test = 0.34", 'test = ["0"]\nvalidation = ["1"]')
    settings.write_text(text)
    lost = jnp.full((), jnp.nan)
    monkeypatch.setattr(
        sys.modules["hybridsde.fit.epoch"], "_validate", lambda *args, **named: lost
    )
    result = call("fit", settings, "--out", out, "--quiet")
    assert result.exit_code == 3, result.output
    assert "failed: " in result.output
    assert is_unused(out)  # free for another fit


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_130_and_143_say_what_is_kept_and_how_to_go_on(number, code, tmp_path, monkeypatch):
    def stopped(self, out, **_):
        out.mkdir()
        (out / CHECKPOINT).write_bytes(b"")
        signal.raise_signal(number)

    monkeypatch.setattr(Project, "fit_into", stopped)
    before = signal.getsignal(signal.SIGTERM)
    ignored = signal.signal(signal.SIGINT, signal.default_int_handler)  # what `&` in a script does
    out = tmp_path / "run"
    settings = project(tmp_path)
    try:
        result = call("fit", settings, "--out", out, "--quiet")
    finally:
        signal.signal(signal.SIGINT, ignored)
    assert result.exit_code == code
    assert "The training of the networks is kept" in result.output
    assert f"Go on with: hybridsde fit {settings} --out {out} --resume" in result.output
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_library_begins_again_and_is_said_to(tmp_path):
    assert "searched for anew" in stopping.kept_of_fit(tmp_path)
    (tmp_path / RUN).write_text("")
    assert "complete" in stopping.kept_of_fit(tmp_path)


DEAF = """
import os, signal, time
from hybridsde.cli import stopping
stopping.GRACE = 0.2
with stopping.stoppable("fit", kept=lambda: "Nothing."):
    try:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(30)
    except KeyboardInterrupt:
        time.sleep(30)
"""


def test_what_does_not_listen_is_ended():
    done = subprocess.run([sys.executable, "-c", DEAF], capture_output=True, text=True, timeout=60)
    assert done.returncode == 143
    assert "Stopped. Nothing. Go on with: hybridsde fit" in done.stderr


def test_threads_are_left_alone():
    with pytest.raises(typer.Exit), stopping.stoppable("fit"):
        raise KeyboardInterrupt
