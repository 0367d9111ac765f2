"""Learned physical parameters of many members with their errors, in one program."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from hybridsde._devices import over_seeds
from hybridsde._parameters import Fixed, trainable
from hybridsde._types import Array
from hybridsde.data import Batch
from hybridsde.estimate.filter import row_scores
from hybridsde.hybrid import SDEForecaster
from hybridsde.hybrid.parameters import MOST, parameters_of
from hybridsde.model import BayesianSDE, GaussianObservation
from hybridsde.run.fitting import Parameters
from hybridsde.simulate import AbstractSolver


def errors_of_many(forecasters: Any, batches: Batch, count: int) -> list[Parameters | None]:
    """`learned_parameters` of forecasters along a leading axis, each with recordings of its own."""
    if not isinstance(forecasters, SDEForecaster):
        return [None] * count
    model = forecasters.model
    known = parameters_of(model.known.physics)
    learned = {name: one for name, one in known.items() if not isinstance(one, Fixed)}
    names = tuple(name for name, one in learned.items() if np.ndim(one.value) == 1)
    if not names:
        return [None] * count
    values = np.stack([np.asarray(learned[name].value, float) for name in names], 1)
    errors = _errors(model, forecasters.solver, batches, names, values.shape)
    return [
        {
            name: {"value": float(value), "error": float(e) if np.isfinite(e) and e > 0 else None}
            for name, value, e in zip(names, row, spread, strict=True)
        }
        for row, spread in zip(values, errors, strict=True)
    ]


def _errors(
    model: BayesianSDE,
    solver: AbstractSolver,
    batches: Batch,
    names: tuple[str, ...],
    shape: tuple[int, ...],
) -> np.ndarray:
    """Roots of the diagonal of I⁻¹, I = Σ_k s_k s_kᵀ; see `hybridsde.hybrid.parameters`."""
    unknown = np.full(shape, np.nan)
    moved = jax.tree.leaves(eqx.filter(model.known.physics, trainable(model.known.physics)))
    if not isinstance(model.observation, GaussianObservation):
        return unknown
    if sum(leaf.size for leaf in moved) > MOST * shape[0]:
        return unknown
    slopes, by_raw = (np.asarray(one, float) for one in _slopes(model, batches, solver, names))
    with np.errstate(all="ignore"):
        for number, (scores, jacobian) in enumerate(zip(slopes, by_raw, strict=True)):
            if np.isfinite(scores).all():
                covariance = np.linalg.pinv(scores.T @ scores, hermitian=True)
                unknown[number] = np.sqrt(np.diag(jacobian @ covariance @ jacobian.T))
    return unknown


@eqx.filter_jit
def _slopes(models: BayesianSDE, batches: Batch, solver: AbstractSolver, names: tuple[str, ...]):
    """The scores of every row, and named parameters, by the raw numbers that training moves."""

    def one(model: BayesianSDE, batch: Batch):
        physics = model.known.physics
        moved, held = eqx.partition(physics, trainable(physics))
        flat, unflatten = ravel_pytree(moved)

        def scores(flat: Array) -> Array:
            changed = eqx.tree_at(
                lambda m: m.known.physics, model, eqx.combine(unflatten(flat), held)
            )
            return row_scores(changed, solver, batch).reshape(-1)

        def named(flat: Array) -> Array:
            found = parameters_of(eqx.combine(unflatten(flat), held))
            return jnp.stack([found[name].value for name in names])

        return jax.jacfwd(scores)(flat), jax.jacfwd(named)(flat)

    return over_seeds(one, models, batches)
