"""The paper's Lorenz experiment: forecasts of 24 steps with one equation known, or none.

Haussmann et al. 2021, Table 1. The first half of a recording gives 20 training sequences of 24
observations, the second half 20 test sequences; the 23 later points of each are predicted from
its first.
"""

from dataclasses import dataclass, replace

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr

from hybridsde._types import Array, Float, Keys, PRNGKeyArray
from hybridsde.data import Batch
from hybridsde.datasets import lorenz
from hybridsde.fit import Callback, Fitted, Training, train_many
from hybridsde.forecast import evaluate
from hybridsde.model import HybridSDE
from hybridsde.objective import EmpiricalBayes, EmpiricalPACBayes
from hybridsde.physics import AbstractPhysics, NoPhysics, known_drift
from hybridsde.simulate import AbstractSolver, EulerMaruyama

SEQUENCES, LENGTH = 20, 24
PARAMETER_SD = 1.0
"""Spread of the error in each known parameter, drawn once per repetition."""

KNOWN = {
    "none": (),
    "x": ("zeta",),
    "y": ("kappa",),
    "z": ("rho",),
    "all": ("zeta", "kappa", "rho"),
}
_EQUATIONS = {
    "x": lorenz.x_equation,
    "y": lorenz.y_equation,
    "z": lorenz.z_equation,
    "all": lorenz.equations,
}


@dataclass(frozen=True)
class Preset:
    """A choice of model, training and solver."""

    model: HybridSDE
    """Without physics; each row brings its own."""
    training: Training
    solver: AbstractSolver
    samples: int
    """S, paths per series and gradient step."""


METHODS = {"e-bayes": EmpiricalBayes, "e-pac-bayes": EmpiricalPACBayes}

PRESETS = {
    "paper": Preset(
        HybridSDE(
            states=lorenz.STATES,
            diffusion=lorenz.DIFFUSION,
            noise=1.0,
            standardise=False,
            weights="local",
            initial_sd=0.1,
            last_layer=1.0,
        ),
        Training(epochs=100, batch_size=2, learning_rate=1e-3, schedule="constant", clip=None),
        EulerMaruyama(),
        samples=1,
    ),
    "recommended": Preset(
        HybridSDE(states=lorenz.STATES, diffusion=lorenz.DIFFUSION, noise=0.4),
        Training(epochs=500, batch_size=2, learning_rate=5e-3, schedule="cosine"),
        EulerMaruyama(),
        samples=2,
    ),
}


def sequences(path: Float[Array, "time state"], first: int) -> Batch:
    """Consecutive sequences of a recording, from observation `first` on."""
    end = first + SEQUENCES * LENGTH
    shape = (SEQUENCES, LENGTH)
    values = path[first:end].reshape(*shape, -1)
    return Batch(
        times=lorenz.INTERVAL * jnp.arange(first, end, dtype=path.dtype).reshape(shape),
        steps=jnp.full((SEQUENCES, LENGTH - 1), lorenz.INTERVAL),
        values=values,
        observed=jnp.ones(values.shape, bool),
        inputs=jnp.zeros((*shape, 0)),
        recorded=jnp.ones(shape, bool),
    )


def recording(*, key: PRNGKeyArray) -> tuple[Batch, Batch]:
    """Training and test sequences of one recording."""
    path = lorenz.observe(key=key)
    return sequences(path, 0), sequences(path, len(path) // 2)


def physics_of(known: str, *, key: PRNGKeyArray) -> AbstractPhysics:
    """The known equations, each parameter off by a standard normal error."""
    if known == "none":
        return NoPhysics()
    errors = PARAMETER_SD * jr.normal(key, (3,))
    wrong = {
        name: lorenz.TRUE[name] + error
        for name, error in zip(lorenz.TRUE, errors, strict=True)
        if name in KNOWN[known]
    }
    return known_drift(_EQUATIONS[known], **wrong)


@eqx.filter_jit
def _prepare(keys: Keys, known: str, preset: Preset):
    """Data sets and untrained models of all repetitions."""

    def one(key: PRNGKeyArray):
        data_key, physics_key, init_key = jr.split(key, 3)
        train, test = recording(key=data_key)
        physics = physics_of(known, key=physics_key)
        model = replace(preset.model, physics=physics).init(train, key=init_key)
        return train, test, model

    return eqx.filter_vmap(one)(keys)


def run_row(
    known: str,
    method: str,
    preset: Preset,
    *,
    repetitions: int,
    seed: int = 0,
    draws: int = 21,
    callbacks: tuple[Callback, ...] = (),
) -> tuple[dict[str, Float[Array, "seed column"]], Fitted]:
    """Train and score one row of the table, all repetitions as one program."""
    keys, fit_keys, test_keys = (jr.split(key, repetitions) for key in jr.split(jr.key(seed), 3))
    train, test, models = _prepare(keys, known, preset)
    fitted = train_many(
        models,
        train,
        METHODS[method](samples=preset.samples),
        solver=preset.solver,
        training=preset.training,
        callbacks=callbacks,
        keys=fit_keys,
    )
    scores = eqx.filter_vmap(
        lambda model, batch, key: evaluate(model, preset.solver, batch, draws, key=key)
    )(fitted.model, test, test_keys)
    return scores, fitted
