"""Predators and prey, measured with noise at irregular times: recordings to try the tool on.

dx = (2x − xy) dt + 0.2 dW,   dy = (−4y + xy) dt + 0.3 dW
"""

import numpy as np
import pandas as pd

from hybridsde.simulate.solver import euler_maruyama

DIFFUSION = (0.2, 0.3)
NOISE = 0.15
TRAJECTORIES, TIMES, INTERVAL = 24, 60, 0.05
FINE = 50


def recordings(count: int = TRAJECTORIES, seed: int = 0, *, regular: bool = False) -> pd.DataFrame:
    """Noisy recordings at irregular times, one value in twenty missing; or regular and complete.

    Measured with a standard deviation of 0.15; Euler steps of a fiftieth of the interval.
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
                np.maximum(euler_maruyama(x, 2 * x - x * y, dt, DIFFUSION[0] * dw[0]), 0.01),
                np.maximum(euler_maruyama(y, -4 * y + x * y, dt, DIFFUSION[1] * dw[1]), 0.01),
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
