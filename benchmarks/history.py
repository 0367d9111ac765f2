"""What a history is worth: prey, two species over years, Lorenz seen in x alone, chemostats.

    HYBRIDSDE_DATA=… python benchmarks/history.py [--only prey lynx lorenz …] [--out FILE.md]

Default settings, beside the true equations and simple forecasters. CRPS of all columns together.
"""

import argparse
import os
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from interval_coverage import markdown_table

import hybridsde as hs
from hybridsde.baselines import VectorAutoregression
from hybridsde.datasets import lorenz, predator_prey
from hybridsde.project.project import Project
from hybridsde.registry import SYSTEMS

GIVEN, AHEAD = 20, 5


def prey(rows: list[dict]) -> None:
    """The next five rows from twenty, and from the last of them alone; 40 new recordings."""
    columns = hs.Columns(id="run", time="t", states=("x", "y"))
    train = hs.from_frame(predator_prey.recordings(24, seed=0, regular=True), columns)
    test = hs.from_frame(predator_prey.recordings(40, seed=1, regular=True), columns)
    known = hs.equations("dx = 2*x - x*y", "dy = -4*y + x*y")
    models = {
        "library": hs.HybridSDE(states=("x", "y"), physics=hs.equations("dx = 2*x - x*y")),
        "true equations": hs.HybridSDE(
            states=("x", "y"), physics=known, hidden=None, diffusion=(0.2, 0.3), noise=0.15
        ),
    }
    elapsed = predator_prey.INTERVAL * np.arange(1, AHEAD + 1)
    for name, model in models.items():
        few = {"training": hs.Training(epochs=1)} if model.hidden is None else {}
        run = hs.fit(model, train, **few)
        found = {}
        for title, first in (("twenty rows", 0), ("last row", GIVEN - 1)):
            history = test.cut([(n, first, GIVEN) for n in range(len(test))])
            drawn = run.forecast(history, elapsed=elapsed, draws=400)
            values = test.values[:, GIVEN : GIVEN + AHEAD]
            found[title] = np.asarray(hs.crps(drawn.observations.values, values)).mean((1, 2))
        gain = 1 - found["twenty rows"] / found["last row"].mean()
        rows.append(
            {
                "task": f"predator and prey, {AHEAD} rows ahead",
                "system": name,
                "score": found["twenty rows"].mean(),
                "from the last row": found["last row"].mean(),
                "gain %": 100 * gain.mean(),
                "± %": 100 * gain.std(ddof=1) / np.sqrt(len(gain)),
            }
        )
        print(rows[-1], flush=True)


def lynx(rows: list[dict]) -> None:
    """Trained on the first 14 years; three years ahead from every later year, all before given."""
    source = Path(os.environ["HYBRIDSDE_DATA"]) / "lynx_hare" / "hudson-bay-lynx-hare.csv"
    table = pd.read_csv(source, comment="#", skipinitialspace=True)
    values = table[["Hare", "Lynx"]].to_numpy(float)
    years = np.arange(len(values), dtype=float)
    whole = hs.Trajectories.from_arrays([years], [values], states=("hare", "lynx"))
    train, positive = whole.cut([(0, 0, 14)]), ("hare", "lynx")
    guesses = {"a": 0.5, "b": 0.03, "c": 0.8, "d": 0.03}
    learned = {name: hs.Bounded.of(value, 1e-3, 3.0) for name, value in guesses.items()}
    texts = ("dhare = a*hare - b*hare*lynx", "dlynx = -c*lynx + d*hare*lynx")
    equations = hs.equations(*texts, **learned)
    models = {
        "hybrid": hs.HybridSDE(states=positive, positive=positive, physics=equations),
        "log-VAR(1)": VectorAutoregression(observed=positive, positive=positive, order=1),
        "log-VAR(2)": VectorAutoregression(observed=positive, positive=positive, order=2),
    }
    for name, model in models.items():
        run, scores = hs.fit(model, train), []
        for last in range(13, len(values) - 3):
            given = whole.cut([(0, 0, last + 1)])
            drawn = run.forecast(given, steps=3, draws=400).observations.values[:, 0]
            scores.append(np.asarray(hs.crps(drawn, values[last + 1 : last + 4])).mean())
        error = np.std(scores, ddof=1) / np.sqrt(len(scores))
        rows.append(
            {
                "task": f"lynx and hare, 3 years ahead, {len(scores)} origins",
                "system": name,
                "score": np.mean(scores),
                "± of the score": error,
            }
        )
        print(rows[-1], flush=True)


def lorenz_x(rows: list[dict]) -> None:
    """Errors of smoothed y and z where only x is measured, and forecasts after 100 given rows."""
    step, length, rng = 2, 130, np.random.default_rng(0)
    window = slice(500, 500 + step * length, step)
    series = [lorenz.load(seed=100 + n).values[0][window] for n in range(30)]
    truth = np.stack(series)
    times = [0.01 * step * np.arange(length)] * 30
    seen = [one[:, :1] + 0.5 * rng.normal(size=(length, 1)) for one in truth]
    data = hs.Trajectories.from_arrays(times, seen, states=("x",))
    train, test = data.take(range(20)), data.take(range(20, 30))
    guess = {"zeta": hs.Bounded.of(9.0, 2.0, 30.0), "kappa": hs.Bounded.of(27.0, 5.0, 60.0)}
    guess |= {"rho": hs.Bounded.of(2.2, 0.3, 10.0)}
    texts = ("dx = zeta*(y - x)", "dy = x*(kappa - z) - y", "dz = x*y - rho*z")
    start = {"y": (-25.0, 25.0), "z": (0.0, 50.0)}
    same = {"states": ("x", "y", "z"), "observed": ("x",), "start": start}
    learned = hs.HybridSDE(**same, physics=hs.equations(*texts, **guess), learned="library")
    exact = hs.HybridSDE(
        **same,
        physics=hs.equations(*texts, **lorenz.TRUE),
        hidden=None,
        diffusion=lorenz.DIFFUSION,
        noise=0.5,
    )
    fits = {
        "learned from 20 recordings": (hs.fit(learned, train), "auto"),
        "true equations, particles": (
            hs.fit(exact, train, training=hs.Training(epochs=1)),
            "particles",
        ),
    }
    for name, (run, estimator) in fits.items():
        states = run.smooth(test, estimator=estimator, draws=96)
        error = (states.mean().transpose("trajectory", "time", "state").values - truth[20:])[:, 5:]
        given = test.cut([(n, 0, 100) for n in range(10)])
        drawn = run.forecast(given, elapsed=times[0][1:25], draws=200).observations.values
        ahead = np.asarray(hs.crps(drawn, truth[20:, 100:124, :1])).mean()
        rows.append(
            {
                "task": "Lorenz, x measured: RMSE of smoothed y, z; CRPS of x 24 rows ahead",
                "system": f"{name} ({states.estimator})",
                "score": ahead,
                "y": np.sqrt(np.mean(error[..., 1] ** 2)),
                "z": np.sqrt(np.mean(error[..., 2] ** 2)),
            }
        )
        print(rows[-1], flush=True)


def chemostat(rows: list[dict]) -> None:
    """The example with its defaults: 14 days ahead from every fortnight, all days before given."""
    settings = Path(__file__).parents[1] / "examples" / "chemostat.toml"
    project = Project.open(settings)
    train, validation, test = project.split.train, project.split.validation, project.split.test
    assert test is not None
    names, inputs = project.model.observations, tuple(project.model.inputs)

    def scored(name: str, run: hs.Run) -> None:
        table = run.backtest(test, horizon=14, draws=400)
        whole = table[(table["obs"] == "overall") & (table["lead"] == 0)].iloc[0]
        task = f"chemostat, 14 days ahead, {int(whole['origins'])} origins"
        found = {"score": whole["crps"], "coverage": whole["coverage90"]}
        rows.append({"task": task, "system": name, **found})
        print(rows[-1], run.metadata.choice, flush=True)

    for seed in range(5):
        run = hs.fit(project.model, train, training=project.training, validation=validation,
                     horizon=14, seed=seed)  # fmt: skip
        scored(f"hybrid, seed {seed}", run)
    for name in ("analogues", "climatology"):
        spec = SYSTEMS[name](names, names, 1)
        spec = replace(spec, inputs=inputs) if name == "analogues" else spec
        scored(name, hs.fit(spec, train))


TASKS = {"prey": prey, "lynx": lynx, "lorenz": lorenz_x, "chemostat": chemostat}


def main() -> None:
    """The tasks that are asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", nargs="*", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    rows: list[dict] = []
    for name in chosen.only:
        TASKS[name](rows)
    if chosen.out:
        chosen.out.write_text(markdown_table(pd.DataFrame(rows).fillna("")) + "\n")


if __name__ == "__main__":
    main()
