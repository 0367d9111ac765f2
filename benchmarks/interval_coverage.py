"""Do 90 % intervals hold 90 %? Simulated systems with known G and σ, fitted with the defaults.

    python benchmarks/interval_coverage.py [--only 0 5] [--seed 0] [--out docs/results/coverage.md]

Each system is simulated finely with its own G, measured with its own σ, and fitted as `hybridsde
fit` would: 8 or 24 recordings to learn from, validation included, none, half or all of its
equations known, parameters that are off. Scores are of 40 new recordings. G and σ are those of the
fitted model, as geometric means of found/true.
"""

import argparse
import re
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

import hybridsde as hs
from hybridsde.project.split import Split

NEW = 40
FINE = 40
"""Simulation steps in an interval."""


@dataclass(frozen=True)
class System:
    """A drift, its noises, and equations that a user might know of it."""

    name: str
    states: tuple[str, ...]
    drift: object
    g: tuple[float, ...]
    sigma: tuple[float, ...]
    start: tuple[tuple[float, float], ...]
    interval: float
    rows: int
    equations: tuple[str, ...]
    parameters: dict
    positive: tuple[str, ...] = ()
    driven: bool = False


def oscillator(h, u):
    """A damped spring."""
    x, v = h.T
    return np.stack([v, -4.0 * x - 0.3 * v], 1)


def duffing(h, u):
    """Two wells."""
    x, v = h.T
    return np.stack([v, x - x**3 - 0.4 * v], 1)


def prey(h, u):
    """Predator and prey."""
    a, b = h.T
    return np.stack([1.0 * a - 0.8 * a * b, -0.9 * b + 0.6 * a * b], 1)


def lorenz(h, u):
    """The butterfly."""
    x, y, z = h.T
    return np.stack([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z], 1)


def rotation(h, u):
    """A rotation whose damping grows with the radius."""
    x, y = h.T
    r = np.sqrt(x**2 + y**2)
    return np.stack([-2.0 * y - 0.2 * x * r, 2.0 * x - 0.2 * y * r], 1)


def driven(h, u):
    """A damped spring that is pushed."""
    x, v = h.T
    return np.stack([v, -2.0 * x - 0.5 * v + 1.5 * u[:, 0]], 1)


SYSTEMS = (
    System("oscillator", ("x", "v"), oscillator, (0.05, 0.05), (0.02, 0.02),
           ((-1, 1), (-1, 1)), 0.1, 60, ("dx = v", "dv = -k*x"), {"k": (3.0, 0.5, 10.0)}),
    System("duffing", ("x", "v"), duffing, (0.05, 0.1), (0.03, 0.03),
           ((-1.5, 1.5), (-1, 1)), 0.15, 60, ("dx = v", "dv = x - b*x^3 - c*v"),
           {"b": (0.7, 0.1, 3.0), "c": (0.2, 0.01, 2.0)}),
    System("predator and prey", ("a", "b"), prey, (0.05, 0.05), (0.05, 0.05),
           ((0.5, 2), (0.5, 2)), 0.25, 60, ("da = r*a - p*a*b", "db = -m*b + q*a*b"),
           {"r": (0.8, 0.1, 3.0), "p": (1.0, 0.1, 3.0), "m": (0.9, 0.1, 3.0),
            "q": (0.6, 0.1, 3.0)}),
    System("Lorenz", ("x", "y", "z"), lorenz, (0.5, 0.5, 0.5), (0.3, 0.3, 0.3),
           ((-10, 10), (-10, 10), (15, 35)), 0.04, 40,
           ("dx = s*(y - x)", "dy = x*(28 - z) - y", "dz = x*y - b*z"),
           {"s": (9.0, 1.0, 20.0), "b": (3.0, 0.5, 6.0)}),
    System("damped rotation", ("x", "y"), rotation, (0.1, 0.1), (0.03, 0.03),
           ((-2, 2), (-2, 2)), 0.1, 50, ("dx = -w*y", "dy = w*x"), {"w": (1.8, 0.5, 4.0)}),
    System("driven", ("x", "v"), driven, (0.03, 0.08), (0.03, 0.05),
           ((-1, 1), (-1, 1)), 0.15, 60, ("dx = v", "dv = -k*x + 1.5*u"),
           {"k": (1.5, 0.2, 6.0)}, driven=True),
)  # fmt: skip
CASES = tuple(
    (system, count, known)
    for system in SYSTEMS
    for count in (8, 24)
    for known in ("none", "half", "all")
)
CHOSEN = (0, 1, 2, 3, 4, 5, 6, 7, 10, 12, 13, 16, 17, 19, 21, 24, 25, 28, 31, 34)
"""Twenty of them: all of the first system, and some of each other one."""


def simulate(system: System, count: int, seed: int) -> hs.Trajectories:
    """Recordings by fine Euler–Maruyama steps in double precision, measured with noise."""
    rng = np.random.default_rng(seed)
    low, high = np.array(system.start).T
    h = rng.uniform(low, high, (count, len(low)))
    dt = system.interval / FINE
    rows, inputs = [h], []
    u = np.zeros((count, 1))
    for _ in range(system.rows - 1):
        change = rng.random((count, 1)) < 0.1
        u = np.where(change, rng.uniform(-1, 1, (count, 1)), u) if system.driven else u
        inputs.append(u)
        for _ in range(FINE):
            noise = np.array(system.g) * np.sqrt(dt) * rng.normal(size=h.shape)
            h = h + dt * system.drift(h, u) + noise
        rows.append(h)
    inputs.append(u)
    y = np.stack(rows, 1)
    y = y + np.array(system.sigma) * rng.normal(size=y.shape)
    times = system.interval * np.arange(system.rows)
    return hs.Trajectories.from_arrays(
        [times] * count,
        list(y),
        states=system.states,
        inputs=list(np.stack(inputs, 1)) if system.driven else None,
        input_names=("u",) if system.driven else None,
    )


def declared(system: System, known: str) -> hs.HybridSDE:
    """The model that knows none, half or all of the equations, with parameters that are off."""
    kept = {"none": 0, "half": 1, "all": len(system.equations)}[known]
    texts = system.equations[:kept]
    used = {
        name: hs.Bounded.of(value, low, high)
        for name, (value, low, high) in system.parameters.items()
        if any(name in re.findall(r"\w+", text.split("=", 1)[1]) for text in texts)
    }
    physics = hs.equations(*texts, **used) if texts else None
    given = {} if physics is None else {"physics": physics}
    return hs.HybridSDE(states=system.states, inputs=("u",) if system.driven else (), **given)


def run_case(system: System, count: int, known: str, seed: int) -> dict:
    """One fit and its scores."""
    began = time.perf_counter()
    split = Split.of(simulate(system, count, seed), 0, seed=seed)
    run = hs.fit(declared(system, known), split.train, validation=split.validation, seed=seed)
    seconds = time.perf_counter() - began
    test = simulate(system, NEW, seed + 1000)
    scores = run.score(test)
    model = run.forecaster.model
    g, sigma = (np.asarray(one) for one in (model.diffusion.sd.value, model.observation.sd.value))
    return {
        "system": system.name,
        "recordings": count,
        "known": known,
        "coverage": float(scores.loc["overall", "coverage90"]),
        "crps": float(scores.loc["overall", "crps"]),
        "rmse": float(scores.loc["overall", "rmse"]),
        "G found/true": float(np.exp(np.mean(np.log(g / np.array(system.g))))),
        "σ found/true": float(np.exp(np.mean(np.log(sigma / np.array(system.sigma))))),
        "calibration": run.metadata.calibration,
        "diverged": run.diverged,
        "seconds": seconds,
    }


def markdown_table(table: pd.DataFrame) -> str:
    """Columns side by side, numbers to three digits; a dash where there is none."""
    blank = table.isna()
    shown = table.map(lambda cell: f"{cell:.3g}" if isinstance(cell, float) else str(cell))
    shown = shown.mask(blank, "–")
    lines = [list(table.columns), ["---"] * len(table.columns), *shown.to_numpy().tolist()]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    """Run the cases, print them as they come, and write a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", type=int, nargs="*", help="positions among the twenty")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    rows = []
    for position in chosen.only if chosen.only is not None else range(len(CHOSEN)):
        rows.append(run_case(*CASES[CHOSEN[position]], seed=chosen.seed))
        print(
            {k: round(v, 4) if isinstance(v, float) else v for k, v in rows[-1].items()}, flush=True
        )
    table = pd.DataFrame(rows).drop(columns="calibration")
    held = table["coverage"].between(0.85, 0.95).sum()
    wide = table["coverage"].between(0.80, 0.97).sum()
    spreads = [table[name].between(0.75, 1.25).sum() for name in ("G found/true", "σ found/true")]
    summary = (
        f"Coverage 85–95 % in {held} of {len(table)}, 80–97 % in {wide}; G within 25 % in "
        f"{spreads[0]}, σ in {spreads[1]}."
    )
    print(summary)
    if chosen.out:
        chosen.out.write_text(f"{summary}\n\n{markdown_table(table)}\n")


if __name__ == "__main__":
    main()
