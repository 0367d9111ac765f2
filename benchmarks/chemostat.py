"""Two weeks ahead in real chemostats, each forecast given the whole record up to then.

    HYBRIDSDE_DATA=… python benchmarks/chemostat.py [--seeds 5] [--origins N]
        [--out docs/results/chemostat.md] [--left-out 2 4 6]

The settings of `examples/chemostat.toml`, fitted to the development recordings (Blasius et al.
2020), and rolling origins along the test recordings, fourteen rows ahead. CRPS of algae and
rotifers, and their mean. Beside it, with the same histories: analogues of the same columns and of
algae and rotifers alone, persistence and climatology. With `--left-out`, development recordings by
name are left out in turn and forecast instead: that is how settings were chosen.
"""

import argparse
import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from interval_coverage import markdown_table

import hybridsde as hs
from hybridsde.project.project import Project
from hybridsde.registry import SYSTEMS

SETTINGS = Path(__file__).parents[1] / "examples" / "chemostat.toml"
DAYS = 14
SCORED = ["algae", "rotifers"]
OTHERS = ("analogues", "persistence", "climatology")


def scores(run: hs.Run, test: hs.Trajectories, origins: int | None) -> dict:
    """Of algae and rotifers, over all origins and days."""
    found = run.backtest(test, horizon=DAYS, origins=origins)
    whole = found[found["lead"] == 0].set_index("obs").loc[SCORED]
    return {
        **{f"crps, {name}": float(whole.loc[name, "crps"]) for name in SCORED},
        "crps": float(whole["crps"].mean()),
        "coverage": float(whole["coverage90"].mean()),
        "origins": int(found["origins"].iloc[0]),
    }


def measured(data: hs.Trajectories, names: list[str]) -> hs.Trajectories:
    """Some columns alone."""
    columns = [data.states.index(name) for name in names]
    rows = list(enumerate(map(int, data.lengths)))
    return hs.Trajectories.from_arrays(
        [data.times[k, :n] for k, n in rows],
        [data.values[k, :n][:, columns] for k, n in rows],
        observed=[data.observed[k, :n][:, columns] for k, n in rows],
        states=tuple(names),
        inputs=[data.inputs[k, :n] for k, n in rows],
        input_names=data.input_names,
        ids=data.ids,
    )


def others(model: hs.HybridSDE, train: hs.Trajectories) -> Iterator[tuple[str, hs.Run, list[str]]]:
    """Simple forecasters, and the columns that they see."""
    for names in (list(model.observations), SCORED):
        data = measured(train, names)
        positive = tuple(name for name in names if name in model.positive)
        for title in OTHERS:
            spec = SYSTEMS[title](tuple(names), positive, 1)
            spec = replace(spec, inputs=tuple(model.inputs))
            yield f"{title} of {', '.join(names)}", hs.fit(spec, data), names


def rows_of(
    model: hs.HybridSDE,
    train: hs.Trajectories,
    validation: hs.Trajectories | None,
    test: hs.Trajectories,
    seeds: int,
    origins: int | None,
) -> Iterator[dict]:
    """The hybrid with every seed, then the others."""
    for seed in range(seeds):
        began = time.perf_counter()
        run = hs.fit(model, train, validation=validation, seed=seed, horizon=DAYS)
        seconds = time.perf_counter() - began
        yield {"system": f"hybrid, seed {seed}", **scores(run, test, origins), "seconds": seconds}
    whole = train if validation is None else train.join(validation)
    for name, run, columns in others(model, whole):
        yield {"system": name, **scores(run, measured(test, columns), origins)}


def main() -> None:
    """Test recordings, or development recordings that are left out in turn."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--origins", type=int, help="along each recording; one in 14 rows")
    parser.add_argument("--left-out", nargs="*", default=[], help="development recordings by name")
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    project = Project.open(SETTINGS)
    model, split = project.model, project.split
    assert isinstance(model, hs.HybridSDE)
    assert split.test is not None
    rows = []
    if chosen.left_out:
        known = split.train if split.validation is None else split.train.join(split.validation)
        for name in chosen.left_out:
            away = np.array([one == name for one in known.ids])
            for row in rows_of(
                model, known.take(~away), None, known.take(away), chosen.seeds, chosen.origins
            ):
                rows.append({"left out": name, **row})
                print(rows[-1], flush=True)
    else:
        parts = (split.train, split.validation, split.test)
        for row in rows_of(model, *parts, chosen.seeds, chosen.origins):
            rows.append(row)
            print(row, flush=True)
    table = pd.DataFrame(rows)
    ours = table[table["system"].str.startswith("hybrid")]
    crps, inside = (np.asarray(ours[name], float) for name in ("crps", "coverage"))
    error = crps.std(ddof=1) / np.sqrt(len(crps)) if len(crps) > 1 else np.nan
    summary = (
        f"Hybrid over {len(ours)} fits: mean CRPS {crps.mean():.3g} ± {error:.2g}, coverage "
        f"{inside.min(initial=1.0):.2f}–{inside.max(initial=0.0):.2f}."
    )
    print(summary)
    if chosen.out:
        chosen.out.write_text(f"{summary}\n\n{markdown_table(table)}\n")


if __name__ == "__main__":
    main()
