"""What knowledge beside equations is worth: the same few recordings with it and without it.

    python benchmarks/knowledge.py [--repetitions 10] [--out docs/results/knowledge.md]

Four systems without any known equation, one or two recordings each, measured with noise. A
library and networks learn the whole drift, free and held to what is known; scores are the CRPS of
forecasts of ten new recordings from their first rows, beside the mean curve of the training
recordings and the true equations with the true noise. Errors are standard errors over repetitions,
each with recordings of its own.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from interval_coverage import markdown_table

import hybridsde as hs
from hybridsde.registry import SYSTEMS as OTHERS

NEW, FINE, PATHS = 10, 40, 200


@dataclass(frozen=True)
class System:
    """A drift of arrays, its noises, and what a user knows of it."""

    name: str
    states: tuple[str, ...]
    drift: Callable
    knowledge: hs.Knowledge
    start: tuple[tuple[float, float], ...]
    recordings: int
    interval: float
    rows: int
    g: float
    sigma: float
    driven: bool = False


SYSTEMS = (
    System("epidemic, population conserved", ("s", "i", "r"),
           lambda h, u: (-2 * h[0] * h[1], 2 * h[0] * h[1] - 0.5 * h[1], 0.5 * h[1]),
           hs.Knowledge(conserved=["s + i + r"]),
           ((0.7, 0.95), (0.05, 0.3), (0, 0.05)), 2, 0.3, 30, 0.005, 0.03),
    System("hardening spring, odd", ("x", "v"),
           lambda h, u: (h[1], -h[0] - 0.3 * h[1] - h[0] ** 3 + u),
           hs.Knowledge(odd={"x": ["x", "v", "u"], "v": ["x", "v", "u"]}),
           ((0.2, 1.5), (0.0, 0.5)), 1, 0.15, 50, 0.02, 0.05, True),
    System("two genes that repress each other", ("a", "b"),
           lambda h, u: (2 / (1 + np.maximum(h[1], 0) ** 3) - h[0],
                         2 / (1 + np.maximum(h[0], 0) ** 3) - h[1]),
           hs.Knowledge(effects={"a": {"a": "-", "b": "-"}, "b": {"a": "-", "b": "-"}}),
           ((0.0, 2.0), (0.0, 2.0)), 2, 0.2, 30, 0.02, 0.05),
    System("two rooms with a heater", ("p", "q"),
           lambda h, u: (0.8 * (h[1] - h[0]) - 0.2 * h[0] - 0.1 * h[0] * abs(h[0]) + u,
                         0.8 * (h[0] - h[1]) - 0.3 * h[1]),
           hs.Knowledge(effects={"p": {"q": "+", "u": "+"}, "q": {"p": "+"}}),
           ((0.5, 2.0), (0.5, 2.0)), 1, 0.25, 40, 0.02, 0.05, True),
)  # fmt: skip


def inputs_of(system: System, count: int, rng: np.random.Generator) -> np.ndarray:
    """Random switches that are held for a while: trajectory × row."""
    if not system.driven:
        return np.zeros((count, system.rows))
    levels = rng.uniform(-1, 1, (count, system.rows // 8 + 1))
    return np.repeat(levels, 8, 1)[:, : system.rows]


def paths(system: System, start: np.ndarray, u: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """States of the true system: trajectory × row × state, by fine Euler steps."""
    h, out, dt = start.T, [start], system.interval / FINE
    for row in range(system.rows - 1):
        for _ in range(FINE):
            noise = system.g * np.sqrt(dt) * rng.normal(size=h.shape)
            h = h + dt * np.stack(system.drift(h, u[:, row])) + noise
        out.append(h.T)
    return np.stack(out, 1)


def recordings(system: System, count: int, rng: np.random.Generator) -> hs.Trajectories:
    """Noisy measurements from random starts."""
    low, high = np.array(system.start).T
    start = rng.uniform(low, high, (count, len(low)))
    u = inputs_of(system, count, rng)
    truth = paths(system, start, u, rng)
    y = truth + system.sigma * rng.normal(size=truth.shape)
    given = {"inputs": list(u[..., None]), "input_names": ("u",)} if system.driven else {}
    times = [system.interval * np.arange(system.rows)] * count
    return hs.Trajectories.from_arrays(times, list(y), states=system.states, **given)


def floor(system: System, test: hs.Trajectories, rng: np.random.Generator) -> float:
    """CRPS of the true equations from the same noisy first rows, with the true noise."""
    u = test.inputs[..., 0] if system.driven else np.zeros(test.times.shape)
    crps = []
    for y, inputs in zip(test.values, u, strict=True):
        start = y[0] + system.sigma * rng.normal(size=(PATHS, len(system.states)))
        found = paths(system, start, np.repeat(inputs[None], PATHS, 0), rng)
        draws = found + system.sigma * rng.normal(size=found.shape)
        crps.append(hs.crps(draws[:, 1:], y[1:]).mean())
    return float(np.mean(crps))


def repetition(system: System, seed: int) -> list[dict]:
    """All rows of one draw of recordings."""
    rng = np.random.default_rng(seed)
    train = recordings(system, system.recordings, rng)
    test = recordings(system, NEW, rng)
    free = hs.HybridSDE(states=system.states, inputs=("u",) if system.driven else ())
    rows = []
    for learned in ("library", "network"):
        for told in (False, True):
            known = system.knowledge if told else hs.Knowledge()
            began = time.perf_counter()
            run = hs.fit(replace(free, learned=learned, knowledge=known), train, seed=seed)
            seconds = time.perf_counter() - began
            score = run.score(test).loc["overall"]
            name = f"{learned}, {'held to it' if told else 'free'}"
            rows.append({"how": name, "crps": score["crps"], "coverage": score["coverage90"],
                         "seconds": seconds})  # fmt: skip
    if system.recordings > 1:
        curve = hs.fit(OTHERS["mean-curve"](system.states, (), 1), train)
        rows.append({"how": "mean curve", "crps": curve.score(test).loc["overall", "crps"]})
    rows.append({"how": "true equations", "crps": floor(system, test, rng)})
    return [{"system": system.name, "seed": seed, **row} for row in rows]


def main() -> None:
    """All systems, one repetition after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--only", type=int, nargs="*", help="positions among the four")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--csv", type=Path, help="every repetition")
    parser.add_argument("--read", type=Path, nargs="*", default=[], help="tables of repetitions")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = [row for path in chosen.read for row in pd.read_csv(path).to_dict("records")]
    for number, system in enumerate(SYSTEMS):
        if chosen.only and number not in chosen.only:
            continue
        for seed in range(chosen.first, chosen.first + chosen.repetitions):
            rows += repetition(system, seed)
            if chosen.csv:
                pd.DataFrame(rows).to_csv(chosen.csv, index=False)
            print(pd.DataFrame(rows[-6:]).to_string(), flush=True)
    table = pd.DataFrame(rows)
    groups = table.groupby(["system", "how"], sort=False)
    found = groups[["crps", "coverage", "seconds"]].mean()
    found.insert(1, "± CRPS", groups["crps"].sem())
    print(found.to_string())
    wide = np.log(table.pivot_table(index=["system", "seed"], columns="how", values="crps"))
    for learned in ("library", "network"):
        apart = wide[f"{learned}, held to it"] - wide[f"{learned}, free"]
        paired = apart.groupby("system").agg(["mean", "sem"])
        print(f"{learned}: ln CRPS, held to it less free\n{paired.to_string()}")
    if chosen.out:
        told = f"{table['seed'].nunique()} repetitions; see `benchmarks/knowledge.py`.\n\n"
        chosen.out.write_text(told + markdown_table(found.reset_index()) + "\n")


if __name__ == "__main__":
    main()
