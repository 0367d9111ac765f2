"""A learned gate tells a right equation from a wrong one.

Lorenz with two equations on offer: the second, which is right, and a third whose sign is wrong.
γ starts at one half for both, is learned in [0, 1], and is then quantised to a declared grid Γ
and evaluated there, with ln|Γ| in the complexity term (Haussmann et al. 2021, after Theorem 1).
"""

import math
from dataclasses import replace

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import pandas as pd

from hybridsde.data import Batch
from hybridsde.datasets import lorenz
from hybridsde.experiments.lorenz import PROTOCOLS
from hybridsde.experiments.preset import Preset
from hybridsde.fit import Watch
from hybridsde.objective import EmpiricalPACBayes
from hybridsde.physics import known_drift
from hybridsde.run import fit

GRID = tuple(k / 10 for k in range(11))
"""Γ for one state; for two known states |Γ| = 11²."""


def offered(x, y, z, kappa, rho):
    """The second equation as it is, the third with its sign turned."""
    wrong = {"z": -lorenz.z_equation(x, y, z, rho)["z"]}
    return lorenz.y_equation(x, y, z, kappa) | wrong


def learn_gate(preset: Preset, *, seed: int, watch: Watch) -> tuple[pd.DataFrame, pd.DataFrame]:
    """γ before and after quantisation, and the terms of the loss and test error at each."""
    sequences, test = PROTOCOLS["24"].cut(lorenz.load(seed=seed))
    train = preset.pieces(sequences)
    physics = known_drift(offered, kappa=lorenz.TRUE["kappa"], rho=lorenz.TRUE["rho"])
    run = fit(
        replace(preset.model, physics=physics, gate="learn"),
        train,
        objective=preset.objective("e-pac-bayes"),
        solver=preset.solver,
        training=preset.training,
        callbacks=watch("gate"),
        seed=seed,
    )
    known = sum(run.model.known.gate.known)
    gates = len(GRID) ** known
    quantised = replace(
        run,
        model=eqx.tree_at(
            lambda m: m.known.gate, run.model, run.model.known.gate.quantised(jnp.array(GRID))
        ),
    )
    strengths = pd.DataFrame(
        {
            "learned": run.model.known.gate.value,
            "quantised": quantised.model.known.gate.value,
        },
        index=pd.Index(lorenz.STATES, name="state"),
    )
    rows = {}
    for name, which, size in (("learned", run, 1), ("quantised", quantised, gates)):
        objective = EmpiricalPACBayes(samples=DRAWS, gates=size)
        batch = Batch.of(train)
        compiled = eqx.filter_jit(objective)
        terms = compiled(which.model, which.solver, batch, batch.count, key=jr.key(seed))
        rows[name] = {
            "ln |Γ|": math.log(size),
            **{term: float(value) for term, value in terms._asdict().items()},
            "test MSE": which.score(test).loc["overall", "mse"],
        }
    return strengths, pd.DataFrame(rows).T.rename_axis("gate")


DRAWS = 20
"""Paths per series when the terms are evaluated after training."""
