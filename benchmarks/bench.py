"""Ours against torchsde and diffrax, side by side in one run.

    python benchmarks/bench.py [--quick]

Times every system in turn, round after round, so that all see the same machine. Writes
benchmarks/results.json and docs/performance.md. Needs the `bench` extra.
"""

import argparse
import json
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

import hybridsde as hs

hs.use_all_cores()

import jax  # noqa: E402
import numpy as np  # noqa: E402
import peers  # noqa: E402
from page import page  # noqa: E402

ROOT = Path(__file__).parent.parent
PATHS, STEPS = (4, 64, 1280), (23, 100, 1000)
BURST = 0.05
"""Seconds that a system is timed for before the next one has its turn, one call at least."""
OURS = {"path": "ours (path)", "local": "ours (local)"}


def time_cell(what: str, paths: int, steps: int, budget: float) -> dict[str, list[float]]:
    """Seconds of single calls: short bursts of one system after the other, round after round.

    The first call of a burst does not count: threads of the system before may still be spinning,
    and the caches hold its numbers.
    """
    calls = {name: build(paths, steps)[what] for name, build in peers.SYSTEMS.items()}
    for call in calls.values():
        call()
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    began = time.perf_counter()
    rounds = 0
    while rounds < 3 or (time.perf_counter() - began < budget and rounds < 20):
        for name, call in calls.items():
            call()
            burst = time.perf_counter()
            while True:
                at = time.perf_counter()
                call()
                after = time.perf_counter()
                seconds[name].append(after - at)
                if after - burst > BURST:
                    break
        rounds += 1
    return seconds


def compare(steps: tuple[int, ...], budget: float) -> list[dict]:
    """One entry per peer, mode and size."""
    ratios = []
    for what in ("gradient", "forward"):
        for length in steps:
            for paths in PATHS:
                seconds = time_cell(what, paths, length, budget)
                middle = {name: statistics.median(values) for name, values in seconds.items()}
                spread = {name: _spread(values) for name, values in seconds.items()}
                for mode, name in OURS.items():
                    for peer in ("torchsde", "diffrax"):
                        ratios.append(
                            {
                                "peer": peer,
                                "mode": mode,
                                "what": what,
                                "paths": paths,
                                "steps": length,
                                "ours_ms": 1e3 * middle[name],
                                "peer_ms": 1e3 * middle[peer],
                                "ratio": middle[peer] / middle[name],
                                "ours_spread": spread[name],
                                "peer_spread": spread[peer],
                                "calls": len(seconds[name]),
                            }
                        )
                shown = ", ".join(f"{name} {1e3 * value:.3g} ms" for name, value in middle.items())
                print(f"{what}, {paths} paths, {length} steps: {shown}", flush=True)
    return ratios


def _spread(values: list[float]) -> float:
    """Half the distance between the quartiles, as a share of the median."""
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
    return float((high - low) / 2 / middle)


def slopes(ratios: list[dict]) -> list[dict]:
    """How time grows: d ln time / d ln size, from 64 paths and 100 steps on."""
    ours = {
        (r["mode"], r["what"], r["paths"], r["steps"]): r["ours_ms"]
        for r in ratios
        if r["peer"] == "torchsde"
    }
    found = []
    for mode in OURS:
        for what in ("gradient", "forward"):
            for along, small, large in (
                ("paths", (64, 100), (1280, 100)),
                ("paths", (64, 1000), (1280, 1000)),
                ("steps", (64, 100), (64, 1000)),
                ("steps", (1280, 100), (1280, 1000)),
            ):
                before, after = ours.get((mode, what, *small)), ours.get((mode, what, *large))
                if before and after:
                    size = large[0] / small[0] if along == "paths" else large[1] / small[1]
                    fixed = f"{small[1]} steps" if along == "paths" else f"{small[0]} paths"
                    slope = float(np.log(after / before) / np.log(size))
                    found.append(
                        {"mode": mode, "what": what, "along": along, "at": fixed, "slope": slope}
                    )
    return found


def memory(paths: int, steps: int) -> dict[str, float]:
    """Peak memory of a process that takes one gradient, in MiB, above that of two steps.

    From /proc: what `getrusage` tells a child includes the peak of its parent.
    """
    found = {}
    for name in peers.SYSTEMS:
        peaks = []
        for length in (2, steps):
            script = (
                "import sys; sys.path.insert(0, sys.argv[1]); import hybridsde as hs; "
                "hs.use_all_cores(); import peers; "
                f"peers.SYSTEMS[{name!r}]({paths}, {length})['gradient'](); "
                "lines = open('/proc/self/status').read().splitlines(); "
                "print(next(line.split()[1] for line in lines if line.startswith('VmHWM')))"
            )
            command = [sys.executable, "-W", "ignore", "-c", script, str(Path(__file__).parent)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            peaks.append(int(done.stdout.split()[-1]) / 1024)
        found[name] = peaks[1] - peaks[0]
        print(f"memory, {paths} paths, {steps} steps: {name} {found[name]:.0f} MiB", flush=True)
    return found


def lorenz_table(repetitions: int) -> dict:
    """The paper's Lorenz table: training and compilation."""
    script = Path(__file__).parent / "lorenz_table.py"
    command = [sys.executable, str(script), "--repetitions", str(repetitions)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    print(done.stdout, flush=True)
    return json.loads(done.stdout)


def machine() -> dict:
    """What the numbers depend on."""
    from importlib.metadata import version

    names = ("jax", "torch", "torchsde", "diffrax")
    return {
        "cores": jax.local_device_count(),
        "processor": _processor(),
        **{name: version(name) for name in names},
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def main() -> None:
    """Measure everything and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="23 steps only, no memory, no fits")
    options = parser.parse_args()
    steps = STEPS[:1] if options.quick else STEPS
    results: dict = {"machine": machine()}
    results["ratios"] = compare(steps, 2.0 if options.quick else 6.0)
    results["slopes"] = slopes(results["ratios"])
    if options.quick:
        print(page(results))
        return
    results["gpu"] = json.loads((ROOT / "benchmarks" / "gpu.json").read_text())
    write(results)
    results["memory_size"] = {"paths": 256, "steps": 1000}
    results["memory"] = memory(**results["memory_size"])
    results["lorenz"] = lorenz_table(50)
    write(results)


def write(results: dict) -> None:
    """What has been measured so far."""
    (ROOT / "benchmarks" / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    (ROOT / "docs" / "performance.md").write_text(page(results))


if __name__ == "__main__":
    main()
