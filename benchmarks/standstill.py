"""Does anything stand still? LAPACK beside our own linear algebra, and fits on two devices.

    python benchmarks/standstill.py kernels [--seconds 20]
    python benchmarks/standstill.py fits [--count 200]

`kernels` runs batches of small matrices on two devices at once, each kind in a process of its own:
the kernels that JAX takes from LAPACK, and those of `hybridsde._linear`. `fits` fits stiff systems
with a hidden state, drawn by seeds, on two devices, and counts those that do not end: each has a
minute, in groups of ten to a process.
"""

import argparse
import subprocess
import sys
import time

MATRICES, ROWS, CALLS = 4096, 16, 200
KINDS = ("inverse", "cholesky", "solve_lower")
MINUTE = 60.0
GROUP = 10


def kernel(kind: str, ours: bool) -> None:
    """Some calls of a compiled program that works on matrices on two devices."""
    import jax

    jax.config.update("jax_num_cpu_devices", 2)
    import jax.numpy as jnp
    import jax.random as jr

    from hybridsde import _linear
    from hybridsde._devices import over_seeds

    lapack = {
        "inverse": jnp.linalg.inv,
        "cholesky": jnp.linalg.cholesky,
        "solve_lower": lambda a: jax.scipy.linalg.solve_triangular(a, a, lower=True),
    }
    own = {
        "inverse": _linear.inverse,
        "cholesky": _linear.cholesky,
        "solve_lower": lambda a: _linear.solve_lower(a, a),
    }
    a = jr.normal(jr.key(0), (2 * MATRICES, ROWS, ROWS))
    a = a @ a.swapaxes(1, 2) + jnp.eye(ROWS)
    function = (own if ours else lapack)[kind]
    program = jax.jit(lambda a: over_seeds(function, a))
    jax.block_until_ready(program(a))
    began = time.perf_counter()
    for _ in range(CALLS):
        jax.block_until_ready(program(a))
    print(f"{(time.perf_counter() - began) / CALLS * 1e3:.1f} ms a call")


def fits(first: int, count: int) -> None:
    """Fits of stiff chains whose fast state nobody measures, each with other numbers."""
    import warnings

    import numpy as np

    import hybridsde as hs
    from hybridsde.hybrid.numerics import Numerics

    hs.use_all_cores()
    warnings.simplefilter("ignore")
    for seed in range(first, first + count):
        rng = np.random.default_rng(seed)
        fast, slow = rng.uniform(50, 500), rng.uniform(0.3, 2.0)
        rows, series = int(rng.integers(20, 40)), int(rng.integers(2, 9))
        times = np.sort(rng.uniform(0, 6, (series, rows)), 1)
        a = np.exp(-slow * times) * rng.uniform(0.5, 2, (series, 1))
        values = (a + 0.05 * rng.normal(size=a.shape))[..., None]
        data = hs.Trajectories.from_arrays(list(times), list(values), states=["a"])
        model = hs.HybridSDE(
            states=["a", "b"],
            observed=["a"],
            physics=hs.equations(
                "da = -k*b", "db = fast*(a - b)", fast=fast, k=hs.Bounded.of(1.0, 0.01, 10)
            ),
            start={"b": [0.1, 3.0]},
            exact=["b"] if seed % 10 else ["a", "b"],
            learned="library",
            numerics=Numerics(scheme="Rosenbrock"),
        )
        began = time.perf_counter()
        run = hs.fit(model, data, seed=seed)
        finite = np.isfinite(run.score(data, draws=200).loc["overall", "crps"])
        print(f"{seed} {time.perf_counter() - began:.1f} {int(finite)}", flush=True)


def run(*arguments: str, seconds: float) -> str | None:
    """What this script prints in a process of its own; None where it does not end."""
    command = [sys.executable, __file__, *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return None
    return done.stdout.strip() or done.stderr.strip().splitlines()[-1]


def main() -> None:
    """Every case in a process of its own, with a limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["kernels", "fits", "kernel", "group"])
    parser.add_argument("which", nargs="*")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--count", type=int, default=200)
    chosen = parser.parse_args()
    if chosen.what == "kernel":
        kernel(chosen.which[0], chosen.which[1] == "own")
    elif chosen.what == "group":
        fits(*(int(one) for one in chosen.which))
    elif chosen.what == "kernels":
        for kind in KINDS:
            for whose in ("LAPACK", "own"):
                said = run("kernel", kind, whose, seconds=chosen.seconds)
                print(
                    f"{kind}, {whose}: {said or f'not ended in {chosen.seconds:g} s'}", flush=True
                )
    else:
        ended = finite = 0
        for first in range(0, chosen.count, GROUP):
            count = min(GROUP, chosen.count - first)
            said = run("group", str(first), str(count), seconds=count * MINUTE)
            rows = [line.split() for line in (said or "").splitlines()]
            rows = [row for row in rows if len(row) == 3]
            ended += len(rows)
            finite += sum(int(row[2]) for row in rows)
            if len(rows) < count:
                print(said or "stood still", flush=True)
            print(f"{first + count} begun, {ended} ended, {finite} with finite scores", flush=True)


if __name__ == "__main__":
    main()
