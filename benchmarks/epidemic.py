"""Weekly reports of an epidemic in eight cities, a third of the cases: what the tool makes of them.

    python benchmarks/epidemic.py [--minutes 20] [--only positive] [--folder runs/epidemic]

A stochastic SEIR with births, a season of transmission of 0.18, and 30 % of new cases reported, by
steps of a twenty-eighth of a week; 520 weeks of which the last 104 are forecast eight weeks ahead.
S and E are never measured. Each setting is fitted as a command, and what comes of it is printed:
its exit code, seconds, what was said, and its CRPS; `hybridsde compare` has the simple forecasters.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd

CITIES, WEEKS, BEFORE = 8, 520, 260
SEASON, REPORTED, FINE = 0.18, 0.3, 28
RATES = {"mu": 0.02 / 52, "R0": 15.0, "gamma": 1.0, "sigma": 0.83}

COMMON = """[data]
files = "cases.csv"
id = "city"
time = "week"
states = ["rate"]
inputs = ["c1", "s1"]
test = { start = 416 }
"""
EQUATIONS = """hidden_states = ["S", "E"]
%s

[start]
S = [0.04, 0.2]
E = [0.00001, 0.01]

[physics]
equations = [
  "dS = mu - mu*S - b0*(1 + a*c1)*S*rate/300",
  "dE = b0*(1 + a*c1)*S*rate/300 - sigma*E",
  "drate = 300*sigma*E - gamma*rate",
]
exact = ["S", "E", "rate"]

[physics.parameters]
mu = 0.000385
b0 = { value = 12, learn = true, low = 3, high = 40 }
a = { value = 0.1, learn = true, low = 0, high = 0.6 }
sigma = 0.83
gamma = 1.0
"""
FORECAST = "\n[forecast]\nhorizon = 8\n"
SETTINGS = {
    "positive": COMMON
    + EQUATIONS % 'positive = ["rate", "S", "E"]\nbounds = { S = [0, 1], E = [0, 1] }'
    + FORECAST,
    "bounds": COMMON
    + EQUATIONS % "bounds = { S = [0, 1], E = [0, 1], rate = [0, inf] }"
    + FORECAST,
    "no equations": COMMON + 'positive = ["rate"]\n' + FORECAST,
}


def cases(seed: int = 0) -> pd.DataFrame:
    """Reports per week, also per thousand people, with the phase of the season as two inputs."""
    rng = np.random.default_rng(seed)
    size = 10 ** rng.uniform(5, 6.3, CITIES)
    s, e, i = (share * size for share in (0.07, 0.001, 0.001))
    beta, dt = RATES["R0"] * (RATES["gamma"] + RATES["mu"]), 1 / FINE
    rows = []
    for week in range(-BEFORE, WEEKS):
        new = np.zeros(CITIES)
        for step in range(FINE):
            phase = 2 * np.pi * (week + step * dt) / 52
            force = beta * (1 + SEASON * np.cos(phase)) * (i + 1) / size
            infected = np.minimum(rng.poisson(s * (1 - np.exp(-force * dt))), s)
            ill = rng.binomial(e.astype(int), 1 - np.exp(-RATES["sigma"] * dt))
            well = rng.binomial(i.astype(int), 1 - np.exp(-RATES["gamma"] * dt))
            born = rng.poisson(RATES["mu"] * size * dt)
            gone = rng.binomial(s.astype(int), RATES["mu"] * dt)
            s, e, i = np.maximum(s + born - gone - infected, 0), e + infected - ill, i + ill - well
            new += ill
        if week >= 0:
            seen = rng.binomial(new.astype(int), REPORTED)
            phase = 2 * np.pi * week / 52
            rows += [
                {"city": f"city{n + 1}", "week": week, "cases": seen[n], "c1": np.cos(phase),
                 "s1": np.sin(phase), "rate": seen[n] / size[n] * 1e3}
                for n in range(CITIES)
            ]  # fmt: skip
    return pd.DataFrame(rows)


def run(name: str, folder: Path, minutes: float) -> None:
    """One setting, as a user would."""
    settings = folder / f"{name.replace(' ', '-')}.toml"
    settings.write_text(SETTINGS[name])
    out, began = settings.with_suffix(""), time.monotonic()
    command = [sys.executable, "-m", "hybridsde", "fit", settings, "--out", out, "--quiet"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60 * minutes)
        code, said = str(done.returncode), done.stdout + done.stderr
    except subprocess.TimeoutExpired as error:
        code, said = "not ended", (error.stdout or b"").decode()
    print(f"== {name}: exit code {code}, {time.monotonic() - began:.0f} s")
    print("\n".join(line for line in said.splitlines() if "note:" in line or "failed:" in line))
    if (out / "run.json").exists():
        scores = json.loads((out / "run.json").read_text())["metadata"].get("test_scores")
        print(
            {k: v for k, v in (scores or {}).get("overall", {}).items() if "crps" in k}, flush=True
        )


def main() -> None:
    """All settings, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--only", choices=list(SETTINGS), nargs="+", default=list(SETTINGS))
    parser.add_argument("--folder", type=Path, default=Path("runs/epidemic"))
    chosen = parser.parse_args()
    chosen.folder.mkdir(parents=True, exist_ok=True)
    cases().to_csv(chosen.folder / "cases.csv", index=False)
    for name in chosen.only:
        run(name, chosen.folder, chosen.minutes)


if __name__ == "__main__":
    main()
