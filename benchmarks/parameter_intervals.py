"""Do 90 % intervals of parameters hold the truth? All equations known, few recordings.

    python benchmarks/parameter_intervals.py [--repetitions 60] [--out docs/results/intervals.md]

Four systems, simulated finely from seeds: a return to a mean, a damped oscillator of which only the
position is measured, growth to a capacity, and a decay from an unmeasured store. Three recordings
of 25 irregular rows. Beside each other: intervals from the expected information, in the coordinates
in which parameters are free, as `fit` prints them; and profile intervals, as `fit --profile` does.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import hybridsde as hs

FINE = 40
RECORDINGS, ROWS = 3, 25
SYSTEMS = {
    "return to a mean": {
        "states": ("x",), "observed": ("x",), "equations": ("dx = k*(m - x)",),
        "true": {"k": 0.8, "m": 2.0}, "drift": lambda x, k, m: [k * (m - x[0])], "g": (0.4,),
        "sigma": (0.1,), "start": [(0, 4)], "gap": 0.4,
    },
    "damped oscillator, position measured": {
        "states": ("x", "v"), "observed": ("x",), "equations": ("dx = v", "dv = -w*x - c*v"),
        "true": {"w": 4.0, "c": 0.4}, "drift": lambda x, w, c: [x[1], -w * x[0] - c * x[1]],
        "g": (0.0, 0.3), "sigma": (0.1,), "start": [(-2, 2), (-2, 2)], "gap": 0.25,
    },
    "growth to a capacity": {
        "states": ("x",), "observed": ("x",), "equations": ("dx = r*x*(1 - x/K)",),
        "true": {"r": 1.0, "K": 5.0}, "drift": lambda x, r, K: [r * x[0] * (1 - x[0] / K)],
        "g": (0.15,), "sigma": (0.15,), "start": [(0.8, 1.5)], "gap": 0.3,
    },
    "decay from an unmeasured store": {
        "states": ("s", "x"), "observed": ("x",), "equations": ("ds = -a*s", "dx = a*s - e*x"),
        "true": {"a": 1.2, "e": 0.3}, "drift": lambda x, a, e: [-a * x[0], a * x[0] - e * x[1]],
        "g": (0.0, 0.1), "sigma": (0.1,), "start": [5.0, 0.0], "gap": 0.4,
    },
}  # fmt: skip


def recordings(system: dict, seed: int) -> hs.Trajectories:
    """By Euler steps of a fortieth of the interval."""
    rng = np.random.default_rng(seed)
    times, values = [], []
    for _ in range(RECORDINGS):
        gaps = system["gap"] * rng.uniform(0.5, 1.5, ROWS - 1)
        x = np.array([s if isinstance(s, float) else rng.uniform(*s) for s in system["start"]])
        path = [x]
        for gap in gaps:
            dt = gap / FINE
            for _ in range(FINE):
                noise = np.array(system["g"]) * np.sqrt(dt) * rng.standard_normal(len(x))
                x = x + np.array(system["drift"](x, **system["true"])) * dt + noise
            path.append(x)
        at = [system["states"].index(name) for name in system["observed"]]
        measured = np.array(path)[:, at]
        times.append(np.concatenate([[0.0], gaps.cumsum()]))
        values.append(measured + system["sigma"] * rng.standard_normal(measured.shape))
    return hs.Trajectories.from_arrays(times, values, states=system["observed"])


def declared(system: dict) -> hs.HybridSDE:
    """Every equation known, every parameter learned from a value that is off."""
    xi = {name: hs.Bounded.of(1.4 * v, v / 30, 30 * v) for name, v in system["true"].items()}
    numbers = {n: s for n, s in zip(system["states"], system["start"], strict=True)
               if n not in system["observed"]}  # fmt: skip
    given = system["g"] if 0.0 in system["g"] else None  # a state without noise has none to learn
    return hs.HybridSDE(
        states=system["states"], observed=system["observed"], exact=system["states"],
        physics=hs.equations(*system["equations"], **xi), start=numbers or None,
        diffusion=given,
    )  # fmt: skip


def main() -> None:
    """A row for each parameter."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=60)
    parser.add_argument("--first", type=int, default=0, help="The first seed.")
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for name, system in SYSTEMS.items():
        held: dict[tuple[str, str], list[bool]] = {}
        for seed in range(chosen.first, chosen.first + chosen.repetitions):
            data = recordings(system, seed)
            run = hs.fit(declared(system), data, progress=False)
            profile = run.profile(data).T.to_dict()
            for kind, found in (("information", run.metadata.parameters), ("profile", profile)):
                for key, truth in system["true"].items():
                    low, high = (found[key][end] for end in ("low", "high"))
                    inside = (low is None or np.isnan(low) or low <= truth) and (
                        high is None or np.isnan(high) or truth <= high
                    )
                    held.setdefault((key, kind), []).append(inside)
        for key in system["true"]:
            row = {"system": name, "parameter": key, "fits": chosen.repetitions}
            for kind in ("information", "profile"):
                share = np.mean(held[key, kind])
                row[kind] = (
                    f"{share:.2f} ± {np.sqrt(share * (1 - share) / len(held[key, kind])):.2f}"
                )
            rows.append(row)
            print(row, flush=True)
    table = pd.DataFrame(rows)
    if chosen.out:
        assert __doc__ is not None
        title, text = __doc__.split("\n", 1)
        head = "| " + " | ".join(table.columns) + " |\n" + "|---" * len(table.columns) + "|\n"
        body = "".join("| " + " | ".join(map(str, row)) + " |\n" for row in table.to_numpy())
        chosen.out.write_text(f"# {title}\n{text}\n{head}{body}")


if __name__ == "__main__":
    main()
