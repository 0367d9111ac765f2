"""Profile intervals of parameters: where the likelihood, all else fitted again, falls too far.

    { ξ : 2 (ln p(Y | θ̂) − max over others of ln p(Y | ξ, others)) ≤ χ²₁(0.9) }

(Venzon and Moolgavkar 1988).

Unlike intervals from the curvature at the best point they follow a likelihood that bends, do not
depend on the coordinates, and stay open where the data bound a parameter on one side only.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from scipy.stats import chi2

from hybridsde._errors import InputError
from hybridsde._parameters import trainable
from hybridsde.data import Batch
from hybridsde.hybrid import symmetric
from hybridsde.hybrid.forecaster import SDEForecaster
from hybridsde.hybrid.parameters import LEVEL, learned_names, parameters_of
from hybridsde.hybrid.scoring import Local, LogLikelihood, Prior, climb
from hybridsde.hybrid.sparse import LONG_CLIMB, about_fitted

LOOKS = 12
"""Places that are tried for an end at most."""
CLOSE = 0.02
"""An end is found where the fall is within this of what it should be."""
FURTHEST = 8.0
"""An end that is not found within so many standard errors is open."""


def profile(forecaster: SDEForecaster, batch: Batch) -> dict[str, dict[str, float | None]]:
    """Value and ends of the interval of every learned parameter; None for an end that is open.

    Or that was not found. The weights of networks stay as they are; of several networks with
    parameters of their own it is the interval of the first.
    """
    likelihood, about, prior, chosen = about_fitted(forecaster.model, forecaster.solver, batch)
    free = np.concatenate([chosen, np.ones(len(likelihood.others), bool)])
    best = climb(likelihood, likelihood(about.at, free), prior, free, LONG_CLIMB)
    bend = (best.information + np.diag(prior.precision))[np.ix_(free, free)]
    if not np.isfinite(bend).all():
        raise InputError("The likelihood of this run is not finite, so it has no profile.")
    errors = np.zeros(len(free))
    errors[free] = np.sqrt(np.maximum(np.diag(symmetric.inverse(bend)), 0.0))
    return {
        name: {
            "value": _value(likelihood, best.at, name),
            "low": _end(likelihood, best, prior, free, errors, place, name, -1),
            "high": _end(likelihood, best, prior, free, errors, place, name, 1),
        }
        for name, place in _places(likelihood).items()
    }


def _places(likelihood: LogLikelihood) -> dict[str, int]:
    """Where the number of each learned parameter stands in the vector of all."""
    model = likelihood.model(likelihood.start)
    moved, held = eqx.partition(model, trainable(model))
    flat, unflatten = ravel_pytree(moved)
    marked = eqx.combine(unflatten(jnp.arange(flat.size, dtype=flat.dtype)), held)
    known = parameters_of(marked.known.physics)
    return {
        name: likelihood.coefficients + int(np.asarray(jax.tree.leaves(known[name])[0]))
        for name in learned_names(model)
    }


def _value(likelihood: LogLikelihood, theta: np.ndarray, name: str) -> float | None:
    """The parameter; None beyond what single precision holds."""
    value = float(parameters_of(likelihood.model(theta).known.physics)[name].value)
    return value if np.isfinite(value) else None


def _end(
    likelihood: LogLikelihood,
    best: Local,
    prior: Prior,
    free: np.ndarray,
    errors: np.ndarray,
    place: int,
    name: str,
    side: int,
) -> float | None:
    """One end of one interval: regula falsi on the root of the fall, which is nearly a line."""
    wanted = float(np.sqrt(chi2.ppf(LEVEL, 1)))
    others = free.copy()
    others[place] = False
    top = best.value + prior.log_prob(best.at)

    def fall(away: float, near: Local) -> tuple[float, Local]:
        """√(2 Δ ln p) at so many standard errors from the best, others fitted again."""
        theta = near.at.copy()
        theta[place] = best.at[place] + side * away * errors[place]
        found = climb(likelihood, likelihood(theta, others), prior, others, LONG_CLIMB)
        lost = top - found.value - prior.log_prob(found.at) if found.finite else np.inf
        return float(np.sqrt(max(2 * lost, 0.0))), found

    inside, below, outside, above, near = 0.0, 0.0, np.inf, np.inf, best
    away = wanted
    for _ in range(LOOKS):
        height, found = fall(away, near)
        if abs(height - wanted) < CLOSE:
            return _value(likelihood, found.at, name)
        if height < wanted:
            inside, below, near = away, height, found
        else:
            outside, above = away, height
        if inside >= FURTHEST:
            return None
        if not np.isfinite(outside):
            away = min(FURTHEST, max(1.3 * away, away * wanted / max(height, 0.2)))
        elif np.isfinite(above):
            share = np.clip((wanted - below) / (above - below), 0.1, 0.9)
            away = inside + share * (outside - inside)
        else:
            away = 0.5 * (inside + outside)
    return None
