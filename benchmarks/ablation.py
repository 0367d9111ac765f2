"""What each ingredient of the recommended Lorenz settings contributes.

    python benchmarks/ablation.py [--repetitions 20] [--seed 1] [--out FILE.md]

Each line changes one thing against the recommended settings and gives the test MSE of the black
box and of the hybrid that knows the second equation. Recordings are those of `--seed`, which
should not be 0: those were used to choose the settings.
"""

import argparse
import time
from dataclasses import replace
from pathlib import Path

import hybridsde as hs

hs.use_all_cores()

import numpy as np  # noqa: E402

from hybridsde.paper import lorenz  # noqa: E402
from hybridsde.paper.preset import Preset  # noqa: E402
from hybridsde.paper.row import floors, run_row  # noqa: E402

BASE = lorenz.PRESETS["recommended"]


def with_model(**changes) -> Preset:
    """The recommended settings with another model."""
    return replace(BASE, model=replace(BASE.model, **changes))


def with_training(**changes) -> Preset:
    """The recommended settings with another training."""
    return replace(BASE, training=replace(BASE.training, **changes))


def whole_sequences() -> Preset:
    """As many paths per step and steps in all as the pieces give."""
    return replace(with_training(batch_size=2), window=None)


VARIANTS = {
    "recommended": BASE,
    "raw states and drift instead of standardised": with_model(standardise=False, last_layer=1.0),
    "constant learning rate 5e-3": with_training(schedule="constant"),
    "constant learning rate 1e-3": with_training(schedule="constant", learning_rate=1e-3),
    "no gradient clipping": with_training(clip=None),
    "100 epochs instead of 500": with_training(epochs=100),
    "whole sequences of 24 instead of pieces of 8": whole_sequences(),
    "two sub-steps": replace(BASE, solver=hs.EulerMaruyama(substeps=2)),
    "four sub-steps": replace(BASE, solver=hs.EulerMaruyama(substeps=4)),
    "weights redrawn at every step": with_model(weights="local"),
    "σ = 1 instead of 0.4": with_model(noise=1.0),
    "layers of 100 instead of 64": with_model(hidden=(100, 100)),
}


def measure(name: str, repetitions: int, seed: int) -> str:
    """A line of the table."""
    cells, began = [], time.perf_counter()
    for known in ((), ("y",)):
        scores = run_row(
            lorenz.SYSTEM,
            lorenz.PROTOCOLS["24"],
            VARIANTS[name],
            known,
            "e-pac-bayes",
            repetitions=repetitions,
            seed=seed,
        ).scores
        mse = np.asarray(scores["mse"][:, -1])
        error = mse.std(ddof=1) / np.sqrt(repetitions)
        cover = np.mean(scores["coverage90"][:, -1])
        cells.append(f"{mse.mean():.3g} ± {error:.2g} | {np.median(mse):.3g} | {cover:.2f}")
    return f"| {name} | {' | '.join(cells)} | {time.perf_counter() - began:.0f} |"


def main() -> None:
    """Print the table line by line, and write it where asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    oracle, _ = floors(lorenz.SYSTEM, lorenz.PROTOCOLS["24"], options.repetitions, options.seed)
    lines = [
        "| settings | black box MSE ± s.e. | median | 90 % covers "
        "| dy known MSE ± s.e. | median | 90 % covers | seconds |",
        "|---" * 8 + "|",
    ]
    print("\n".join(lines), flush=True)
    for name in VARIANTS:
        lines.append(measure(name, options.repetitions, options.seed))
        print(lines[-1], flush=True)
    lines.append(f"\n{options.repetitions} repetitions of seed {options.seed}; floor {oracle:.3g}.")
    print(lines[-1])
    if options.out:
        options.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
