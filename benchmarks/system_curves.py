"""What knowledge is worth on other systems, at few and many recordings, and where networks win.

    python benchmarks/system_curves.py [--only predators pendulum friction] [--sizes 2 4 8 24]
        [--repetitions 10] [--networks 4] [--out docs/results/system-curves.md]

- predators: Lotka–Volterra. Known: the equation of the prey, or both, parameters off.
- pendulum: driven, with friction. Known: all but the friction, the frequency off.
- friction: a spring with dry friction, −1.2 tanh(8 v), which no library holds. Known: all but it.

Irregular times, a tenth of the values missing, ten new recordings to forecast from their first row.
CRPS, medians over repetitions: a library that knows nothing, a library beside what is known,
networks beside it, and networks for what a library leaves (in the first `--networks` repetitions),
what is known alone with parameters learned, the mean curve of the training recordings, and the true
equations with the true noise. `above`: the hybrid with a library against black box and physics
alone, the mean of paired differences in standard errors; above two it would be worse.
"""

import argparse
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from interval_coverage import markdown_table
from learning_curves import in_errors
from robustness import NEW, System, declared, floor, record

import hybridsde as hs
from hybridsde.registry import SYSTEMS as OTHERS

FIRST = 300
"""The first seed."""
CASES = {
    "predators": (
        System("predators", ("a", "b"),
               lambda a, b, u: (1.1 * a - 0.6 * a * b, 0.4 * a * b - 0.9 * b),
               ("da = p*a - 0.6*a*b", "db = 0.4*a*b - m*b"), "",
               {"p": (1.4, 0.2, 4), "m": (0.7, 0.1, 3)}, (0.08, 0.08), (0.05, 0.05),
               ((1, 4), (0.8, 3)), 0.3, 40, {}, ("a", "b")),
        (("da = p*a - 0.6*a*b",), ("da = p*a - 0.6*a*b", "db = 0.4*a*b - m*b")),
    ),
    "pendulum": (
        System("pendulum", ("q", "v"),
               lambda q, v, u: (v, -6 * np.sin(q) - 0.5 * v + 2 * u),
               ("dq = v", "dv = -w*sin(q) + 2*u"), "",
               {"w": (4.5, 1, 20)}, (0.02, 0.1), (0.03, 0.06), ((-2, 2), (-2, 2)), 0.1, 50,
               {}, (), {}, True),
        (("dq = v", "dv = -w*sin(q) + 2*u"),),
    ),
    "friction": (
        System("friction", ("x", "v"),
               lambda x, v, u: (v, -4 * x - 1.2 * np.tanh(8 * v) + 3 * u),
               ("dx = v", "dv = -k*x + 3*u"), "",
               {"k": (3, 0.5, 10)}, (0.02, 0.05), (0.02, 0.04), ((-2, 2), (-2, 2)), 0.12, 50,
               {}, (), {}, True),
        (("dx = v", "dv = -k*x + 3*u"),),
    ),
}  # fmt: skip
"""A system, and what is known of it in each row."""


def knowing(system: System, texts: tuple[str, ...], **more) -> hs.HybridSDE:
    """A hybrid that is given these equations."""
    if not texts:
        return replace(declared(system, wrong=False), physics=hs.NoPhysics(), **more)
    used = {
        name: hs.Bounded.of(*ends)
        for name, ends in system.parameters.items()
        if any(name in text.split("=")[1] for text in texts)
    }
    return replace(declared(system, wrong=False), physics=hs.equations(*texts, **used), **more)


def one(name: str, size: int, repetition: int, network: bool) -> list[dict]:
    """One set of recordings, every row of the system."""
    system, rows = CASES[name]
    rng = np.random.default_rng([FIRST + repetition, size, list(CASES).index(name)])
    train, test = record(system, size, rng).data, record(system, NEW, rng)
    relative = tuple(each for each in system.measured if each in system.positive)
    curve = replace(OTHERS["mean-curve"](system.measured, relative, 1), inputs=train.input_names)

    def crps(spec) -> float:
        return float(hs.fit(spec, train).score(test.data).loc["overall", "crps"])

    same = {
        "black box": crps(knowing(system, (), learned="library")),
        "mean curve": crps(curve),
        "true equations": floor(system, test, rng),
    }
    found = []
    for texts in rows:
        row = {"system": name, "known": f"{len(texts)} of {len(system.states)} equations"}
        row |= {"recordings": size, "repetition": repetition, **same}
        row["hybrid, library"] = crps(knowing(system, texts, learned="library"))
        row["physics alone"] = np.nan
        if len(texts) == len(system.states):
            row["physics alone"] = crps(knowing(system, texts, hidden=None))
        if network:
            row["hybrid, networks"] = crps(knowing(system, texts, learned="network"))
            row["hybrid, both"] = crps(knowing(system, texts, learned=("library", "network")))
        found.append(row)
    return found


def summary(frame: pd.DataFrame) -> pd.DataFrame:
    """Medians over repetitions."""
    rows = []
    for (system, size, known), group in frame.groupby(["system", "recordings", "known"]):
        row = {"system": system, "recordings": size, "known": known}
        row["repetitions"] = len(group)
        ours = ["hybrid, library", "hybrid, networks", "hybrid, both"]
        for name in ("black box", *ours, "physics alone", "mean curve", "true equations"):
            if name in group:
                row[name] = group[name].median()
        ours = group["hybrid, library"]
        row["above black box"] = in_errors(ours, group["black box"])
        row["above physics"] = in_errors(ours, group["physics alone"])
        if "hybrid, networks" in group:
            both = group.dropna(subset=["hybrid, networks"])
            row["networks above library"] = in_errors(
                both["hybrid, networks"], both["hybrid, library"]
            )
        rows.append(row)
    return pd.DataFrame(rows)


def main() -> None:
    """Run, print as it comes, and write a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", nargs="*", default=list(CASES), choices=list(CASES))
    parser.add_argument("--sizes", type=int, nargs="*", default=[2, 4, 8, 24])
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="the first repetition")
    parser.add_argument("--networks", type=int, default=4)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--csv", type=Path, help="every repetition")
    parser.add_argument("--read", type=Path, nargs="*", default=[], help="such tables, first")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = [row for path in chosen.read for row in pd.read_csv(path).to_dict("records")]
    for name in chosen.only:
        for size in chosen.sizes:
            for number in range(chosen.first, chosen.first + chosen.repetitions):
                rows += one(name, size, number, name == "friction" and number < chosen.networks)
                frame = pd.DataFrame(rows)
                if chosen.csv:
                    frame.to_csv(chosen.csv, index=False)
            shown = frame[(frame["system"] == name) & (frame["recordings"] == size)]
            print(summary(shown).to_string(index=False), flush=True)
    if chosen.out:
        about = (__doc__ or "").strip()
        table = markdown_table(summary(pd.DataFrame(rows)))
        text = f"# Learning curves, other systems\n\n{about}"
        chosen.out.write_text(f"{text}\n\n{table}\n")


if __name__ == "__main__":
    main()
