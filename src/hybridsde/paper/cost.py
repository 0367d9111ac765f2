"""What one training iteration costs: the paper's cost table, measured.

Haussmann et al. 2021, appendix, gives the cost per iteration as O(·) of the samples M, the length
T, the forward pass F, the weights W, the dimension D and the physics P. Here each is varied alone,
the gradient of the loss is timed, and the slope of ln time against ln size is put beside the
exponent that the paper's formula has for large sizes.
"""

import math
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pandas as pd

from hybridsde._devices import PATHS_PER_DEVICE
from hybridsde._parameters import trainable
from hybridsde._types import Weights
from hybridsde.data import Batch
from hybridsde.datasets import lorenz
from hybridsde.hybrid import HybridSDE
from hybridsde.paper.preset import COMPARED, METHODS
from hybridsde.paper.table import Results, Row, RowKey, fingerprint
from hybridsde.physics import NoPhysics
from hybridsde.simulate import EulerMaruyama
from hybridsde.simulate.weight_gradient import FEW_PATHS

INTERVAL = 0.01


@dataclass(frozen=True)
class Setting:
    """One size of everything."""

    method: str = "e-pac-bayes"
    known: str = "none"
    """"all" adds the Lorenz equations, which need three states."""
    weights: Weights = "local"
    samples: int = 16
    length: int = 100
    width: int = 100
    states: int = 3
    diffusion: str = "diagonal"
    """diagonal, constant matrix, or state-dependent matrix."""


@dataclass(frozen=True)
class Sweep:
    """One size varied alone."""

    symbol: str
    varies: str
    """The field of `Setting`."""
    sizes: tuple[int, ...]
    exponent: int
    """Of the paper's O(·), or of ours where it differs, for large sizes."""
    formula: str
    base: Setting = field(default_factory=Setting)


NARROW = Setting(width=8, length=25)
"""A small network, so that the dimension is what costs."""

SWEEPS = {
    "samples": Sweep("M", "samples", (4, 16, 64, 256, 1024), 1, "2MTF"),
    "length": Sweep("T", "length", (25, 50, 100, 200, 400), 1, "2MTF"),
    "width": Sweep("width", "width", (50, 100, 200, 400, 800), 2, "2MTF, F ∝ width²"),
    "states, diagonal G": Sweep("D", "states", (16, 32, 64, 128, 256), 1, "MTD", NARROW),
    "states, constant full G": Sweep(
        "D",
        "states",
        (16, 32, 64, 128, 256),
        2,
        "MTD²: factorised once (paper: MTD³)",
        replace(NARROW, diffusion="constant"),
    ),
    "states, full G(h)": Sweep(
        "D", "states", (16, 32, 64, 128, 256), 3, "MTD³", replace(NARROW, diffusion="function")
    ),
}

METHOD_SETTINGS = {
    "D-BNN (SGLD)": (Setting("d-bnn (sgld)", weights="path"), "MTF + MTDL + W"),
    "D-BNN (VI)": (Setting("d-bnn (vi)"), "2MTF + MTDL + W"),
    "E-Bayes": (Setting("e-bayes"), "2MTF + MTDL"),
    "E-PAC-Bayes": (Setting(), "2MTF + MTDL + W + TMD³"),
    "E-Bayes-Hybrid": (Setting("e-bayes", "all"), "2MTF + MTDL + MTP"),
    "E-PAC-Bayes-Hybrid": (Setting(known="all"), "2MTF + MTDL + W + TMD³ + MTP"),
    "E-Bayes, weights held": (Setting("e-bayes", weights="path"), "MTF + MTDL"),
}
"""The rows of the paper's table; and one that has the F of its D-BNN."""
LOSSES = COMPARED | METHODS


def gradient(setting: Setting, *, seed: int) -> tuple[Callable, Any]:
    """One training iteration's gradient, compiled, and the parameters to call it with."""
    model, batch = _problem(setting, seed=seed)
    parameters, frozen = eqx.partition(model, trainable(model))
    objective = replace(LOSSES[setting.method], samples=setting.samples, solver=EulerMaruyama())

    @jax.jit
    def run(parameters, key):
        def loss(parameters):
            whole = eqx.combine(parameters, frozen)
            return objective(whole, batch, batch.count, key=key).loss

        return jax.grad(loss)(parameters)

    return run, parameters


def shortest(
    settings: Mapping[str, Setting], *, seed: int, rounds: int, tick: Callable[[str], None]
) -> dict[str, float]:
    """Seconds of the shortest of several calls, all settings in turns.

    Whatever else runs only adds to a time, and in turns it adds to all alike.
    """
    runs = {}
    for name, setting in settings.items():
        tick(name)
        runs[name] = gradient(setting, seed=seed)
        run, parameters = runs[name]
        jax.block_until_ready(run(parameters, jr.key(seed)))
    best = dict.fromkeys(runs, math.inf)
    for number in range(rounds):
        for name, (run, parameters) in runs.items():
            began = time.perf_counter()
            jax.block_until_ready(run(parameters, jr.key(number)))
            best[name] = min(best[name], time.perf_counter() - began)
    return best


def _problem(setting: Setting, *, seed: int):
    states = lorenz.STATES if setting.states == 3 else tuple(f"h{i}" for i in range(setting.states))
    values = jr.normal(jr.key(seed), (1, 1 + setting.length, setting.states))
    batch = Batch.regular(values, INTERVAL)
    hybrid = HybridSDE(
        members=1,
        states=states,
        far="free",
        diffusion=_diffusion(setting),
        noise=1.0,
        hidden=(setting.width, setting.width),
        start="first",
        weights=setting.weights,
        physics=lorenz.true_physics() if setting.known == "all" else NoPhysics(),
    )
    return hybrid.init(batch, key=jr.key(seed)), batch


def _diffusion(setting: Setting):
    if setting.diffusion == "diagonal":
        return 1.0
    count = setting.states
    matrix = np.eye(count) + 0.1 / count
    if setting.diffusion == "constant":
        return matrix

    def moving(h, t):
        return jnp.asarray(matrix, h.dtype) * (1 + 0.01 * jnp.tanh(h[0] + t))

    return moving


def settings(quick: bool) -> dict[str, Setting]:
    """Everything that is timed, by the name it has in the column `protocol`."""
    swept = {
        _name(sweep, size): replace(plan.base, **{plan.varies: size})
        for sweep, plan in SWEEPS.items()
        for size in (plan.sizes[:2] if quick else plan.sizes)
    }
    return swept | {name: setting for name, (setting, _) in METHOD_SETTINGS.items()}


def measure(folder: Path, *, quick: bool, seed: int, tick: Callable[[str], None]) -> Results:
    """Time every setting that was not timed before.

    Rows have the format of the other reproductions: `protocol` says what was varied,
    `repetitions` how often it was timed, `seconds` is the shortest time of an iteration, and there
    are no scores. `tick` is called with the name of each setting before it is compiled.
    """
    results = Results(folder, TITLE, NOTES, markdown)
    busy = getattr(os, "getloadavg", None)  # not on every system
    load = {"load_average_before": busy()[0]} if busy else {}
    began = time.monotonic()
    machine = (jax.devices()[0].device_kind, jax.local_device_count(), jax.__version__)
    rounds = 5 if quick else ROUNDS
    wanted = settings(quick)
    keys = {}
    for name, setting in wanted.items():
        preset = "paper" if setting.weights == "local" else "recommended"
        mark = fingerprint(setting, machine, SHORTEST)
        keys[name] = RowKey(setting.known, setting.method, preset, name, rounds, seed, mark)
    there = {row.key for row in results.rows}
    missing = {name: wanted[name] for name, key in keys.items() if key not in there}
    found = shortest(missing, seed=seed, rounds=rounds, tick=tick) if missing else {}
    asked = [
        results.get(key, lambda key=key, name=name: Row(*key, seconds=found[name]))
        for name, key in keys.items()
    ]
    results.rows = [row for row in results.rows if row not in asked] + asked
    if missing:
        results.extra = {"seconds": time.monotonic() - began} | load
    results.save()
    return results


def sweep_times(rows: list[Row]) -> dict[str, pd.Series]:
    """Seconds of an iteration by size, for every sweep."""
    seconds = _of_last_run(rows)
    return {
        sweep: pd.Series(
            {
                size: seconds[_name(sweep, size)]
                for size in plan.sizes
                if _name(sweep, size) in seconds
            },
            dtype=float,
        )
        for sweep, plan in SWEEPS.items()
    }


def _of_last_run(rows: list[Row]) -> dict[str, float]:
    """Seconds by name; rows timed more or less often, or from another seed, are left out."""
    last = rows[-1]
    return {
        row.protocol: row.seconds
        for row in rows
        if (row.repetitions, row.seed) == (last.repetitions, last.seed)
    }


def slope(times: pd.Series) -> float:
    """The slope of ln time against ln size, by least squares over the three largest sizes."""
    if len(times) < 2:
        return math.nan
    tail = times.iloc[-3:]
    return float(np.polyfit(np.log(tail.index), np.log(tail), 1)[0])


def method_times(rows: list[Row]) -> dict[str, float]:
    """Seconds of an iteration of every method at the same size."""
    seconds = _of_last_run(rows)
    return {name: seconds[name] for name in METHOD_SETTINGS if name in seconds}


def markdown(rows: list[Row]) -> list[str]:
    """Slopes beside exponents, and the methods beside their formulas."""
    lines = [
        "| varied | sizes | ms per iteration | slope | exponent | O(·) |",
        "|---" * 6 + "|",
    ]
    for name, times in sweep_times(rows).items():
        plan = SWEEPS[name]
        sizes = ", ".join(str(size) for size in times.index)
        milliseconds = ", ".join(f"{1e3 * value:.3g}" for value in times)
        lines.append(
            f"| {name} ({plan.symbol}) | {sizes} | {milliseconds} | {slope(times):.2f} | "
            f"{plan.exponent} | {plan.formula} |"
        )
    lines += ["", "| method | ms per iteration | times E-Bayes | O(·) |", "|---" * 4 + "|"]
    methods = method_times(rows)
    for name, value in methods.items():
        ratio = value / methods.get("E-Bayes", math.nan)
        lines.append(f"| {name} | {1e3 * value:.3g} | {ratio:.2f} | {METHOD_SETTINGS[name][1]} |")
    return lines


def _name(sweep: str, size: int) -> str:
    return f"{sweep} = {size}"


SHORTEST, ROUNDS = "shortest", 30
"""What is made of several times, and how many there are."""
TITLE = "Time of one training iteration (Haussmann et al. 2021, appendix, cost table)"
NOTES = f"""\
One series; unless varied: M = {Setting().samples} samples, T = {Setting().length} steps, two hidden
layers of {Setting().width}, D = {Setting().states}, diagonal G, weights redrawn at every step,
E-PAC-Bayes without physics. In the sweeps over D the layers are {NARROW.width} wide and T is
{NARROW.length}. Times are those of the compiled gradient of the loss, the optimiser left
out: the shortest of {ROUNDS} calls, all rows in turns, since whatever else runs only adds.

- A load average before of more than a few tenths says that other processes ran beside. The shortest
  call feels that least, but where both cores are used it still does.
- Slopes are taken over the three largest sizes. They fall short of the exponents where a fixed
  cost, or a term of lower order, still has a share.
- The paper counts D³ for any full G because it inverts G at every step. A constant G is
  factorised once here, and each step solves a triangular system: D². Only a G that depends on the
  state costs D³.
- D-BNN (SGLD) is the gradient of the log posterior at one set of weights, which all M paths share;
  the noise of a Langevin step is left out like the optimiser of the others.
- E-Bayes has no path KL in its loss; here it is still computed forward, since every fit reports
  it.
- Up to {FEW_PATHS} paths, weight gradients are gathered at the end of the loop; with more they are
  added up in it, and from {PATHS_PER_DEVICE} for each device on they are spread over all devices.
  The slope in M runs across these changes.
- F ∝ width² holds where the product of two hidden layers dominates.
"""
