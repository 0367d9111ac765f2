"""A sweep whose workers, driver and Ray node are killed at random ends as if nothing had happened.

    python benchmarks/kill_engine.py [--trials 200] [--kills 20] [--seed 0]

A sweep of tiny fits runs on a local Ray with two workers. At random moments one of its processes is
killed at once: a worker, the command itself, or the raylet, which takes the whole node with it.
Ray begins the task of a dead worker again; where the command is gone it is called again, as a user
would. In the end every trial must be there once, with the rows of a sweep in one process that
nobody disturbed, and the best settings must be the same file.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

SETTINGS = """
[data]
files = "d.csv"
id = "id"
states = ["x"]
test = 0.25
validation = 0.25

[model]
learned = "network"
hidden = [2]
members = 1
diffusion = 0.1
noise = 0.1

[train]
epochs = 3
samples = 1

[forecast]
draws = 8

[sweep]
"train.learning_rate" = { low = 1e-3, high = 0.1, log = true }
"""
WORKER, DRIVER, NODE = "worker", "driver", "raylet"
PATIENCE = 60.0
"""Seconds after which a command whose node is gone is ended too."""


def write_project(folder: Path) -> Path:
    """Eight short recordings of a decay, and settings."""
    rows = ["id,t,x"]
    draw = random.Random(0)
    for name in range(8):
        x = 1.0 + draw.random()
        for step in range(8):
            rows.append(f"r{name},{step / 4},{x:.4f}")
            x += -0.2 * x + 0.05 * draw.gauss(0, 1)
    (folder / "d.csv").write_text("\n".join(rows) + "\n")
    (folder / "settings.toml").write_text(SETTINGS)
    return folder / "settings.toml"


def command(settings: Path, out: Path, trials: int, *more: str) -> list[str]:
    """The sweep as a user calls it."""
    asked = ["sweep", str(settings), "--out", str(out), "--trials", str(trials), "--rungs", "1"]
    return [sys.executable, "-m", "hybridsde", *asked, "--quiet", *more]


def processes() -> dict[int, tuple[int, str]]:
    """Parent and title of every process."""
    found = {}
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            with suppress(OSError, IndexError):
                parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
                title = (
                    (path / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                )
                found[int(path.name)] = (parent, title)
    return found


def descendants(root: int) -> dict[int, str]:
    """Processes that one has started, and those that they have."""
    known, all_of_them = {root}, processes()
    while True:
        more = {pid for pid, (parent, _) in all_of_them.items() if parent in known} - known
        if not more:
            return {pid: all_of_them[pid][1] for pid in known if pid in all_of_them}
        known |= more


def target(driver: int, kind: str) -> int | None:
    """A process of this kind that belongs to the command; None where there is none just now."""
    if kind == DRIVER:
        return driver
    own = descendants(driver)
    if kind == NODE:
        fitting = [pid for pid, title in own.items() if title.split(" ")[0].endswith("/raylet")]
    else:
        fitting = [pid for pid, title in own.items() if title.startswith("ray::work")]
    return random.choice(sorted(fitting)) if fitting else None


@dataclass
class Disturbed:
    """What was done to a sweep."""

    kills: Counter
    calls: int
    """How often the command was called."""
    seconds: float


def disturb(settings: Path, out: Path, trials: int, kills: int, pause: float) -> Disturbed:
    """Run a sweep on Ray to its end, killing its processes on the way."""
    done, calls, began, ours = Counter(), 0, time.monotonic(), set()
    plan = random.choices((WORKER, DRIVER, NODE), (3, 1, 1), k=kills)
    while True:
        calls += 1
        running = subprocess.Popen(
            command(settings, out, trials, "--engine", "ray", "--workers", "2"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        while running.poll() is None:
            time.sleep(random.uniform(0.2, 2 * pause))
            ours |= set(descendants(running.pid))
            kind = plan[-1] if plan else None
            hit = target(running.pid, kind) if kind else None
            if kind is None or hit is None or running.poll() is not None:
                continue
            with suppress(ProcessLookupError):
                os.kill(hit, signal.SIGKILL)
                done[plan.pop()] += 1
            if kind == NODE:
                with suppress(subprocess.TimeoutExpired):
                    running.wait(PATIENCE)
                running.kill()
        if running.returncode == 0:
            end(ours)
            return Disturbed(done, calls, time.monotonic() - began)
        if calls > kills + 3:
            raise RuntimeError(f"the command ends with code {running.returncode}")


def end(ours: set[int]) -> None:
    """What killed commands may have left; only processes that they started."""
    there = processes()
    for pid in ours:
        if pid in there and "ray" in there[pid][1]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def results(out: Path) -> dict[str, list]:
    """The rows of every task, by its id; a task that is there twice is an error."""
    found: dict[str, list] = {}
    for path in (out / "tasks").rglob("*.json"):
        assert path.stem not in found, f"{path.stem} is there twice"
        found[path.stem] = json.loads(path.read_text())["rows"]
    return found


def compare(trials: int, kills: int, seed: int, pause: float) -> dict:
    """A disturbed sweep against an undisturbed one."""
    random.seed(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        settings = write_project(folder)
        began = time.monotonic()
        alone = command(settings, folder / "calm", trials)
        subprocess.run(alone, check=True, stdout=subprocess.DEVNULL)
        calm = time.monotonic() - began
        found = disturb(settings, folder / "wild", trials, kills, pause)
        left, right = (results(folder / one) for one in ("calm", "wild"))
        best = [(folder / one / "best.toml").read_bytes() for one in ("calm", "wild")]
        litter = list((folder / "wild").rglob("*.part"))
    return {
        "trials": len(left),
        "kills": dict(found.kills),
        "commands": found.calls,
        "same_tasks": left.keys() == right.keys(),
        "same_rows": left == right,
        "same_best": best[0] == best[1],
        "left_behind": len(litter),
        "calm_s": round(calm, 1),
        "disturbed_s": round(found.seconds, 1),
    }


def main() -> None:
    """Read the options."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--pause", type=float, default=6.0, help="mean seconds between kills")
    asked = parser.parse_args()
    found = compare(asked.trials, asked.kills, asked.seed, asked.pause)
    print(json.dumps(found, indent=1))
    if not (found["same_tasks"] and found["same_rows"] and found["same_best"]):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
