"""Many small fits: in this process, on Ray with several workers, and one by one.

    python benchmarks/scale.py [--fleet 1000] [--workers 1 2 4] [--out docs/results/scale.md]
    python benchmarks/scale.py --device gpu --fleet 1000        # one program on a GPU; no Ray

A fleet of generated machines, one learned rate each, 100 epochs. Every way is a process of its own,
after one that fills the cache of compiled programs. Steady throughput counts from the end of the
first group on each worker to the end of the last; the whole counts from the start of the command.
Leave the machine alone while it measures.
"""

import argparse
import json
import os
import pickle
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SETTINGS = """
[data]
files = "machines.csv"
id = "machine"
states = ["x"]
inputs = ["u"]
test = 0.25

[physics]
equations = ["dx = -k*(x - u)"]
exact = ["x"]

[physics.parameters]
k = { value = 0.6, learn = true, low = 0.05, high = 5.0 }

[model]
hidden = []

[train]
epochs = 100
"""
EPOCHS = 100
MANY = 2000
"""Larger fleets are fitted once, compilation included."""
LOCAL = "local"
FEW = 100
"""Members of the fleet that fills the cache."""


def write_fleet(folder: Path, count: int) -> Path:
    """Recordings and settings of a fleet."""
    from hybridsde.data import to_frame
    from hybridsde.datasets import machines

    frame = to_frame(machines.load(seed=0, count=count), id="machine")
    frame.to_csv(folder / "machines.csv", index=False)
    (folder / "settings.toml").write_text(SETTINGS)
    return folder / "settings.toml"


def one_way(settings: Path, out: Path, engine: str, workers: int) -> dict:
    """A fleet through one engine, timed from within."""
    began = time.monotonic()
    from hybridsde._cache import compile_quickly, keep_compiled
    from hybridsde._devices import use_all_cores
    from hybridsde.cli.engines import executor_of, settle_devices
    from hybridsde.engine.fleet import FleetJob
    from hybridsde.engine.ledger import held
    from hybridsde.engine.run_fleet import run_fleet

    use_all_cores()
    compile_quickly()
    keep_compiled()
    job = FleetJob.read(settings, out)
    devices, ends = settle_devices(out), []

    def report(progress) -> None:
        ends.append((time.monotonic(), progress.fits))

    asked = None if engine == LOCAL else workers
    with held(out, job, devices) as ledger, executor_of(engine, None, asked, devices) as executor:
        found = run_fleet(job, executor, ledger, report)
    wall = time.monotonic() - began
    first = min(len(ends) - 2, 2 * workers)  # all workers have compiled and done a group
    steady = (ends[-1][1] - ends[first][1]) / (ends[-1][0] - ends[first][0])
    busy = [json.loads(path.read_text())["seconds"] for path in (out / "tasks").rglob("*.json")]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    tasks = job.member_tasks(job.recordings.members(), {})
    return {
        "engine": engine,
        "workers": workers,
        "fits": len(found.table),
        "wall": wall,
        "whole": len(found.table) / wall,
        "steady": steady,
        "groups": len(busy) - 1,
        "driver_mib": peak,
        "sent_bytes": len(pickle.dumps(tasks[0])),
        "load": os.getloadavg()[0],
    }


def in_own_process(settings: Path, out: Path, engine: str, workers: int) -> dict:
    """`one_way` in a fresh interpreter."""
    command = [sys.executable, __file__, "--one", engine, str(workers), str(settings), str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def same(left: Path, right: Path) -> bool:
    """Whether two folders of members hold the same bytes."""
    names = sorted(path.relative_to(left) for path in left.rglob("*") if path.is_file())
    others = sorted(path.relative_to(right) for path in right.rglob("*") if path.is_file())
    return names == others and all(
        (left / name).read_bytes() == (right / name).read_bytes() for name in names
    )


def on_cpu(count: int, workers: list[int], out: Path | None) -> None:
    """All ways on the cores of this machine; the table, and whether the results agree."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        settings = write_fleet(folder, count)
        ways = [(LOCAL, 1), *(("ray", number) for number in workers)]
        small = write_small(folder)
        # Fills the cache of compiled programs, and shows the memory of a driver of fewer members.
        few = {e: in_own_process(small, folder / f"warm-{e}", e, 1) for e in dict(ways)}
        rows = []
        for engine, number in ways:
            place = folder / f"{engine}{number}"
            row = in_own_process(settings, place, engine, number)
            row["same"] = same(folder / f"{LOCAL}1" / "members", place / "members")
            row["bytes"] = size_of(place) / count
            row["driver_mib_few"] = few[engine]["driver_mib"]
            rows.append(row)
            print(json.dumps(row), flush=True)
    text = table(rows, count)
    print(text)
    if out is not None:
        out.write_text(text)


def write_small(folder: Path) -> Path:
    """The first groups of the fleet, for a process that fills the cache."""
    import pandas as pd

    frame = pd.read_csv(folder / "machines.csv")
    few = frame["machine"].unique()[:FEW]
    (folder / "small").mkdir(exist_ok=True)
    frame[frame["machine"].isin(few)].to_csv(folder / "small" / "machines.csv", index=False)
    (folder / "small" / "settings.toml").write_text(SETTINGS)
    return folder / "small" / "settings.toml"


def size_of(folder: Path) -> int:
    """Bytes of all files inside."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def table(rows: list[dict], count: int) -> str:
    """As Markdown."""
    base = rows[0]
    lines = [
        f"# {count} small fits",
        "",
        f"`benchmarks/scale.py`, {os.cpu_count()} cores, load average {base['load']:.1f}.",
        "",
        "| engine | workers | fits/s, whole command | fits/s, steady | against this process | "
        f"same bytes | peak of the driver, MiB (with {FEW} members) |",
        "|---" * 7 + "|",
    ]
    lines += [
        f"| {row['engine']} | {row['workers']} | {row['whole']:.1f} | {row['steady']:.1f} | "
        f"{row['whole'] / base['whole']:.2f} whole, {row['steady'] / base['steady']:.2f} steady | "
        f"{'yes' if row['same'] else 'NO'} | {row['driver_mib']:.0f} "
        f"({row['driver_mib_few']:.0f}) |"
        for row in rows
    ]
    each = f"{base['bytes'] / 1024:.0f} KiB on disk for each member, "
    lines += ["", each + f"{base['sent_bytes']} bytes sent for a group of 50."]
    return "\n".join(lines) + "\n"


def one_program(count: int) -> None:
    """`fit_each` as one program, and fits one by one, on whatever device JAX finds."""
    import jax

    import hybridsde as hs
    from hybridsde._parameters import Bounded
    from hybridsde.datasets import machines
    from hybridsde.run import fit_each

    data = machines.load(seed=0, count=count)
    rate = Bounded.of(0.6, 0.05, 5.0)
    physics = hs.equations(machines.EQUATION, k=rate)
    model = hs.HybridSDE(states=["x"], inputs=["u"], physics=physics, exact=("x",), hidden=None)
    model = model.settled(data.take(range(8)))
    each, training = list(data), hs.Training(epochs=EPOCHS)
    times = []
    for _ in range(3 if count <= MANY else 1):
        began = time.monotonic()
        runs = fit_each(model, each, seeds=[0] * count, training=training)
        times.append(time.monotonic() - began)
    began = time.monotonic()
    alone = [hs.fit(model, one, training=training, seed=0) for one in each[:4]]
    single = (time.monotonic() - began) / len(alone)
    pairs = zip(runs, alone, strict=False)
    apart = max(abs(_rate(one) - _rate(other)) for one, other in pairs)
    print(
        json.dumps(
            {
                "device": str(jax.devices()[0]),
                "fleet": count,
                "first_s": times[0],
                "fits_per_second": count / min(times[1:] or times),
                "one_by_one_per_second": 1 / single,
                "largest_difference_of_k": apart,
            }
        )
    )


def _rate(run) -> float:
    return run.metadata.parameters["k"]["value"]


def main() -> None:
    """Read the options."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fleet", type=int, default=1000)
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2, 4])
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        engine, workers, settings, out = asked.one
        print(json.dumps(one_way(Path(settings), Path(out), engine, int(workers))))
    elif asked.device == "gpu":
        one_program(asked.fleet)
    else:
        on_cpu(asked.fleet, asked.workers, asked.out)


if __name__ == "__main__":
    main()
