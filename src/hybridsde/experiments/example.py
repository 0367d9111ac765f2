"""Predator and prey: recordings and settings to try the tool on."""

from pathlib import Path

import numpy as np
import pandas as pd

from hybridsde._errors import InputError
from hybridsde._files import write_whole

DIFFUSION = (0.2, 0.3)
NOISE = 0.15
TRAJECTORIES, TIMES, INTERVAL = 24, 60, 0.05
FINE = 50

SETTINGS = """\
# Predators y and prey x. The growth of the prey is known; what the predators do is learned.

[data]
files = "recordings.csv"
id = "run"
time = "t"
unit = "years"
states = ["x", "y"]

[physics]
equations = ["dx = growth*x - eaten*x*y"]

[physics.parameters]
growth = 2.0
eaten = 1.0
"""


def recordings(count: int = TRAJECTORIES, seed: int = 0, *, regular: bool = False) -> pd.DataFrame:
    """Noisy recordings at irregular times, one value in twenty missing; or regular and complete.

    dx = (2x − xy) dt + 0.2 dW,   dy = (−4y + xy) dt + 0.3 dW, measured with a standard deviation
    of 0.15; Euler steps of a fiftieth of the interval.
    """
    rng = np.random.default_rng(seed)
    gaps = INTERVAL * rng.uniform(0.5, 1.5, (TIMES - 1, count))
    if regular:
        gaps = np.full_like(gaps, INTERVAL)
    times = np.concatenate([np.zeros((1, count)), gaps.cumsum(0)])
    x, y = rng.uniform([[3.0], [1.0]], [[6.0], [3.0]], (2, count))
    path = [(x, y)]
    for gap in gaps:
        dt = gap / FINE
        for _ in range(FINE):
            dw = np.sqrt(dt) * rng.normal(size=(2, count))
            x, y = (
                np.maximum(x + (2 * x - x * y) * dt + DIFFUSION[0] * dw[0], 0.01),
                np.maximum(y + (-4 * y + x * y) * dt + DIFFUSION[1] * dw[1], 0.01),
            )
        path.append((x, y))
    values = np.array(path) + NOISE * rng.normal(size=(TIMES, 2, count))
    if not regular:
        values[rng.uniform(size=values.shape) < 0.05] = np.nan
    rows = [
        {"run": f"run{n:02d}", "t": times[k, n], "x": values[k, 0, n], "y": values[k, 1, n]}
        for n in range(count)
        for k in range(TIMES)
    ]
    return pd.DataFrame(rows).round(4)


def write_example(folder: Path, count: int = TRAJECTORIES, *, regular: bool = False) -> Path:
    """Write recordings and settings; returns the path of the settings."""
    table, settings = folder / "recordings.csv", folder / "settings.toml"
    for path in (table, settings):
        if path.exists():
            raise InputError(f"{path} exists. Choose another folder with --out.")
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(table, recordings(count, regular=regular).to_csv(index=False))
    write_whole(settings, SETTINGS)
    return settings
