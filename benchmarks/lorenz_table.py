"""Training time of the paper's Lorenz table (450 fits, of which 400 are trained) on this machine.

    python benchmarks/lorenz_table.py [--repetitions 50] [--out FILE.json]

Rows differ in their gate and in the strength of the PAC term alone, so all are trained as one
program. It runs twice: the first run compiles, the second is timed.
"""

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path

import hybridsde as hs

hs.use_all_cores()

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

from hybridsde.forecast import evaluate_many  # noqa: E402
from hybridsde.hybrid import SDEForecaster  # noqa: E402
from hybridsde.paper import lorenz  # noqa: E402
from hybridsde.paper.preset import METHODS  # noqa: E402
from hybridsde.paper.row import DRAWS, prepare, repetition_keys  # noqa: E402


def measure(repetitions: int) -> dict:
    """Seconds of training and compilation, and the test error as a check on the work done."""
    preset, protocol = lorenz.PRESETS["paper"], lorenz.PROTOCOLS["24"]
    keys, fit_keys, test_keys = repetition_keys(repetitions, 0)
    report = {"device": jax.devices()[0].device_kind, "devices": jax.local_device_count()}
    rows = [row for row in lorenz.PUBLISHED if row[1] in METHODS]
    gates = [lorenz.SYSTEM.gate(lorenz.KNOWN[known]) for known, _ in rows]
    parts = [prepare(lorenz.SYSTEM, protocol, preset.model, gate, keys) for gate in gates]
    train, test, models = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *parts)
    strength = jnp.array([float(method == "e-pac-bayes") for _, method in rows])
    objective = replace(preset.objective("e-pac-bayes"), strength=jnp.repeat(strength, repetitions))
    times = []
    for _ in range(2):
        began = time.perf_counter()
        fitted = hs.train_many(
            models,
            train,
            objective,
            training=preset.training,
            chunk=len(rows) * repetitions if jax.default_backend() == "gpu" else repetitions,
            keys=jnp.concatenate([fit_keys] * len(rows)),
        )
        jax.block_until_ready(jax.tree.leaves(fitted.model))
        times.append(time.perf_counter() - began)
    began = time.perf_counter()
    keys_of_tests = jnp.concatenate([test_keys] * len(rows))
    forecasters = SDEForecaster(fitted.model, preset.solver)
    scores = evaluate_many(forecasters, test, DRAWS, keys_of_tests)
    mse = np.asarray(scores["mse"][:, -1]).reshape(len(rows), repetitions).mean(1)
    scoring = time.perf_counter() - began
    report["mse"] = {
        f"{known}, {method}": round(float(value), 3)
        for (known, method), value in zip(rows, mse, strict=True)
    }
    report["fits"] = len(rows) * repetitions
    seconds = {"training_s": times[1], "compile_s": times[0] - times[1], "scoring_s": scoring}
    return report | {name: round(value, 2) for name, value in seconds.items()}


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
