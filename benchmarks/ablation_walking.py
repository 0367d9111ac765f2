"""What each ingredient of the recommended walking settings contributes, without the test set.

    HYBRIDSDE_DATA=… python benchmarks/ablation_walking.py [--repetitions 5] [--out FILE.md]

Four of the 16 training sequences are left out. Each line changes one thing against the recommended
settings, trains on the other twelve, and forecasts the four and the three validation sequences.
The last two validation sequences are slower than any training sequence, so neither group alone
says what to expect of a new one: `expected` weighs them as 16 to 3, as there are sequences.
"""

import argparse
import time
from dataclasses import replace
from pathlib import Path

import hybridsde as hs

hs.use_all_cores()

import numpy as np  # noqa: E402

from hybridsde.datasets.mocap import Walking, walking  # noqa: E402
from hybridsde.experiments import mocap  # noqa: E402
from hybridsde.experiments.mocap import NONE, WALKERS, Preset, Trainer  # noqa: E402

LEFT_OUT = np.array([1, 5, 9, 13])
BASE = mocap.RECOMMENDED
assert BASE.model.latent is not None
LATENT = BASE.model.latent


def with_model(**changes) -> Preset:
    """The recommended settings with another model."""
    return replace(BASE, model=replace(BASE.model, **changes))


def with_latent(**changes) -> Preset:
    """The recommended settings with another encoder or decoder."""
    return with_model(latent=replace(LATENT, **changes))


def third() -> Preset:
    """As many iterations as the paper."""
    return replace(BASE, iterations=mocap.PAPER.iterations)


PAC, BAYES = "e-pac-bayes", "e-bayes"
VARIANTS: dict[str, tuple[Preset, str, str]] = {
    "recommended": (BASE, NONE, PAC),
    "paper, last epoch": (replace(mocap.PAPER, choose_epoch=False), NONE, PAC),
    "paper, epoch chosen on validation": (mocap.PAPER, NONE, PAC),
    "no mirror images": (replace(BASE, mirrored=False), NONE, PAC),
    "no jitter": (with_latent(jitter=0.0), NONE, PAC),
    "jitter 0.2": (with_latent(jitter=0.2), NONE, PAC),
    "σ = 3, not learned": (with_model(noise=3.0), NONE, PAC),
    "G = 0.1": (with_model(diffusion=0.1), NONE, PAC),
    "G = 8": (with_model(diffusion=8.0), NONE, PAC),
    "3000 iterations": (third(), NONE, PAC),
    "epoch chosen on validation": (replace(BASE, choose_epoch=True), NONE, PAC),
    "weights held along a path": (with_model(weights="path"), NONE, PAC),
    "learned spread of the start": (with_latent(spread=0.3), NONE, PAC),
    "wider networks": (
        with_model(
            hidden=(100,), latent=replace(BASE.model.latent, encoder=(60, 60), decoder=(60, 60))
        ),
        NONE,
        PAC,
    ),
    "ten states": (with_model(states=tuple(f"z{k}" for k in range(10))), NONE, PAC),
    "Empirical Bayes": (BASE, NONE, BAYES),
    "42 walkers known": (BASE, WALKERS, PAC),
}


def measure(name: str, data: Walking, repetitions: int, seed: int) -> str:
    """A line of the table."""
    preset, known, method = VARIANTS[name]
    began = time.perf_counter()
    kept = np.setdiff1d(np.arange(len(data.train)), LEFT_OUT)
    parts = Walking(data.train.take(kept), data.validation, data.train.take(LEFT_OUT))
    trainer = Trainer(preset, parts, None, repetitions, seed, lambda _: ())
    fitted = trainer.fit(known, method, name)
    left, slow = (trainer.score(fitted, part) for part in (parts.test, parts.validation))
    mse = [np.asarray(one["mse"][:, -1]) for one in (left, slow)]
    cover = [np.asarray(one["coverage90"][:, -1]) for one in (left, slow)]
    counts = len(data.train), len(data.validation)
    both = np.average(mse, axis=0, weights=counts)
    error = both.std(ddof=1) / np.sqrt(repetitions)
    covered = np.average(cover, axis=0, weights=counts).mean()
    return (
        f"| {name} | {both.mean():.2f} ± {error:.2f} | {mse[0].mean():.2f} | {mse[1].mean():.1f} | "
        f"{covered:.2f} | {time.perf_counter() - began:.0f} |"
    )


def main() -> None:
    """Print the table line by line, and write it where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--seed", type=int, default=100)
    parser.add_argument("--only", nargs="*", default=list(VARIANTS))
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    lines = [
        "# Walking: what the recommended settings are made of",
        "",
        "MSE of forecasts after three frames, never of the test set. `python",
        "benchmarks/ablation_walking.py` trains on twelve sequences and forecasts four others and",
        "the three validation sequences, two of which are slower than any training sequence.",
        f"`expected` weighs the groups as 16 to 3. {given.repetitions} repetitions, ± one standard",
        "error.",
        "",
        "| | expected | left out | validation | 90 % coverage | seconds |",
        "|---|---|---|---|---|---|",
    ]
    print("\n".join(lines), flush=True)
    data = walking()
    for name in given.only:
        lines.append(measure(name, data, given.repetitions, given.seed))
        print(lines[-1], flush=True)
        if given.out:
            given.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
