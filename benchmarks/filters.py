"""Long records: the filter one step after the other, and the one that is parallel in time.

    python benchmarks/filters.py [--rows 200000] [--weights 4] [--out filters.csv]

A spring with a hidden velocity, and a pendulum, 200 000 rows of each. What is timed is the second
call, after compilation. The largest difference between the filtered means is in their own spreads.
"""

import argparse
import time
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pandas as pd

import hybridsde as hs
from hybridsde.data import Batch
from hybridsde.estimate.choices import estimator_of
from hybridsde.estimate.estimator import Record
from hybridsde.simulate import Heun

STEP = 0.05
SYSTEMS = {"spring": "dv = -4*x - 0.4*v", "pendulum": "dv = -4*sin(x) - 0.4*v"}


def record(name: str, rows: int) -> Batch:
    """Positions alone, with noise."""
    rng = np.random.default_rng(0)
    x, v, kept = 1.0, 0.0, np.empty(rows)
    pull = np.sin if name == "pendulum" else float
    shocks = np.sqrt(STEP) * rng.normal(size=(rows, 2)) * (0.02, 0.5)
    for k in range(rows):
        kept[k] = x
        x, v = x + STEP * v + shocks[k, 0], v + STEP * (-4 * pull(x) - 0.4 * v) + shocks[k, 1]
    values = kept + 0.05 * rng.normal(size=rows)
    data = hs.Trajectories.from_arrays([STEP * np.arange(rows)], [values[:, None]], states=("x",))
    return Batch.of(data)


def timed(name: str, estimator: str, batch: Batch, weights: int) -> tuple[float, np.ndarray, float]:
    """Seconds of one call, and the means that rows were foretold with."""
    spec = hs.HybridSDE(
        states=("x", "v"),
        observed=("x",),
        physics=hs.equations("dx = v", SYSTEMS[name]),
        hidden=None,
        diffusion=(0.02, 0.5),
        noise=0.05,
    )
    model = spec.init(batch, key=jr.key(0))
    series = jax.tree.map(lambda leaf: leaf[0], batch)

    @eqx.filter_jit
    def run(keys, model, series):
        def one(key):
            seen = Record(model, model.draw(key=key), Heun(), series)
            found = estimator_of(estimator)(seen, draws=1, smooth=False, key=key)
            return found.log_prob, found.foretold

        return jax.vmap(one)(keys)

    keys = jr.split(jr.key(1), weights)
    jax.block_until_ready(run(keys, model, series))
    began = time.perf_counter()
    log_prob, foretold = jax.block_until_ready(run(keys, model, series))
    return time.perf_counter() - began, np.asarray(foretold[0]), float(log_prob[0])


def main() -> None:
    """Both systems, both filters."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--weights", type=int, default=4, help="draws of the weights, side by side")
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    rows = []
    for name in SYSTEMS:
        batch = record(name, chosen.rows)
        slow = timed(name, "extended", batch, chosen.weights)
        fast = timed(name, "parallel", batch, chosen.weights)
        rows.append(
            {
                "system": name,
                "device": jax.devices()[0].device_kind,
                "rows": chosen.rows,
                "one after the other, s": slow[0],
                "parallel in time, s": fast[0],
                "ratio": slow[0] / fast[0],
                "largest difference": float(np.max(np.abs(slow[1] - fast[1]))),
                "log evidence": f"{slow[2]:.1f}, {fast[2]:.1f}",
            }
        )
        print(rows[-1], flush=True)
    if chosen.out:
        chosen.out.write_text(pd.DataFrame(rows).to_csv(index=False))


if __name__ == "__main__":
    assert jnp.zeros(1).sum() == 0  # starts the device before anything is timed
    main()
