"""A learned gate tells a right equation from a wrong one.

Lorenz with two equations on offer: the second, which is right, and a third whose sign is wrong.
γ starts at one half for both, is learned in [0, 1], and is then quantised to a declared grid Γ
and evaluated there, with ln|Γ| in the complexity term (Haussmann et al. 2021, after Theorem 1).
"""

import math
from dataclasses import replace

import equinox as eqx
import jax.random as jr
import pandas as pd

from hybridsde.data import Batch
from hybridsde.datasets import lorenz
from hybridsde.fit import CallbackFactory
from hybridsde.hybrid import SDEForecaster
from hybridsde.paper.lorenz import PROTOCOLS
from hybridsde.paper.preset import Preset
from hybridsde.physics import known_drift
from hybridsde.run import fit


def offered(x, y, z, kappa, rho):
    """The second equation as it is, the third with its sign turned."""
    wrong = {"z": -lorenz.z_equation(x, y, z, rho)["z"]}
    return lorenz.y_equation(x, y, z, kappa) | wrong


def learn_gate(
    preset: Preset, *, seed: int, watch: CallbackFactory
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """γ before and after quantisation, and the terms of the loss and test error at each."""
    sequences, test = PROTOCOLS["24"].cut(lorenz.load(seed=seed))
    train = preset.pieces(sequences)
    physics = known_drift(offered, kappa=lorenz.TRUE["kappa"], rho=lorenz.TRUE["rho"])
    run = fit(
        replace(preset.model, physics=physics, gate="learn"),
        train,
        objective=preset.objective("e-pac-bayes"),
        training=preset.training,
        callbacks=watch("gate"),
        seed=seed,
    )
    learned = run.forecaster
    assert isinstance(learned, SDEForecaster)
    gate = learned.model.known.gate
    quantised = learned.on_grid()
    strengths = pd.DataFrame(
        {"learned": gate.value, "quantised": quantised.model.known.gate.value},
        index=pd.Index(lorenz.STATES, name="state"),
    )
    rows = {}
    for name, which in (("learned", learned), ("quantised", quantised)):
        objective = replace(preset.objective("e-pac-bayes"), samples=DRAWS)
        batch = Batch.of(train)
        terms = eqx.filter_jit(objective)(which.model, batch, batch.count, key=jr.key(seed))
        rows[name] = {
            "ln |Γ|": math.log(gate.choices),
            **{term: float(value) for term, value in terms._asdict().items()},
            "test MSE": replace(run, forecaster=which).score(test).loc["overall", "mse"],
        }
    return strengths, pd.DataFrame(rows).T.rename_axis("gate")


DRAWS = 20
"""Paths per series when the terms are evaluated after training."""
