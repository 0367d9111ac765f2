"""What each choice of the gait SDE is worth, on left-out and validation sequences of walking.

    python benchmarks/ablation_gait.py > docs/results/gait-ablation.md

Needs the motion-capture files (HYBRIDSDE_DATA). The test sequences are not read.
"""

from collections.abc import Iterator
from dataclasses import replace

import jax.numpy as jnp
import jax.random as jr

from hybridsde.baselines import AbstractBaseline
from hybridsde.forecast import evaluate
from hybridsde.paper import mocap_history
from hybridsde.paper.mocap_data import Walking, walking

CHANGES: dict[str, dict] = {
    "as recommended": {},
    "usual paces alone": {"pace_spreads": (1.0,)},
    "unusual paces alone": {"pace_spreads": (4.0,)},
    "σ of the training sequences": {"noise_spread": 1.0},
    "g = 0.1": {"phase_noise": 0.1},
    "12 harmonics": {"harmonics": 12},
    "10 shapes": {"shapes": 10},
}
HEADER = """\
# The gait SDE: what each choice is worth

MSE of 200 frames after 100 given ones, centred data; never of the test set. Each line changes one
thing. `left out`: each training sequence by a fit to the others. Written by
`python benchmarks/ablation_gait.py`.

| | left-out MSE | worst | 90 % coverage | validation MSE, by sequence | 90 % coverage |
|---|---|---|---|---|---|"""


def systems() -> Iterator[tuple[str, AbstractBaseline]]:
    """The peers, and the gait SDE with one change after the other."""
    for (_, method), spec in mocap_history.SYSTEMS["centred"].items():
        if method != "gait SDE":
            yield method, spec
    for name, change in CHANGES.items():
        yield name, replace(mocap_history.SYSTEMS["centred"]["phase", "gait SDE"], **change)


def line(name: str, spec: AbstractBaseline, data: Walking) -> str:
    """One row of the table."""
    left = mocap_history.left_out(spec, data.train, seed=0)
    batch = spec.batch(mocap_history.first_frames(data.train))
    model = spec.inference(batch).fit(batch, key=jr.key(0)).model
    each = [data.validation.take([one]) for one in range(len(data.validation))]
    draws = mocap_history.DRAWS
    found = [evaluate(model, spec.batch(one), draws, key=jr.key(1)) for one in each]
    mse, coverage = (left[name][:, -1] for name in ("mse", "coverage90"))
    shown = ", ".join(f"{float(one['mse'][-1]):.1f}" for one in found)
    covered = jnp.mean(jnp.stack([one["coverage90"][-1] for one in found]))
    return (
        f"| {name} | {float(mse.mean()):.2f} | {float(mse.max()):.1f} | "
        f"{float(coverage.mean()):.2f} | {shown} | {float(covered):.2f} |"
    )


def main() -> None:
    """Print the table as it grows."""
    data = walking()
    print(HEADER, flush=True)
    for name, spec in systems():
        print(line(name, spec, data), flush=True)


if __name__ == "__main__":
    main()
