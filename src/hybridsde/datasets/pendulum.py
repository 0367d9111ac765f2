"""A pendulum with friction, filmed: angles and velocities at irregular times, some of them missing.

dq = v dt,   dv = (−w sin q − c v) dt + 0.05 dW,   measured with 0.05 rad and 0.15 rad/s of noise
"""

import numpy as np

from hybridsde.data import Trajectories

STATES = ("q", "v")
TRUE = {"w": 6.0, "c": 0.5}
"""Gravity over length, and friction, per second."""
DIFFUSION = (0.0, 0.05)
NOISE = (0.05, 0.15)
INTERVAL = 0.1
MISSING = 0.1
FINE = 50
"""Steps of the simulation from row to row."""


def recordings(
    count: int, rows: int, reach: float, *, seed: int
) -> tuple[Trajectories, Trajectories]:
    """Swings that begin within `reach` radians of hanging, as they are measured, and as they are.

    Semi-implicit Euler steps of a fiftieth of the interval.
    """
    random = np.random.default_rng(seed)
    gaps = INTERVAL * random.uniform(0.5, 1.5, (rows - 1, count))
    q = random.uniform(0.7, 1, count) * reach * random.choice([-1, 1], count)
    v = random.uniform(-0.5, 0.5, count) * reach
    path = [(q, v)]
    for gap in gaps:
        dt = gap / FINE
        for _ in range(FINE):
            noise = DIFFUSION[1] * np.sqrt(dt) * random.standard_normal(count)
            v = v + (-TRUE["w"] * np.sin(q) - TRUE["c"] * v) * dt + noise
            q = q + v * dt
        path.append((q, v))
    times = np.concatenate([np.zeros((1, count)), gaps.cumsum(0)]).T
    exact = np.moveaxis(np.array(path), -1, 0)
    measured = exact + np.array(NOISE) * random.standard_normal(exact.shape)
    seen = random.uniform(size=exact.shape) > MISSING
    seen[:, 0] = True
    names = [f"swing {number + 1}" for number in range(count)]
    same = {"states": STATES, "ids": names}
    return (
        Trajectories.from_arrays(list(times), list(measured), observed=list(seen), **same),
        Trajectories.from_arrays(list(times), list(exact), **same),
    )
