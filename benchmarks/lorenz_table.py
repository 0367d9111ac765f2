"""Training time of the paper's Lorenz table (450 fits, of which 400 are trained) on this machine.

    python benchmarks/lorenz_table.py [--repetitions 50] [--out FILE.json]

All rows of one method differ in their gate alone, so they are trained as one program. Each
program runs twice: the first run compiles, the second is timed.
"""

import argparse
import json
import time
from pathlib import Path

import hybridsde as hs

hs.use_all_cores()

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

from hybridsde.experiments import lorenz  # noqa: E402
from hybridsde.experiments.row import DRAWS, prepare, repetition_keys, score_many  # noqa: E402
from hybridsde.fit import train_many  # noqa: E402


def measure(repetitions: int) -> dict:
    """Seconds of training and compilation, and the test error as a check on the work done."""
    preset, protocol = lorenz.PRESETS["paper"], lorenz.PROTOCOLS["24"]
    keys, fit_keys, test_keys = repetition_keys(repetitions, 0)
    report = {"device": jax.devices()[0].device_kind, "devices": jax.local_device_count()}
    totals = {"training_s": 0.0, "compile_s": 0.0, "scoring_s": 0.0}
    for method in ("e-bayes", "e-pac-bayes"):
        rows = [known for known, how in lorenz.PUBLISHED if how == method]
        gates = [lorenz.SYSTEM.gate(lorenz.KNOWN[known]) for known in rows]
        parts = [prepare(lorenz.SYSTEM, protocol, preset.model, gate, keys) for gate in gates]
        train, test, models = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *parts)
        repeat = len(rows)
        chunk = len(rows) * repetitions if jax.default_backend() == "gpu" else repetitions
        times = []
        for _ in range(2):
            began = time.perf_counter()
            fitted = train_many(
                models,
                train,
                preset.objective(method),
                solver=preset.solver,
                training=preset.training,
                chunk=chunk,
                keys=jnp.concatenate([fit_keys] * repeat),
            )
            jax.block_until_ready(jax.tree.leaves(fitted.model))
            times.append(time.perf_counter() - began)
        began = time.perf_counter()
        keys_of_tests = jnp.concatenate([test_keys] * repeat)
        scores = score_many(fitted.model, preset.solver, test, DRAWS, keys_of_tests)
        mse = np.asarray(scores["mse"][:, -1]).reshape(repeat, repetitions).mean(1)
        totals["scoring_s"] += time.perf_counter() - began
        totals["training_s"] += times[1]
        totals["compile_s"] += times[0] - times[1]
        report[f"mse_{method}"] = dict(zip(rows, mse.round(3).tolist(), strict=True))
    return report | {name: round(value, 2) for name, value in totals.items()}


def main() -> None:
    """Measure, print, and write where asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=50)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    text = json.dumps(measure(options.repetitions), indent=2)
    print(text)
    if options.out:
        options.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
