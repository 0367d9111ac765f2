"""What should be learned beside known equations: a library, a Gaussian process, or both?

    python benchmarks/remainders.py [--only friction] [--sizes 2 3 5] [--repetitions 4]
        [--out docs/results/remainders.md] [--csv FILE] [--read FILE …]

The systems of `system_curves.py`, all equations known but for what is missing, few recordings at
irregular times with a tenth of the values missing, ten new recordings to forecast from their first
row. CRPS, medians over repetitions: a library of terms, a Gaussian process alone, a library with a
process for what it leaves, what `fit` chooses by default, the known equations alone with parameters
learned, and the true equations with the true noise. `process above library`: the mean of paired
differences of ln CRPS with its standard error; below zero the process is better.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from interval_coverage import markdown_table
from robustness import NEW, floor, record
from system_curves import CASES, knowing

import hybridsde as hs

FIRST = 600
"""The first seed."""
KINDS = {
    "library": "library",
    "process": "process",
    "library and process": ("library", "process"),
    "default": "auto",
}


def one(name: str, size: int, repetition: int) -> dict:
    """One set of recordings, every remainder."""
    system, rows = CASES[name]
    rng = np.random.default_rng([FIRST + repetition, size, list(CASES).index(name)])
    train, test = record(system, size, rng).data, record(system, NEW, rng)
    row = {"system": name, "recordings": size, "repetition": repetition}
    for title, learned in KINDS.items():
        run = hs.fit(knowing(system, rows[-1], learned=learned), train, seed=repetition)
        row[title] = float(run.score(test.data).loc["overall", "crps"])
        if title == "default":
            row["chosen"] = (run.metadata.choice or "library").split(":")[0]
    alone = hs.fit(knowing(system, rows[-1], hidden=None), train)
    row["physics alone"] = float(alone.score(test.data).loc["overall", "crps"])
    row["true equations"] = floor(system, test, rng)
    return row


def summary(frame: pd.DataFrame) -> pd.DataFrame:
    """Medians over repetitions."""
    rows = []
    for (system, size), group in frame.groupby(["system", "recordings"], sort=False):
        row = {"system": system, "recordings": size, "repetitions": len(group)}
        row |= {name: group[name].median() for name in (*KINDS, "physics alone", "true equations")}
        apart = np.log(group["process"]) - np.log(group["library"])
        row["process above library"] = f"{apart.mean():+.2f} ± {apart.sem():.2f}"
        names = group["chosen"].value_counts()
        row["default chose"] = ", ".join(f"{name} {count}" for name, count in names.items())
        rows.append(row)
    return pd.DataFrame(rows)


def main() -> None:
    """Run, print as it comes, and write a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", nargs="*", default=list(CASES), choices=list(CASES))
    parser.add_argument("--sizes", type=int, nargs="*", default=[2, 3, 5])
    parser.add_argument("--repetitions", type=int, default=4)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--csv", type=Path, help="every repetition")
    parser.add_argument("--read", type=Path, nargs="*", default=[], help="such tables, first")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = [row for path in chosen.read for row in pd.read_csv(path).to_dict("records")]
    for number in range(chosen.repetitions):
        for name in chosen.only:
            for size in chosen.sizes:
                rows.append(one(name, size, number))
                print(rows[-1], flush=True)
                if chosen.csv:
                    pd.DataFrame(rows).to_csv(chosen.csv, index=False)
    found = summary(pd.DataFrame(rows))
    print(found.to_string(index=False))
    if chosen.out:
        about = (__doc__ or "").strip()
        chosen.out.write_text(f"# Remainders\n\n{about}\n\n{markdown_table(found)}\n")


if __name__ == "__main__":
    main()
