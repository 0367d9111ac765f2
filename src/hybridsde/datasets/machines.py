"""A fleet of machines that warm up and cool down, each with a rate of its own.

    dx = −k (x − u) dt + G dW,   y = x + ε,   ln k ~ N(ln 0.5, 0.3²)

u is the power that is switched between two levels. The steps are exact: the SDE is linear.
"""

import numpy as np

from hybridsde.data import Trajectories

STATES, INPUTS = ("x",), ("u",)
EQUATION = "dx = -k*(x - u)"
RATE, SPREAD = 0.5, 0.3
DIFFUSION, NOISE = 0.05, 0.02
INTERVAL = 0.25
SWITCHED = 8
"""Rows after which the power changes."""


def rates(count: int, *, seed: int) -> np.ndarray:
    """The true k of every machine."""
    return RATE * np.exp(SPREAD * np.random.default_rng(seed).standard_normal(count))


def load(*, seed: int, count: int = 100, rows: int = 41) -> Trajectories:
    """One recording of every machine."""
    k = rates(count, seed=seed)
    random = np.random.default_rng([seed, 1])
    levels = random.choice([0.0, 1.0], (count, -(-rows // SWITCHED)))
    u = np.repeat(levels, SWITCHED, 1)[:, :rows]
    decay = np.exp(-k * INTERVAL)
    sd = DIFFUSION * np.sqrt((1 - decay**2) / (2 * k))
    x = np.zeros((count, rows))
    x[:, 0] = random.uniform(0, 1, count)
    for row in range(1, rows):
        goal = u[:, row - 1]
        x[:, row] = goal + (x[:, row - 1] - goal) * decay + sd * random.standard_normal(count)
    y = x + NOISE * random.standard_normal(x.shape)
    times = INTERVAL * np.arange(rows)
    return Trajectories.from_arrays(
        [times] * count,
        list(y[..., None]),
        states=STATES,
        inputs=list(u[..., None]),
        input_names=INPUTS,
        ids=[f"machine{number:05d}" for number in range(count)],
    )
