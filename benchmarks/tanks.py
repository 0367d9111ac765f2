"""Two tanks, one above the other: the first record trained, the second simulated whole.

    HYBRIDSDE_DATA=… python benchmarks/tanks.py [--seeds 10] [--out docs/results/tanks.md]

Textbook equations with four learned parameters, the upper tank not measured, default settings
(Schoukens and Noël 2017). Beside the hybrid: the same equations alone, which begin at least
squares, and autoregressions with the input. RMSE in volts. The first four rows are given and do not
count, as in the benchmark; further columns: with fifty rows given, and one hour (225 rows) ahead
from eight origins along the record, each given all rows before it.
"""

import argparse
import os
import tempfile
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from interval_coverage import markdown_table

import hybridsde as hs
from hybridsde.baselines import VectorAutoregression
from hybridsde.project.project import Project

ROWS, DRAWS = 1024, 400
GIVEN, MORE_GIVEN = 4, 50
HOUR, ORIGINS = 225, 8
SETTINGS = """
[data]
files = "tanks.csv"
id = "record"
time = "t"
unit = "s"
inputs = ["u"]
states = ["y"]
hidden_states = ["x"]
test = ["val"]
bounds = { x = [0, inf], y = [0, 10] }

[physics]
equations = ["dx = -k1*sqrt(x) + k4*u", "dy = k2*sqrt(x) - k3*sqrt(y)"]

[physics.parameters]
k1 = { value = 0.05, learn = true, low = 0.001, high = 1.0 }
k2 = { value = 0.05, learn = true, low = 0.001, high = 1.0 }
k3 = { value = 0.05, learn = true, low = 0.001, high = 1.0 }
k4 = { value = 0.05, learn = true, low = 0.001, high = 1.0 }

[train]
seed = SEED
"""


def write_table(folder: Path) -> None:
    """Both records in one table."""
    source = Path(os.environ["HYBRIDSDE_DATA"]) / "cascaded_tanks" / "dataBenchmark.csv"
    raw = pd.read_csv(source)
    parts = [
        pd.DataFrame(
            {
                "record": name,
                "t": 4.0 * np.arange(ROWS),
                "u": raw[f"u{column}"][:ROWS],
                "y": raw[f"y{column}"][:ROWS],
            }
        )
        for name, column in (("est", "Est"), ("val", "Val"))
    ]
    pd.concat(parts).to_csv(folder / "tanks.csv", index=False)


def simulated(run: hs.Run, test: hs.Trajectories, given: int) -> tuple[np.ndarray, np.ndarray]:
    """Draws of everything after the given rows, and what was measured there."""
    times, inputs = test.times[:, given:], test.inputs[:, given:]
    found = run.forecast(test.start(given), times, inputs=inputs, draws=DRAWS)
    return found.observations.values[:, 0, :, 0], test.values[0, given:, 0]


def scores(run: hs.Run, test: hs.Trajectories) -> dict:
    """Of whole simulations after the given rows, and of forecasts one hour ahead."""
    draws, truth = simulated(run, test, GIVEN)
    low, high = np.quantile(draws, [0.05, 0.95], 0)
    more, after = simulated(run, test, MORE_GIVEN)
    ahead = run.backtest(test, horizon=HOUR, origins=ORIGINS, draws=DRAWS)
    hour = ahead[(ahead["obs"] == "overall") & (ahead["lead"] == 0)].iloc[0]
    return {
        "rmse": float(np.sqrt(np.mean((draws.mean(0) - truth) ** 2))),
        "nll": float(np.mean(hs.gaussian_nll(draws[..., None], np.zeros(1), truth[:, None]))),
        "crps": float(np.mean(hs.crps(draws, truth))),
        "coverage": float(np.mean((low <= truth) & (truth <= high))),
        "rmse, 50 given": float(np.sqrt(np.mean((more.mean(0) - after) ** 2))),
        "rmse, 1 h": float(hour["rmse"]),
        "crps, 1 h": float(hour["crps"]),
        "coverage, 1 h": float(hour["coverage90"]),
    }


def main() -> None:
    """All seeds, then the alternatives."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    warnings.simplefilter("ignore", hs.InputNotice)
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_table(folder)
        for seed in range(chosen.seeds):
            settings = folder / "tanks.toml"
            settings.write_text(SETTINGS.replace("SEED", str(seed)))
            began = time.perf_counter()
            project = Project.open(settings)
            assert project.test is not None
            run = project.fit()
            seconds = time.perf_counter() - began
            rows.append({"system": f"hybrid, seed {seed}", **scores(run, project.test)})
            rows[-1] |= {"kept epoch": run.metadata.kept_epoch, "seconds": seconds}
            print(rows[-1], flush=True)
        alone = replace(project.model, hidden=None)
        for title, spec in (
            ("physics alone", alone),
            ("ARX", VectorAutoregression(observed=("y",), inputs=("u",))),
        ):
            began = time.perf_counter()
            run = hs.fit(spec, project.split.train)
            seconds = time.perf_counter() - began
            rows.append({"system": title, **scores(run, project.test), "seconds": seconds})
            print(rows[-1], flush=True)
    table = pd.DataFrame(rows)
    hybrid = table[table["system"].str.startswith("hybrid")]
    summary = (
        f"Hybrid over {len(hybrid)} seeds: mean RMSE {hybrid['rmse'].mean():.3f} V, worst "
        f"{hybrid['rmse'].max():.3f}, mean NLL {hybrid['nll'].mean():.2f}, coverage "
        f"{hybrid['coverage'].min():.2f}–{hybrid['coverage'].max():.2f}."
    )
    print(summary)
    if chosen.out:
        chosen.out.write_text(f"{summary}\n\n{markdown_table(table)}\n")


if __name__ == "__main__":
    main()
