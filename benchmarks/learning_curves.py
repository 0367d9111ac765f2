"""What knowledge is worth with few recordings: a library of terms against simpler regressions.

    python benchmarks/learning_curves.py [--repetitions 20] [--sizes 2 3 5 10 20 40]
        [--rows none x y z all] [--out docs/results/learning-curves.md] [--csv FILE]
        [--read FILE …] [--recovery FILE] [--figures FOLDER]

Lorenz, the paper's protocol: sequences of 24 rows 0.01 apart, G = 1; the mean squared error of 24
steps from the first row of 20 new sequences. Each known parameter is off by a normal error of one.
Libraries hold all products of x, y, z up to degree three, and sines and cosines: 26 functions for
each equation. Beside ours:

- ARD, STLSQ: the same functions regressed on increments (y_{k+1} − y_k)/Δt, less what is known, by
  scikit-learn's ARDRegression and by pysindy's sequentially thresholded least squares (where they
  are installed: pip install pysindy);
- physics alone with the wrong parameters, and the oracle: the true equations.

`true` and `false` are terms that `hybridsde discover` writes down: seven are true where nothing is
known; `all seven` and `one false at most` count repetitions.
`inside` is the share of its 90 % intervals of true coefficients that hold the truth, where the term
was found and nothing is known; `coverage` that of forecasts (of the oracle, in brackets). `above`
compares a hybrid with the library that knows nothing, and with the known equations alone: the mean
of paired differences of the error, in standard errors; above two it would be worse.
"""

import argparse
import time
from dataclasses import replace
from pathlib import Path

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pandas as pd
from interval_coverage import markdown_table

from hybridsde._parameters import Fixed
from hybridsde.forecast import evaluate
from hybridsde.hybrid import HybridSDE, SDEForecaster
from hybridsde.hybrid.discovered import library_coefficients
from hybridsde.hybrid.sparse import fit_sparse
from hybridsde.model.diffusion import constant_diffusion
from hybridsde.model.library import BayesianLibrary
from hybridsde.paper.figures import knowledge
from hybridsde.paper.learning_curve import ROWS, equivalents
from hybridsde.paper.lorenz import KNOWN, PROTOCOLS, SYSTEM
from hybridsde.paper.system import recording
from hybridsde.report.figures import save
from hybridsde.simulate import Heun

DRAWS = 100
FIRST = 7000
"""The first seed: recordings that nothing was chosen on."""
SOLVER = Heun(substeps=2)
TRUE = {
    ("x", "x"): -10.0, ("y", "x"): 10.0, ("x", "y"): 28.0, ("x*z", "y"): -1.0, ("y", "y"): -1.0,
    ("x*y", "z"): 1.0, ("z", "z"): -2.67,
}  # fmt: skip
"""Terms and coefficients by term and equation."""
SPEC = HybridSDE(states=SYSTEM.states, physics=SYSTEM.truth(), learned="library")


@eqx.filter_jit
def untrained(physics, gate, train):
    """The model of a repetition; what is known is decided by the gate."""
    model = replace(SPEC, physics=physics).init(train, key=jr.key(0))
    return eqx.tree_at(lambda m: m.known.gate.strength.frozen, model, gate)


@eqx.filter_jit
def scores(forecaster, test, key):
    """Of forecasts from the first row."""
    found = evaluate(forecaster, test, DRAWS, key=key)
    return found["mse"][-1], found["coverage90"][-1]


def regressions(model, train) -> dict[str, np.ndarray]:
    """Coefficients by regression on increments, term × state, in the units of the library."""
    try:
        from pysindy.optimizers import STLSQ
        from sklearn.linear_model import ARDRegression
    except ImportError:
        return {}
    scale, basis = model.scale.value, model.network.basis.value
    h = np.asarray(train.values, float)
    rows = jnp.asarray(h[:, :-1].reshape(-1, 3), jnp.float32)
    phi = np.asarray(eqx.filter_vmap(basis)(scale.states(rows)), float)
    known = eqx.filter_vmap(lambda h: model.known(jnp.zeros(()), h, jnp.zeros(0)))(rows)
    rate = np.asarray(scale.rate, float)
    slope = (np.diff(h, axis=1) / SYSTEM.interval).reshape(-1, 3) - np.asarray(known, float)
    target = slope / rate
    ard = [
        ARDRegression(fit_intercept=False, max_iter=300).fit(phi, target[:, k]).coef_
        for k in range(3)
    ]
    sparse = STLSQ(threshold=0.1, alpha=0.05, normalize_columns=False).fit(phi, target).coef_.T
    return {"ARD": np.stack(ard, 1), "STLSQ": sparse}


def with_coefficients(model, coefficients: np.ndarray):
    """A model that is certain of its coefficients, with the true noise."""
    network = model.network
    assert isinstance(network, BayesianLibrary)
    means = jnp.zeros_like(network.means).at[0].set(jnp.asarray(coefficients, jnp.float32))
    shares = jnp.zeros(len(means)).at[0].set(1.0)
    chosen = jnp.ones(means.shape, bool)
    sure = replace(network, means=means, shares=Fixed(shares), chosen=Fixed(chosen))
    true_noise = constant_diffusion(np.array(SYSTEM.diffusion), SYSTEM.states)
    model = eqx.tree_at(lambda m: m.observation.sd, model, Fixed(jnp.full(3, 1e-3)))
    return replace(model, network=sure, diffusion=true_noise)


def one(size: int, row: str, repetition: int) -> dict:
    """One recording, every method."""
    protocol = replace(PROTOCOLS["24"], train_sequences=size)
    data_key, physics_key, test_key = jr.split(jr.key(FIRST + repetition), 3)
    train, test = recording(SYSTEM, protocol, key=data_key)
    model = untrained(SYSTEM.noisy(key=physics_key), SYSTEM.gate(KNOWN[row]), train)
    began = time.perf_counter()
    found = fit_sparse(model, SOLVER, train)
    seconds = time.perf_counter() - began
    basis, value, error, _ = library_coefficients(found.model.network)
    names = basis.names
    written = np.asarray(found.model.network.written.value)[: len(names)]
    got = {(names[i], SYSTEM.states[j]) for i, j in zip(*np.nonzero(written), strict=True)}
    mse, coverage = scores(SDEForecaster(found.model, SOLVER), test, test_key)
    oracle = SDEForecaster(SYSTEM.exact().init(train, key=data_key), Heun(substeps=2))
    floor, floor_coverage = scores(oracle, test, test_key)
    unit = np.asarray(found.model.scale.value.rate) / basis.raw_size()[:, None]
    value, error = value * unit, error * unit
    places = {key: (names.index(key[0]), SYSTEM.states.index(key[1])) for key in TRUE}
    inside = [
        abs(value[at] - TRUE[key]) < 1.645 * error[at] for key, at in places.items() if key in got
    ]
    result = {
        "sequences": size, "known": row, "repetition": repetition, "library": float(mse),
        "coverage": float(coverage), "oracle": float(floor), "oracle coverage":
        float(floor_coverage), "true": len(got & set(TRUE)), "false": len(got - set(TRUE)),
        "inside": float(np.mean(inside)) if inside and row == "none" else np.nan,
        "seconds": seconds,
    }  # fmt: skip
    if row != "none":
        alone = with_coefficients(model, np.zeros(value.shape))
        result["physics alone"] = float(scores(SDEForecaster(alone, SOLVER), test, test_key)[0])
    for name, coefficients in regressions(model, train).items():
        sure = with_coefficients(model, coefficients)
        result[name] = float(scores(SDEForecaster(sure, SOLVER), test, test_key)[0])
    return result


def in_errors(ours: pd.Series, others: pd.Series) -> float:
    """The mean of paired differences in standard errors; positive where ours is worse."""
    apart = ours.to_numpy() - others.to_numpy()
    return float(apart.mean() / (apart.std(ddof=1) / np.sqrt(len(apart))))


def summary(frame: pd.DataFrame) -> pd.DataFrame:
    """Medians, means and counts over repetitions."""
    rows = []
    for (size, known), group in frame.groupby(["sequences", "known"], sort=False):
        row = {"sequences": size, "known": known}
        row["library, median"] = group["library"].median()
        row["mean"] = group["library"].mean()
        for name in ("ARD", "STLSQ", "physics alone", "oracle"):
            if name in group:
                row[name] = group[name].median()
        black = frame[(frame["sequences"] == size) & (frame["known"] == "none")]
        for title, other in (
            ("black box", black["library"]),
            ("physics", group.get("physics alone")),
        ):
            if known != "none" and other is not None and len(other) == len(group):
                row[f"above {title}"] = in_errors(group["library"], other)
        row["coverage"] = f"{group['coverage'].mean():.2f} ({group['oracle coverage'].mean():.2f})"
        row["true"] = group["true"].mean()
        row["false"] = group["false"].mean()
        row["all seven"] = int((group["true"] == len(TRUE)).sum()) if known == "none" else ""
        row["one false at most"] = int((group["false"] <= 1).sum())
        row["inside"] = group["inside"].mean()
        row["s"] = group["seconds"].median()
        rows.append(row)
    return pd.DataFrame(rows)


def main() -> None:
    """Run, print as it comes, and write a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--sizes", type=int, nargs="*", default=[2, 3, 5, 10, 20, 40])
    parser.add_argument("--rows", nargs="*", default=list(KNOWN))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--csv", type=Path, help="every repetition")
    parser.add_argument("--read", type=Path, nargs="*", default=[], help="such tables, first")
    parser.add_argument("--figures", type=Path, default=Path(), help="folder of the figure")
    parser.add_argument("--recovery", type=Path, help="such a table, for a section of its own")
    chosen = parser.parse_args()
    parts = [pd.read_csv(path) for path in chosen.read]
    if chosen.out and parts:
        write(chosen.out, pd.concat(parts), chosen.repetitions)
        draw(chosen.figures, pd.concat(parts))
        if chosen.recovery:
            add_recovery(chosen.out, pd.read_csv(chosen.recovery))
    for size in chosen.sizes:
        for row in chosen.rows:
            found = [one(size, row, repetition) for repetition in range(chosen.repetitions)]
            parts.append(pd.DataFrame(found))
            print(summary(parts[-1]).to_string(index=False), flush=True)
            if chosen.csv:
                pd.concat(parts).to_csv(chosen.csv, index=False)
            if chosen.out:
                write(chosen.out, pd.concat(parts), chosen.repetitions)


def write(out: Path, frame: pd.DataFrame, repetitions: int) -> None:
    """The page, as far as it is known."""
    text = f"# Learning curves, Lorenz\n\n{__doc__.strip()}\n\n{repetitions} repetitions."
    out.write_text(f"{text}\n\n{markdown_table(summary(frame))}\n")


def draw(folder: Path, frame: pd.DataFrame) -> None:
    """What one known equation is worth: knowledge.png, and what it saves: knowledge_saved.csv."""
    curve = frame[frame["known"].isin(ROWS)].rename(columns={"library": "mse"})
    title = "What one known equation is worth (library)"
    save(knowledge(curve, float(frame["oracle"].mean()), title), folder, "knowledge")
    equivalents(curve).to_csv(folder / "knowledge_saved.csv")


def add_recovery(out: Path, frame: pd.DataFrame) -> None:
    """How often the equations are found, over more repetitions."""
    count = frame["repetition"].nunique()
    table = markdown_table(summary(frame))
    out.write_text(f"{out.read_text()}\n## Recovery\n\n{count} repetitions.\n\n{table}\n")


if __name__ == "__main__":
    main()
