"""A hundred fits of twenty systems that a user might bring: does any of them end in nonsense?

    python benchmarks/robustness.py [--only 0 5] [--seeds 5] [--out docs/results/robustness.md]

Hidden states, square roots, logarithms, divisions, stiffness, switches, inputs; few recordings,
irregular times, missing values, parameters that are off, and in every second fit a known equation
that is wrong (a term is missing). Everything is fitted with the defaults and scored on ten new
recordings. A fit is right where every score is finite, and where forecasts that leave every
plausible range, that are worse than the mean of the data, or whose intervals hold too little come
with a notice. Beside it: the CRPS of the mean curve of the same training recordings, and of the
true equations with the true noise.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd
from interval_coverage import markdown_table

import hybridsde as hs
from hybridsde.project.split import Split
from hybridsde.registry import SYSTEMS as OTHERS

NEW, FINE, PATHS = 10, 60, 200
MISSING = 0.1
KINDS = ("left every plausible range", "worse than", "90 % intervals", "contradict", "same work")


@dataclass(frozen=True)
class System:
    """A drift, its noises, and the equations that a user writes down: the last may be wrong."""

    name: str
    states: tuple[str, ...]
    drift: Callable
    equations: tuple[str, ...]
    wrong: str
    parameters: dict[str, tuple[float, float, float]]
    g: tuple[float, ...]
    sigma: tuple[float, ...]
    start: tuple[tuple[float, float], ...]
    interval: float
    rows: int = 40
    hidden: dict[str, object] = field(default_factory=dict)
    positive: tuple[str, ...] = ()
    bounds: dict[str, tuple[float, float]] = field(default_factory=dict)
    driven: bool = False

    @property
    def measured(self) -> tuple[str, ...]:
        """States that are in the table."""
        return tuple(name for name in self.states if name not in self.hidden)


def _root(x):
    return np.sqrt(np.maximum(x, 0))


def _log(x):
    return np.log(np.maximum(x, 1e-9))


SYSTEMS = (
    System("tanks, upper one hidden", ("a", "b"),
           lambda a, b, u: (-0.5 * _root(a) + 0.6 * u, 0.5 * _root(a) - 0.4 * _root(b)),
           ("da = -k*sqrt(a) + 0.6*u", "db = k*sqrt(a) - m*sqrt(b)"), "db = k*sqrt(a)",
           {"k": (0.4, 0.05, 2), "m": (0.5, 0.05, 2)}, (0.03, 0.03), (0.05, 0.05),
           ((1, 4), (1, 4)), 0.5, 60, {"a": "infer"}, (), {"a": (0, 20), "b": (0, 20)}, True),
    System("spring, velocity hidden", ("x", "v"),
           lambda x, v, u: (v, -4 * x - 0.4 * v),
           ("dx = v", "dv = -k*x - c*v"), "dv = -k*x",
           {"k": (3, 0.5, 10), "c": (0.2, 0.01, 2)}, (0.02, 0.1), (0.05, 0.05),
           ((-1, 1), (-1, 1)), 0.15, 40, {"v": "infer"}),
    System("drug in two compartments", ("c", "d"),
           lambda c, d, u: (-0.9 * c + 0.3 * d, 0.5 * c - 0.3 * d),
           ("dc = -k*c + 0.3*d", "dd = 0.5*c - 0.3*d"), "dc = -k*c",
           {"k": (0.6, 0.1, 3)}, (0.02, 0.02), (0.05, 0.05),
           ((3, 6), (0, 0)), 0.3, 30, {"d": 0.0}),
    System("two tanks, both measured", ("a", "b"),
           lambda a, b, u: (-0.5 * _root(a) + 0.6 * u, 0.5 * _root(a) - 0.4 * _root(b)),
           ("da = -k*sqrt(a) + 0.6*u", "db = k*sqrt(a) - m*sqrt(b)"), "db = k*sqrt(a)",
           {"k": (0.4, 0.05, 2), "m": (0.5, 0.05, 2)}, (0.03, 0.03), (0.05, 0.05),
           ((1, 4), (1, 4)), 0.5, 50, {}, ("a", "b"), {}, True),
    System("Gompertz growth", ("n",),
           lambda n, u: (0.8 * n * _log(5 / np.maximum(n, 1e-9)),),
           ("dn = r*n*log(K/n)",), "dn = r*n",
           {"r": (0.5, 0.05, 3), "K": (7, 1, 30)}, (0.08,), (0.08,), ((0.1, 2),), 0.25, 40,
           {}, ("n",)),
    System("Monod chemostat", ("s", "b"),
           lambda s, b, u: (0.3 * (4 - s) - 1.2 * s / (1 + s) * b, (s / (1 + s) - 0.3) * b),
           ("ds = D*(4 - s) - 1.2*s/(1 + s)*b", "db = (s/(K + s) - D)*b"), "db = (s - D)*b",
           {"D": (0.25, 0.05, 1), "K": (1.5, 0.1, 5)}, (0.04, 0.04), (0.04, 0.04),
           ((0.5, 3), (0.2, 1.5)), 0.4, 50, {}, ("s", "b")),
    System("enzyme, saturating", ("s",),
           lambda s, u: (-2 * s / (0.5 + s) + 1.0 + 0.5 * u,),
           ("ds = -v*s/(K + s) + 1 + 0.5*u",), "ds = -v*s + 1",
           {"v": (1.5, 0.2, 6), "K": (0.8, 0.1, 3)}, (0.05,), (0.05,), ((0.2, 3),), 0.3, 50,
           {}, ("s",), {}, True),
    System("fast and slow, rates 200 to 1", ("x", "y"),
           lambda x, y, u: (-200 * (x - np.sin(y)), -0.8 * y + 0.5 * x),
           ("dx = -k*(x - sin(y))", "dy = -0.8*y + 0.5*x"), "dy = -0.8*y",
           {"k": (150, 10, 1000)}, (0.2, 0.05), (0.03, 0.03), ((-1, 1), (-2, 2)), 0.2, 40),
    System("van der Pol, stiff", ("x", "v"),
           lambda x, v, u: (v, 8 * (1 - x**2) * v - x),
           ("dx = v", "dv = m*(1 - x^2)*v - x"), "dv = -x",
           {"m": (6, 1, 20)}, (0.05, 0.2), (0.05, 0.3), ((-2, 2), (-1, 1)), 0.1, 60),
    System("pendulum with friction", ("q", "v"),
           lambda q, v, u: (v, -6 * np.sin(q) - 0.3 * v * np.abs(v) + u),
           ("dq = v", "dv = -w*sin(q) + u"), "dv = -w*q",
           {"w": (5, 1, 20)}, (0.02, 0.1), (0.03, 0.06), ((-2, 2), (-2, 2)), 0.1, 60,
           {}, (), {}, True),
    System("nerve (FitzHugh–Nagumo)", ("v", "w"),
           lambda v, w, u: (v - v**3 / 3 - w + 0.5, 0.08 * (v + 0.7 - 0.8 * w)),
           ("dv = v - v^3/3 - w + I", "dw = e*(v + 0.7 - 0.8*w)"), "dw = e*v",
           {"I": (0.3, 0, 2), "e": (0.05, 0.01, 0.5)}, (0.05, 0.02), (0.06, 0.03),
           ((-2, 2), (-0.5, 1)), 0.6, 60),
    System("Brusselator", ("x", "y"),
           lambda x, y, u: (1 - 3.5 * x + x**2 * y, 2.5 * x - x**2 * y),
           ("dx = 1 - (B + 1)*x + x^2*y", "dy = B*x - x^2*y"), "dy = B*x",
           {"B": (2.2, 1, 5)}, (0.04, 0.04), (0.05, 0.05), ((0.5, 2), (1, 3)), 0.25, 50,
           {}, ("x", "y")),
    System("two wells, one state", ("x",),
           lambda x, u: (x - x**3,),
           ("dx = a*x - x^3",), "dx = a*x", {"a": (0.6, 0.1, 3)}, (0.35,), (0.05,), ((-1.5, 1.5),),
           0.25, 50),
    System("thermostat", ("T",),
           lambda T, u: (-0.4 * (T - 15) + 6 * u,),
           ("dT = -k*(T - E) + h*u",), "dT = -k*(T - E)",
           {"k": (0.3, 0.05, 2), "E": (12, 0, 30), "h": (5, 0.5, 20)}, (0.2,), (0.1,), ((10, 25),),
           0.5, 50, {}, (), {}, True),
    System("epidemic, susceptible hidden", ("s", "i"),
           lambda s, i, u: (-1.4 * s * i, 1.4 * s * i - 0.4 * i),
           ("ds = -b*s*i", "di = b*s*i - r*i"), "di = b*s*i",
           {"b": (1.0, 0.2, 4), "r": (0.3, 0.05, 2)}, (0.02, 0.04), (0.02, 0.05),
           ((0.8, 0.99), (0.005, 0.05)), 0.5, 40, {"s": (0.5, 1.0)}, ("s", "i")),
    System("prey that saturate predators", ("a", "b"),
           lambda a, b, u: (a * (1 - a / 4) - a * b / (0.6 + a), a * b / (0.6 + a) - 0.5 * b),
           ("da = r*a*(1 - a/4) - a*b/(H + a)", "db = a*b/(H + a) - m*b"), "db = a*b - m*b",
           {"r": (0.8, 0.1, 3), "H": (0.9, 0.1, 3), "m": (0.4, 0.1, 2)}, (0.05, 0.05),
           (0.06, 0.06), ((0.5, 3), (0.3, 2)), 0.4, 50, {}, ("a", "b")),
    System("gene switch (Hill)", ("p", "q"),
           lambda p, q, u: (3 / (1 + q**3) - p, 3 / (1 + p**3) - q),
           ("dp = c/(1 + q^3) - p", "dq = c/(1 + p^3) - q"), "dq = c - q",
           {"c": (2, 0.5, 8)}, (0.06, 0.06), (0.05, 0.05), ((0.2, 2.5), (0.2, 2.5)), 0.25, 40,
           {}, ("p", "q")),
    System("motor, current hidden", ("w", "i"),
           lambda w, i, u: (2 * i - 0.5 * w, -3 * i - 1.0 * w + 4 * u),
           ("dw = 2*i - f*w", "di = -R*i - w + 4*u"), "di = -R*i + 4*u",
           {"f": (0.3, 0.05, 3), "R": (2, 0.3, 10)}, (0.05, 0.05), (0.05, 0.05),
           ((-1, 1), (-0.5, 0.5)), 0.15, 60, {"i": "infer"}, (), {}, True),
    System("Lorenz", ("x", "y", "z"),
           lambda x, y, z, u: (10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z),
           ("dx = s*(y - x)", "dy = x*(28 - z) - y", "dz = x*y - b*z"), "dz = -b*z",
           {"s": (8, 1, 20), "b": (3, 0.5, 6)}, (0.5, 0.5, 0.5), (0.3, 0.3, 0.3),
           ((-10, 10), (-10, 10), (15, 35)), 0.04, 40),
    System("noise with a mean (OU)", ("x",),
           lambda x, u: (-1.2 * (x - 2),),
           ("dx = -k*(x - m)",), "dx = -k*x", {"k": (0.8, 0.1, 5), "m": (1, -5, 5)}, (0.6,), (0.1,),
           ((0, 4),), 0.3, 50),
)  # fmt: skip


def paths(system: System, start: np.ndarray, times: np.ndarray, u: np.ndarray, rng) -> np.ndarray:
    """States at every time by fine Euler–Maruyama steps in double precision."""
    h, rows = start, [start]
    for row, gap in enumerate(np.diff(times)):
        steps = int(np.ceil(FINE * gap / system.interval))
        dt = gap / steps
        for _ in range(steps):
            noise = np.array(system.g) * np.sqrt(dt) * rng.normal(size=h.shape)
            if system.positive:  # noise is relative there
                noise = noise * np.where(np.isin(system.states, system.positive), h, 1.0)
            h = h + dt * np.stack(system.drift(*h.T, u[:, row]), 1) + noise
            if system.positive or system.bounds:
                limited = np.isin(system.states, [*system.positive, *system.bounds])
                h = np.where(limited, np.maximum(h, 1e-4), h)
        rows.append(h)
    return np.stack(rows, 1)


def measure(system: System, h: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """What an instrument shows of the measured states; relative errors where they are positive."""
    columns = [system.states.index(name) for name in system.measured]
    relative = np.isin(system.measured, system.positive)
    error = np.array(system.sigma)[columns] * rng.normal(size=(*h.shape[:-1], len(columns)))
    seen = h[..., columns]
    return np.where(relative, seen * np.exp(error), seen + error)


@dataclass(frozen=True)
class Recorded:
    """Recordings as a user has them, and what only the simulation knows."""

    data: hs.Trajectories
    start: np.ndarray
    times: np.ndarray
    u: np.ndarray


def record(system: System, count: int, rng: np.random.Generator) -> Recorded:
    """Recordings at irregular times, some values missing."""
    low, high = np.array(system.start).T
    start = rng.uniform(low, high, (count, len(low)))
    gaps = system.interval * rng.choice([0.5, 1.0, 1.0, 1.0, 2.0], system.rows - 1)
    times = np.concatenate([[0.0], np.cumsum(gaps)])
    jumps = rng.random((count, system.rows)) < 0.12
    level = rng.uniform(0, 1.5, (count, system.rows))
    last = np.maximum.accumulate(np.where(jumps, np.arange(system.rows), 0), 1)
    u = np.take_along_axis(level, last, 1)
    values = measure(system, paths(system, start, times, u, rng), rng)
    gone = rng.random(values.shape) < MISSING
    gone[:, 0] = False
    inputs = {"inputs": list(u[..., None]), "input_names": ("u",)} if system.driven else {}
    data = hs.Trajectories.from_arrays(
        [times] * count, list(values), observed=list(~gone), states=system.measured, **inputs
    )
    return Recorded(data, start, times, u)


def floor(system: System, test: Recorded, rng: np.random.Generator) -> float:
    """The CRPS of the true equations from the true start, with the true noise."""
    each = np.stack(
        [
            measure(system, paths(system, test.start, test.times, test.u, rng), rng)
            for _ in range(PATHS)
        ]
    )
    value = test.data.values
    near = np.abs(each - value).mean(0)
    ordered = np.sort(each, 0)
    weight = 2 * np.arange(1, PATHS + 1) - PATHS - 1
    apart = np.tensordot(weight, ordered, 1) * 2 / (PATHS * (PATHS - 1))
    return float(np.mean((near - apart / 2)[:, 1:], where=test.data.observed[:, 1:]))


def declared(system: System, *, wrong: bool) -> hs.HybridSDE:
    """With the equations and guesses of a user."""
    texts = (*system.equations[:-1], system.wrong) if wrong else system.equations
    if wrong and system.wrong.split("=")[0] != system.equations[-1].split("=")[0]:
        texts = (system.wrong, *system.equations[1:])
    joined = " ".join(text.split("=", 1)[1] for text in texts)
    words = set("".join(c if c.isalnum() or c == "_" else " " for c in joined).split())
    used = {name: hs.Bounded.of(*ends) for name, ends in system.parameters.items() if name in words}
    given = {"observed": system.measured, "start": system.hidden} if system.hidden else {}
    return hs.HybridSDE(
        states=system.states,
        physics=hs.equations(*texts, **used),
        inputs=("u",) if system.driven else (),
        positive=system.positive,
        bounds=system.bounds,
        **given,
    )


def run_case(system: System, seed: int) -> dict:
    """One fit, its scores, what was said of them, and what else there is."""
    rng = np.random.default_rng([seed, SYSTEMS.index(system)])
    count, wrong = (3, 4, 6, 8, 12)[seed % 5], seed % 2 == 1
    split = Split.of(record(system, count, rng).data, 0, seed=seed)
    test = record(system, NEW, rng)
    began = time.perf_counter()
    failed, said, scores, outside = "", [], None, np.nan
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model = declared(system, wrong=wrong)
            run = hs.fit(model, split.train, validation=split.validation, seed=seed)
            scores = run.score(test.data)
            drawn = run.forecast(test.data.start(), elapsed=test.times[1:], draws=100)
            outside = float((~np.isfinite(drawn.observations.to_numpy())).any())
        except Exception as error:
            failed = f"{type(error).__name__}: {str(error)[:160]}"
    said = [kind for kind in KINDS if any(kind in str(one.message) for one in caught)]
    relative = tuple(name for name in system.measured if name in system.positive)
    other = OTHERS["mean-curve"](system.measured, relative, 1)
    curve = hs.fit(replace(other, inputs=split.train.input_names), split.train)
    usual = curve.score(test.data)
    return {
        "system": system.name,
        "seed": seed,
        "recordings": count,
        "wrong": wrong,
        "finite": scores is not None and bool(np.isfinite(scores.to_numpy()).all()),
        "crps": np.nan if scores is None else float(scores.loc["overall", "crps"]),
        "coverage": np.nan if scores is None else float(scores.loc["overall", "coverage90"]),
        "mean curve": float(usual.loc["overall", "crps"]),
        "true equations": floor(system, test, rng),
        "draws not finite": outside,
        "said": "; ".join(said),
        "failed": failed,
        "learned": ""
        if scores is None
        else (run.metadata.choice or "").split(":")[0].split(",")[0],
        "seconds": time.perf_counter() - began,
    }


def summary(table: pd.DataFrame) -> str:
    """What a reader wants to know first."""
    worse, better = table["crps"] > table["mean curve"], table["crps"] <= table["mean curve"]
    ratio = table["crps"] / table["true equations"]
    quiet = worse & ~table["said"].str.contains("worse than")
    low = (table["coverage"] < 0.7) & ~table["said"].str.contains("intervals")
    return (
        f"{len(table)} fits: {int(table['finite'].sum())} with finite scores, "
        f"{int((table['failed'] != '').sum())} refused or failed, "
        f"{int((table['draws not finite'] > 0).sum())} with draws that are not finite. "
        f"CRPS below that of the mean curve in {int(better.sum())}; worse without a word in "
        f"{int(quiet.sum())}; coverage under 70 % without a word in {int(low.sum())}. "
        f"CRPS over that of the true equations: median {ratio.median():.3g}, worst tenth "
        f"{ratio.quantile(0.9):.3g}. Coverage: median {table['coverage'].median():.3g}, "
        f"5 % to 95 %: {table['coverage'].quantile(0.05):.3g} to "
        f"{table['coverage'].quantile(0.95):.3g}."
    )


def read_rows(path: Path) -> list[dict]:
    """Rows of an earlier run."""
    words = {"said": "", "failed": "", "learned": ""}
    return pd.read_csv(path).fillna(words).to_dict("records")


def main() -> None:
    """Run the cases, print them as they come, and write a table of medians."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", type=int, nargs="*", help="positions among the twenty")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--read", type=Path, nargs="*", default=[], help="such tables, first")
    chosen = parser.parse_args()
    rows = [row for path in chosen.read for row in read_rows(path)]
    for seed in range(chosen.first, chosen.first + chosen.seeds):
        for position in chosen.only if chosen.only is not None else range(len(SYSTEMS)):
            rows.append(run_case(SYSTEMS[position], seed))
            print({k: round(v, 4) if isinstance(v, float) else v for k, v in rows[-1].items()},
                  flush=True)  # fmt: skip
            if chosen.out:
                pd.DataFrame(rows).to_csv(chosen.out.with_suffix(".csv"), index=False)
    table = pd.DataFrame(rows)
    text = summary(table)
    print(text)
    if chosen.out:
        middle = table.groupby("system", sort=False)[
            ["crps", "mean curve", "true equations", "coverage", "seconds"]
        ].median()
        chosen.out.write_text(
            "Written by `benchmarks/robustness.py`: medians over the fits of each system; every "
            f"fit is in `{chosen.out.with_suffix('.csv').name}`.\n\n{text}\n\n"
            f"{markdown_table(middle.reset_index())}\n"
        )


if __name__ == "__main__":
    main()
