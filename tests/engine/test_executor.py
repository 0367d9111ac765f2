"""Tasks, the ledger and executors, with jobs that compute next to nothing."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from engine_jobs import Squares, squares
from hybridsde import InputError
from hybridsde.engine import Ledger, LocalExecutor, Task, execute
from hybridsde.engine.ledger import JOB, held, mark_of
from hybridsde.engine.task import as_json, digest

TESTS = Path(__file__).parents[1]


def ignore(progress):
    """Nobody looks."""


def test_ids_depend_on_the_content_alone():
    one = Task("fit", {"a": 1, "b": [2.5, "x"]})
    assert one.id == Task("fit", {"b": [2.5, "x"], "a": 1}).id
    others = [Task("fit", {"a": 1, "b": [2.5, "y"]}), Task("score", one.payload)]
    assert len({one.id, *(other.id for other in others)}) == 3


def test_endless_limits_have_a_digest_and_are_json():
    """`bounds = [0, inf]` is common in settings, and no number of JSON."""
    assert as_json({"bounds": [0.0, float("inf")], "n": 1}) == {"bounds": [0.0, "inf"], "n": 1}
    assert digest({"high": float("inf")}) != digest({"high": float("-inf")})


def test_finished_tasks_are_not_done_again(tmp_path):
    job, tasks, out = Squares(tmp_path), squares(None, None, None), tmp_path / "out"
    with held(out, job, 1) as ledger:
        execute(LocalExecutor(), job, tasks[:2], ledger, ignore)
    begun = {path.name for path in tmp_path.iterdir()}
    for path in tmp_path.glob("[0-9a-f]*[0-9a-f]"):
        path.unlink()
    seen = []
    with held(out, job, 1) as ledger:
        assert execute(LocalExecutor(), job, tasks, ledger, seen.append) == []
        assert [ledger.outcome(task).rows[0]["square"] for task in tasks] == [0, 1, 4]
    assert {task.id for task in tasks[:2]} <= begun
    assert [(tmp_path / task.id).exists() for task in tasks] == [False, False, True]
    assert (seen[0].done, seen[-1].done, seen[-1].of, seen[-1].skipped) == (2, 3, 3, 2)
    assert seen[-1].left == 0
    assert seen[-1].fits == 2


def test_failures_are_results_and_exceptions_are_not(tmp_path):
    job, tasks = Squares(tmp_path), squares("fails", "raises", None)
    seen = []
    with held(tmp_path / "out", job, 1) as ledger:
        lost = execute(LocalExecutor(), job, tasks, ledger, seen.append)
        assert lost == [tasks[1]]
        assert tasks[0] in ledger
        assert tasks[1] not in ledger
        assert tasks[2] in ledger
    assert (seen[-1].failures, seen[-1].lost) == (2, 1)
    assert any("no luck" in line for progress in seen for line in progress.news)


def test_a_folder_of_another_job_is_refused(tmp_path):
    job, out = Squares(tmp_path), tmp_path / "out"
    with held(out, job, 1), pytest.raises(InputError, match="in use"), held(out, job, 1):
        pass
    content = json.loads((out / JOB).read_text())
    (out / JOB).write_text(json.dumps({**content, "mark": "another"}))
    with pytest.raises(InputError, match="other settings"), held(out, job, 1):
        pass
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").touch()
    with pytest.raises(InputError, match="not an empty folder"), held(tmp_path / "full", job, 1):
        pass


def test_workers_must_see_the_folder(tmp_path):
    job = Squares(tmp_path)
    with pytest.raises(InputError, match="storage that all machines share"):
        Ledger.join(tmp_path / "elsewhere", mark_of(job))
    with held(tmp_path / "out", job, 1) as ledger:
        assert Ledger.join(tmp_path / "out", ledger.mark) == ledger


def test_what_killed_workers_left_is_removed(tmp_path):
    job, tasks, out = Squares(tmp_path), squares(None), tmp_path / "out"
    with held(out, job, 1) as ledger:
        execute(LocalExecutor(), job, tasks, ledger, ignore)
        half = out / "tasks" / tasks[0].id[:2] / ".half.json.0123.part"
        half.write_text("{")
    assert not half.exists()
    assert tasks[0] in ledger


def test_a_damaged_file_is_named(tmp_path):
    job, tasks, out = Squares(tmp_path), squares(None), tmp_path / "out"
    with held(out, job, 1) as ledger:
        execute(LocalExecutor(), job, tasks, ledger, ignore)
        path = next((out / "tasks").rglob("*.json"))
        path.write_text('{"rows": 3}')
        with pytest.raises(InputError, match=path.name):
            ledger.outcome(tasks[0])


ON_RAY = """
import json, sys
from pathlib import Path
from engine_jobs import Squares, squares
from hybridsde.engine import RayExecutor, execute
from hybridsde.engine.ledger import held

folder = Path(sys.argv[1])
job, tasks = Squares(folder), squares(None, "dies once", "dies", "raises", "fails", *[None] * 6)
seen = []
executor = RayExecutor(workers=2)
with held(folder / "out", job, 1) as ledger:
    lost = execute(executor, job, tasks, ledger, seen.append)
    done = [ledger.outcome(task).rows for task in tasks if task in ledger]
executor.close()
news = sorted({line for one in seen for line in one.news})
print(json.dumps({"lost": [tasks.index(one) for one in lost], "done": done, "news": news,
    "opened": len(list(folder.glob("opened-*"))), "jax": "jaxlib" in sys.modules}))
"""


@pytest.mark.slow
def test_a_worker_that_dies_loses_nothing_but_itself(tmp_path):
    pytest.importorskip("ray")
    done = subprocess.run(
        [sys.executable, "-c", ON_RAY, str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=TESTS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert sorted(found["lost"]) == [2, 3]
    assert [rows[0]["square"] for rows in found["done"]] == [0, 1, 16, 25, 36, 49, 64, 81, 100]
    assert found["done"][2][0]["failure"] == "too large"
    assert any("no luck" in line for line in found["news"])
    assert any(line.startswith("worker ") and "cpu" in line for line in found["news"])
    # Once by each process, however many tasks it did: two, and one for each that died.
    assert found["opened"] <= 2 + 1 + 5
