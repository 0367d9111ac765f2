"""What was tried to forecast walking better, without the test set.

    HYBRIDSDE_DATA=… python benchmarks/ablation_walking.py [--repetitions 6] [--out FILE.md]

Each line changes one thing against the paper's settings (E-PAC-Bayes, nothing known), trains on
twelve of the 16 training sequences, and forecasts the four others and the three validation
sequences, which also choose the epoch. Two of those are slower than any training sequence.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import hybridsde as hs

hs.use_all_cores()

import numpy as np  # noqa: E402

from hybridsde import Latent, Positive  # noqa: E402
from hybridsde._devices import same_for_seeds  # noqa: E402
from hybridsde.forecast import evaluate_many  # noqa: E402
from hybridsde.paper import mocap_sde  # noqa: E402
from hybridsde.paper.amc import CHANNELS  # noqa: E402
from hybridsde.paper.mocap_data import Walking, walking  # noqa: E402
from hybridsde.paper.mocap_sde import DRAWS, NONE, WALKERS, Preset, Trainer  # noqa: E402
from hybridsde.paper.row import repetition_keys  # noqa: E402

LEFT_OUT = np.array([1, 5, 9, 13])
BASE = mocap_sde.PAPER
LATENT = Latent(context=3, encoder=(30, 30), decoder=(30, 30))
assert BASE.model.latent == LATENT


def with_model(**changes) -> Preset:
    """The paper's settings with another model."""
    return replace(BASE, model=replace(BASE.model, **changes))


def with_latent(**changes) -> Preset:
    """The paper's settings with another encoder or decoder."""
    return with_model(latent=replace(LATENT, **changes))


PAC, BAYES = "e-pac-bayes", "e-bayes"
LONGER = tuple((3 * steps, rows) for steps, rows in BASE.iterations)
VARIANTS: dict[str, tuple[Preset, str, str]] = {
    "paper": (BASE, NONE, PAC),
    "five models together": (replace(BASE, members=5), NONE, PAC),
    "σ of residuals": (replace(BASE, noise_of_residuals=True), NONE, PAC),
    "last epoch": (replace(BASE, choose_epoch=False), NONE, PAC),
    "last epoch, three times the steps": (
        replace(BASE, choose_epoch=False, iterations=LONGER),
        NONE,
        PAC,
    ),
    "decaying learning rate": (replace(BASE, schedule="cosine"), NONE, PAC),
    "mirror images": (replace(BASE, mirrored=True), NONE, PAC),
    "jitter 0.5": (with_latent(jitter=0.5), NONE, PAC),
    "learned spread of the start": (with_latent(spread=0.3), NONE, PAC),
    "σ = 3": (with_model(noise=3.0), NONE, PAC),
    "σ of every channel learned": (
        with_model(noise=Positive.of([2.0] * len(CHANNELS), floor=0.05)),
        NONE,
        PAC,
    ),
    "G = 2": (with_model(diffusion=2.0), NONE, PAC),
    "weights held along a path": (with_model(weights="path"), NONE, PAC),
    "wider networks": (
        with_model(hidden=(100,), latent=replace(LATENT, encoder=(60, 60), decoder=(60, 60))),
        NONE,
        PAC,
    ),
    "ten states": (with_model(states=tuple(f"z{k}" for k in range(10))), NONE, PAC),
    "Empirical Bayes": (BASE, NONE, BAYES),
    "42 walkers known": (BASE, WALKERS, PAC),
    "42 walkers known, learned part a tenth": (replace(BASE, hybrid_last_layer=0.1), WALKERS, PAC),
    "recommended": (mocap_sde.RECOMMENDED, NONE, PAC),
}


def measure(name: str, data: Walking, repetitions: int, seed: int) -> str:
    """A line of the table."""
    preset, known, method = VARIANTS[name]
    kept = np.setdiff1d(np.arange(len(data.train)), LEFT_OUT)
    parts = Walking(data.train.take(kept), data.validation, data.train.take(LEFT_OUT))
    trainer = Trainer(preset, parts, None, repetitions, seed, lambda _: ())
    forecasters = trainer.ensembles(trainer.fit(known, method, name).model)
    keys = repetition_keys(repetitions * preset.members, seed)[2][:: preset.members]
    left, slow = (
        evaluate_many(
            forecasters, same_for_seeds(preset.model.batch(part), repetitions), DRAWS, keys
        )
        for part in (parts.test, parts.validation)
    )
    mse = [np.asarray(one["mse"][:, -1]) for one in (left, slow)]
    cover = [np.asarray(one["coverage90"][:, -1]) for one in (left, slow)]
    errors = [one.std(ddof=1) / np.sqrt(repetitions) for one in mse]
    return (
        f"| {name} | {mse[1].mean():.1f} ± {errors[1]:.1f} | {cover[1].mean():.2f} | "
        f"{mse[0].mean():.1f} ± {errors[0]:.1f} | {cover[0].mean():.2f} |"
    )


def main() -> None:
    """Print the table line by line, and write it where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=6)
    parser.add_argument("--seed", type=int, default=100)
    parser.add_argument("--only", nargs="*", default=list(VARIANTS))
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    lines = [
        "# Walking: what was tried",
        "",
        "MSE of forecasts after three frames, never of the test set. `python",
        "benchmarks/ablation_walking.py` trains E-PAC-Bayes on twelve training sequences and",
        "forecasts the three validation sequences, which also choose the epoch, and the four that",
        "were left out. Each line changes one thing against the paper's settings.",
        f"{given.repetitions} repetitions, ± one standard error.",
        "",
        "| | validation MSE | 90 % coverage | left-out MSE | 90 % coverage |",
        "|---|---|---|---|---|",
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
