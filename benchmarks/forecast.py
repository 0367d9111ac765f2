"""A million paths of a hundred steps: time, and the share of what the machine could do.

    python benchmarks/forecast.py [--paths 1000000] [--steps 100] [--flops F] [--bytes B]

`--flops` and `--bytes` are the machine's peak arithmetic and memory bandwidth per second; for an
H200, 6.7e13 (single precision) and 4.8e12. Without them only times are printed. The
arithmetic counted is the products of the network; the traffic counted is every activation written
once and read once, which is what a program that keeps nothing on the chip must move.
"""

import argparse
import json
import statistics
import time
from itertools import pairwise

import hybridsde as hs

hs.use_all_cores()

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import jax.random as jr  # noqa: E402

from hybridsde.data import Batch  # noqa: E402
from hybridsde.datasets import lorenz  # noqa: E402
from hybridsde.simulate import simulate  # noqa: E402

WIDTHS = (3, 100, 100, 3)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--paths", type=int, default=1_000_000)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--weights", type=int, default=1000, help="draws of the weights")
    parser.add_argument("--flops", type=float, help="peak, per second")
    parser.add_argument("--bytes", type=float, help="peak, per second")
    options = parser.parse_args()
    recording = lorenz.load(seed=0).windows(options.steps + 1).take([0])
    batch = Batch.of(recording)
    hybrid = hs.HybridSDE(
        states=lorenz.STATES,
        physics=lorenz.true_physics(),
        diffusion=lorenz.DIFFUSION,
        noise=1.0,
        hidden=WIDTHS[1:-1],
        start="first",
    )
    model = hybrid.init(batch, key=jr.key(0))
    each = options.paths // options.weights

    @jax.jit
    def run(key):
        paths = simulate(
            model, hs.EulerMaruyama(), batch, samples=options.weights, paths=each, key=key
        )
        return jnp.quantile(paths.states[:, 0, -1], jnp.array([0.05, 0.5, 0.95]), axis=0), paths

    began = time.perf_counter()
    jax.block_until_ready(run(jr.key(0)))
    first = time.perf_counter() - began
    seconds = []
    for seed in range(5):
        began = time.perf_counter()
        jax.block_until_ready(run(jr.key(seed)))
        seconds.append(time.perf_counter() - began)
    median = statistics.median(seconds)
    steps = each * options.weights * options.steps
    flops = steps * 2 * sum(a * b for a, b in pairwise(WIDTHS))
    moved = steps * 4 * 2 * sum(WIDTHS)
    report = {
        "device": jax.devices()[0].device_kind,
        "paths": each * options.weights,
        "steps": options.steps,
        "compile_s": round(first - median, 2),
        "run_s": round(median, 4),
        "path_steps_per_s": f"{steps / median:.3g}",
    }
    if options.flops:
        report["share_of_arithmetic"] = round(flops / median / options.flops, 3)
    if options.bytes:
        report["share_of_bandwidth"] = round(moved / median / options.bytes, 3)
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
