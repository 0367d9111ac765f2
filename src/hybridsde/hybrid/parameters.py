"""Learned numbers with errors: parameters of the known equations, diffusion, measurement noise.

Their covariance is the inverse of the expected information of the filter's likelihood, I, together
with that of every other number that was learned beside them (Åström 1980); see `scoring`. The
weights of networks are held fixed: where they could do the same work as a parameter, its error is
too small, which `same_work` says.

Intervals are symmetric in the coordinates in which numbers are free, where the likelihood is
nearer to a parabola: logarithms of what is positive, logits of what has a range.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from scipy.stats import norm

from hybridsde._parameters import AbstractParameter, trainable
from hybridsde._types import Array, Float
from hybridsde.data import Batch
from hybridsde.hybrid import symmetric
from hybridsde.hybrid.build import seen_by
from hybridsde.hybrid.forecaster import SDEForecaster
from hybridsde.hybrid.sparse import about_fitted
from hybridsde.hybrid.spec import HybridSDE
from hybridsde.model import BayesianSDE, DiagonalDiffusion, GaussianObservation
from hybridsde.physics import AbstractPhysics, EquationPhysics, PositivePhysics
from hybridsde.physics.expression import names

LEVEL = 0.9
"""Of intervals."""

COLUMNS = ("value", "error", "low", "high")
Numbers = Mapping[str, Mapping[str, float | None]]
"""By name: value, standard error, and the ends of a 90 % interval; None where it is unknown."""


@dataclass(frozen=True)
class Estimates:
    """What was learned beside the drift."""

    parameters: Numbers = field(default_factory=dict)
    """Of the known equations."""
    diffusion: Numbers = field(default_factory=dict)
    """G, by state."""
    noise: Numbers = field(default_factory=dict)
    """σ, by observation."""


def parameters_of(physics: AbstractPhysics) -> dict[str, AbstractParameter]:
    """Named numbers of known physics; none where it has no names for them."""
    inner = physics.inner if isinstance(physics, PositivePhysics) else physics
    found = getattr(inner, "parameters", {})
    return dict(found) if isinstance(found, Mapping) else {}


def estimates(forecaster: SDEForecaster, batch: Batch) -> Estimates:
    """Every learned parameter and spread of a model whose likelihood a filter has."""
    model = forecaster.model
    named = _learned(model)
    if not isinstance(model.observation, GaussianObservation) or not any(named.values()):
        return Estimates()
    likelihood, about, prior, chosen = about_fitted(model, forecaster.solver, batch)
    free = np.flatnonzero(np.concatenate([chosen, np.ones(len(likelihood.others), bool)]))
    bend = about.information + np.diag(prior.precision)
    spread = np.full(len(likelihood.others), np.nan)
    if np.isfinite(bend).all():
        covariance = symmetric.inverse(bend[np.ix_(free, free)])
        variance = np.diag(covariance)[chosen.sum() :]
        spread = np.sqrt(np.where(variance > 0, variance, np.nan))
    return _with_errors(likelihood.model(about.at), model, named, spread)


def _with_errors(
    fitted: BayesianSDE,
    whole: BayesianSDE,
    named: Mapping[str, tuple[str, ...]],
    spread: Float[np.ndarray, " number"],
) -> Estimates:
    """Values, errors and intervals, from the spreads of the numbers as they are free.

    Each value depends on one of them, so a step along all at once moves every value by its own.
    """
    moved, held = eqx.partition(fitted, trainable(fitted))
    flat, unflatten = ravel_pytree(moved)

    def read(flat: Array) -> Array:
        model = eqx.combine(unflatten(flat), held)
        return jnp.concatenate([_numbers(model, kind, keys) for kind, keys in named.items()])

    step = jnp.asarray(spread, flat.dtype)
    value, error = (np.asarray(one, float) for one in jax.jvp(read, (flat,), (step,)))
    z = float(norm.ppf(0.5 + LEVEL / 2))
    ends = np.sort([np.asarray(read(flat + sign * z * step), float) for sign in (-1, 1)], 0)
    # Nothing bounds the logarithm of a spread from below that may as well be zero.
    spreads = np.repeat([key != "parameters" for key in named], [len(k) for k in named.values()])
    untold = spreads & (np.abs(error) > value)
    error, between = np.abs(error), _between_networks(whole, named)
    with np.errstate(all="ignore"):
        wider = np.hypot(error, between) / error
    low, high = value - wider * (value - ends[0]), value + wider * (ends[1] - value)
    ends = np.where(untold, np.nan, np.stack([low, high]))
    rows = np.stack([value, wider * error, *ends], 1)
    found, first = {}, 0
    for kind, keys in named.items():
        found[kind] = {
            key: dict(zip(COLUMNS, map(_finite, row), strict=True))
            for key, row in zip(keys, rows[first:], strict=False)
        }
        first += len(keys)
    return Estimates(**found)


def _finite(number: float) -> float | None:
    return float(number) if np.isfinite(number) else None


def _learned(model: BayesianSDE) -> dict[str, tuple[str, ...]]:
    """Names of learned numbers, by kind."""
    return {
        "parameters": learned_names(model),
        "diffusion": _spread_names(_diffusion(model), model.known.states),
        "noise": _spread_names(model.observation.sd, model.observation.names),
    }


def learned_names(model: BayesianSDE) -> tuple[str, ...]:
    """Parameters of the known equations that are single numbers and learned."""
    known = parameters_of(model.known.physics).items()
    return tuple(name for name, one in known if _is_learned(one) and np.ndim(one.value) == 0)


def _is_learned(parameter: AbstractParameter) -> bool:
    return any(jax.tree.leaves(trainable(parameter)))


def _spread_names(spread: AbstractParameter | None, names: tuple[str, ...]) -> tuple[str, ...]:
    """One for each number; one number stands for all."""
    if spread is None or not _is_learned(spread):
        return ()
    return names if np.ndim(spread.value) else ("all",)


def _diffusion(model: BayesianSDE) -> AbstractParameter | None:
    return model.diffusion.sd if isinstance(model.diffusion, DiagonalDiffusion) else None


def _numbers(model: BayesianSDE, kind: str, keys: tuple[str, ...]) -> Float[Array, " key"]:
    """Values of one kind."""
    if not keys:
        return jnp.zeros(0)
    if kind == "parameters":
        known = parameters_of(model.known.physics)
        return jnp.stack([known[key].value for key in keys])
    spread = _diffusion(model) if kind == "diffusion" else model.observation.sd
    assert spread is not None
    return jnp.atleast_1d(spread.value)


def _between_networks(
    model: BayesianSDE, named: Mapping[str, tuple[str, ...]]
) -> Float[np.ndarray, " value"]:
    """How far networks with numbers of their own lie apart in each value; zero without any."""
    own, total = model.own, sum(map(len, named.values()))
    if own is None:
        return np.zeros(total)
    shared = model.driven_by(model.typical().learned.network)

    def of(number: int) -> np.ndarray:
        sde = own.given_to(shared, model.start, number)
        one = replace(model, known=sde.known, diffusion=sde.diffusion)
        return np.concatenate([_numbers(one, kind, keys) for kind, keys in named.items()])

    return np.std([of(number) for number in range(own.count)], axis=0, ddof=1)


def same_work(spec: HybridSDE, learned: Sequence[str]) -> tuple[str, ...]:
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
