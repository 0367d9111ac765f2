"""Learned physical parameters with standard errors.

The scores s_k = ∂ ln p(y_k | y_1..k−1)/∂ξ of a filter are martingale differences at the truth, so
their outer products add up to the information, I = Σ_k s_k s_kᵀ (Berndt, Hall, Hall and Hausman
1974), and the errors are the roots of the diagonal of I⁻¹. The learned drift is held fixed: where
it could do the same work as a parameter, the error is too small, which `same_work` says.
"""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from hybridsde._parameters import AbstractParameter, Fixed, trainable
from hybridsde._types import Array, Float
from hybridsde.data import Batch
from hybridsde.estimate.filter import row_scores
from hybridsde.hybrid import symmetric
from hybridsde.hybrid.build import seen_by
from hybridsde.hybrid.forecaster import SDEForecaster
from hybridsde.hybrid.sparse import about_fitted
from hybridsde.hybrid.spec import HybridSDE
from hybridsde.model import BayesianSDE, GaussianObservation
from hybridsde.model.library import BayesianLibrary
from hybridsde.physics import AbstractPhysics, EquationPhysics, PositivePhysics
from hybridsde.physics.expression import names
from hybridsde.simulate import AbstractSolver

MOST = 40
"""With more learned numbers than this no errors are computed."""


def parameters_of(physics: AbstractPhysics) -> dict[str, AbstractParameter]:
    """Named numbers of known physics; none where it has no names for them."""
    inner = physics.inner if isinstance(physics, PositivePhysics) else physics
    found = getattr(inner, "parameters", {})
    return dict(found) if isinstance(found, Mapping) else {}


def learned_parameters(
    forecaster: SDEForecaster, batch: Batch
) -> dict[str, dict[str, float | None]]:
    """Value and standard error of every learned physical parameter; None where it is unknown."""
    physics = forecaster.model.known.physics
    learned = {
        name: one for name, one in parameters_of(physics).items() if not isinstance(one, Fixed)
    }
    values = {name: np.asarray(one.value, float) for name, one in learned.items()}
    scalar = {name: float(value) for name, value in values.items() if value.ndim == 0}
    if not scalar:
        return {}
    errors = _errors(forecaster, batch, tuple(scalar))
    if forecaster.model.own is not None:
        errors = _between_networks(forecaster.model, errors)
    return {name: {"value": value, "error": errors.get(name)} for name, value in scalar.items()}


def _between_networks(
    model: BayesianSDE, errors: Mapping[str, float | None]
) -> dict[str, float | None]:
    """Errors of one network, and how far the parameters of the others lie from it."""
    own, sde = model.own, model.typical()
    assert own is not None
    shared = model.driven_by(sde.learned.network)
    each = [
        parameters_of(own.given_to(shared, model.start, number).known.physics)
        for number in range(own.count)
    ]

    def whole(name: str, error: float | None) -> float | None:
        values = [float(one[name].value) for one in each]
        return None if error is None else float(np.hypot(error, np.std(values, ddof=1)))

    return {name: whole(name, error) for name, error in errors.items()}


def _errors(
    forecaster: SDEForecaster, batch: Batch, wanted: tuple[str, ...]
) -> dict[str, float | None]:
    model, solver = forecaster.model, forecaster.solver
    if not isinstance(model.observation, GaussianObservation):
        return {}
    moved, held = eqx.partition(model.known.physics, trainable(model.known.physics))
    flat, unflatten = ravel_pytree(moved)
    if flat.size > MOST:
        return {}

    def named(flat: Array) -> Array:
        found = parameters_of(eqx.combine(unflatten(flat), held))
        return jnp.stack([found[name].value for name in wanted])

    if isinstance(model.network, BayesianLibrary):
        covariance = _beside_coefficients(model, solver, batch)
        return _spreads(covariance, np.asarray(jax.jacfwd(named)(flat), float), wanted)

    @jax.jit
    def slopes(flat: Array) -> tuple[Float[Array, "row parameter"], Float[Array, "one parameter"]]:
        def scores(flat: Array) -> Array:
            physics = eqx.combine(unflatten(flat), held)
            changed = eqx.tree_at(lambda m: m.known.physics, model, physics)
            return row_scores(changed, solver, batch).reshape(-1)

        return jax.jacfwd(scores)(flat), jax.jacfwd(named)(flat)

    found, by_raw = (np.asarray(one, float) for one in slopes(flat))
    with np.errstate(all="ignore"):
        try:
            covariance = np.linalg.pinv(found.T @ found, hermitian=True)
        except np.linalg.LinAlgError:
            return {}
    return _spreads(covariance, by_raw, wanted)


def _beside_coefficients(
    model: BayesianSDE, solver: AbstractSolver, batch: Batch
) -> Float[np.ndarray, "parameter parameter"]:
    """The covariance of physical parameters, coefficients and all other numbers being open too."""
    likelihood, about, prior, chosen = about_fitted(model, solver, batch)
    free = np.flatnonzero(np.concatenate([chosen, np.ones(len(likelihood.others), bool)]))
    bend = about.information + np.diag(prior.precision)
    covariance = symmetric.inverse(bend[np.ix_(free, free)])
    here = likelihood.physical[free[chosen.sum() :] - likelihood.coefficients]
    at = chosen.sum() + np.flatnonzero(here)
    return covariance[np.ix_(at, at)]


def _spreads(
    covariance: np.ndarray, by_raw: np.ndarray, wanted: tuple[str, ...]
) -> dict[str, float | None]:
    with np.errstate(all="ignore"):
        spread = np.sqrt(np.diag(by_raw @ covariance @ by_raw.T))
    known = np.isfinite(spread) & (spread > 0)
    return {n: float(s) if ok else None for n, s, ok in zip(wanted, spread, known, strict=True)}


def same_work(spec: HybridSDE, learned: Mapping[str, Any]) -> tuple[str, ...]:
    """Learned parameters whose every equation also has a learned part that sees what they touch."""
    if not isinstance(spec.physics, EquationPhysics):
        return ()
    shared = []
    for name in learned:
        used = {e.state: {n.name for n in names(e.rate)} for e in spec.physics.equations}
        where = [state for state, found in used.items() if name in found]
        touched = [used[state] & {*spec.states, *spec.inputs} for state in where]
        seen = [seen_by(spec, state) for state in where]
        if where and all(s and one <= set(s) for one, s in zip(touched, seen, strict=True)):
            shared.append(name)
    return tuple(shared)
