"""Fits wait for each other, can be stopped, and say why they failed."""

import sys
import time

import pytest

from hybridsde import InputError
from hybridsde.studio.jobs import DONE, FAILED, MOST_POINTS, RUNNING, STOPPED, WAITING, Job, Jobs

WORK = """
import json, sys, time, pathlib
out = pathlib.Path(sys.argv[2]); out.mkdir(exist_ok=True)
with open(out.parent / "order", "a") as file:
    file.write(out.name + "+" * ("--resume" in sys.argv) + " ")
say = lambda **said: print(json.dumps(said), flush=True)
say(stage="Fitting")
for epoch in range(1, 4): say(epoch=epoch, epochs=3, loss=1.0 / epoch)
if out.name == "bad": print("Traceback"); print("it broke"); sys.exit(1)
if out.name == "wrong": say(error="x is no state."); sys.exit(2)
if out.name == "long" and "--resume" not in sys.argv: time.sleep(60)
say(fitted=True)
"""


@pytest.fixture
def jobs():
    found = Jobs((sys.executable, "-c", WORK))
    yield found
    found.close()


def ended(job, *states, seconds=30.0):
    limit = time.monotonic() + seconds
    while job.state not in states:
        assert time.monotonic() < limit, job
        time.sleep(0.02)
    return job


def test_one_at_a_time_in_their_order(jobs, tmp_path):
    queued = [jobs.add(tmp_path / "a.toml", tmp_path / name) for name in ("one", "two", "three")]
    assert sum(job.state == RUNNING for job in queued) <= 1
    ended(queued[-1], DONE)
    assert [job.state for job in queued] == [DONE] * 3
    assert (tmp_path / "order").read_text() == "one two three "
    assert [point["loss"] for point in queued[0].curve] == [1.0, 0.5, 1 / 3]
    assert queued[0].fitted


def test_stop_and_resume(jobs, tmp_path):
    job = jobs.add(tmp_path / "a.toml", tmp_path / "long")
    waiting = jobs.add(tmp_path / "a.toml", tmp_path / "next")
    ended(job, RUNNING)
    with pytest.raises(InputError, match="being fitted"):
        jobs.add(tmp_path / "a.toml", tmp_path / "long")
    assert waiting.state == WAITING
    jobs.stop(waiting.number)
    while not job.curve:
        time.sleep(0.02)
    jobs.stop(job.number)
    ended(job, STOPPED)
    again = jobs.add(tmp_path / "a.toml", tmp_path / "long", resume=True)
    ended(again, DONE)
    assert jobs.of(tmp_path / "long") is again
    assert (tmp_path / "order").read_text() == "long long+ "


def test_failures_say_why(jobs, tmp_path):
    wrong, bad = (jobs.add(tmp_path / "a.toml", tmp_path / name) for name in ("wrong", "bad"))
    ended(bad, FAILED)
    assert wrong.state == FAILED
    assert wrong.error == "x is no state."
    assert bad.error == "it broke"


def test_curves_stay_short_and_begin_anew(tmp_path):
    job = Job(1, tmp_path, tmp_path, resume=False, state=RUNNING)
    for epoch in range(1, 5000):
        job.hear({"epoch": epoch, "epochs": 5000, "loss": 1.0}, now=float(epoch))
    assert len(job.curve) <= MOST_POINTS
    assert job.seconds_left() == pytest.approx(1.0)
    job.hear({"epoch": 1, "epochs": 42, "loss": 2.0}, now=6000.0)
    assert [point["epoch"] for point in job.curve] == [1]
