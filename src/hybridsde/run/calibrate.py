"""A last look at the spreads: forecasts of recordings that were not trained on."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr

from hybridsde._devices import over_seeds
from hybridsde._errors import InputError
from hybridsde._streams import Stream, stream
from hybridsde._types import Array, Float, Keys, PRNGKeyArray, Scalar
from hybridsde.certify.used_data import POSTERIOR
from hybridsde.data import Batch, Trajectories
from hybridsde.forecast import AbstractForecaster, crps
from hybridsde.model import Standardiser
from hybridsde.run.run import Run

FACTORS = {
    "diffusion": (0.1, 0.15, 0.22, 0.33, 0.45, 0.6, 0.75, 0.9, 1.0, 1.15, 1.35, 1.6, 2.0),
    "noise": (0.5, 0.6, 0.75, 0.9, 1.0, 1.15, 1.35, 1.6, 2.0),
}
"""CRPS hardly feels small noise, but densities do: it is not shrunk further than to half."""
DRAWS = 64


def calibrate(run: Run, data: Trajectories) -> Run:
    """Multiply each estimated spread, of the dynamics and then of the noise, by its best factor.

    Filtering judges both by what happens between neighbouring observations. Where measurement
    errors or missing physics last longer than that, forecasts over many steps need other spreads.
    The best forecast of `data` is that of lowest CRPS; the factor nearest to one that is within a
    standard error of it is kept. Haussmann et al. 2021 choose G on held-out data in the same
    spirit. Spreads that were declared stay as they are.
    """
    if not run.forecaster.spreads():
        raise InputError("Only a learned diffusion or noise can be calibrated: declare 'learn'.")
    if POSTERIOR in run.metadata.used.steps:
        raise InputError(
            "This run was trained on trajectories that are to certify it, so its spreads must stay "
            "as they are. Calibrate before `certified`, or fit again."
        )
    run.subject.check(data)
    key = stream(run.seed, Stream.CALIBRATION)
    factors = _best_factors(run.forecaster, run.spec.batch(data), key)
    metadata = replace(
        run.metadata,
        used=run.metadata.used.add(calibration=data),
        calibration={name: float(factor) for name, factor in factors.items()},
    )
    return replace(run, forecaster=scaled(run.forecaster, factors), metadata=metadata)


@eqx.filter_jit
def calibrate_many(forecasters: AbstractForecaster, batch: Batch, keys: Keys) -> AbstractForecaster:
    """`calibrate` for forecasters along a leading `seed` axis, with one batch for each."""

    def one(forecaster: AbstractForecaster, batch: Batch, key: PRNGKeyArray) -> AbstractForecaster:
        factors = best_factors(forecaster, batch, key=key)
        return eqx.filter(scaled(forecaster, factors), eqx.is_array)

    found = over_seeds(one, forecasters, batch, keys, one_by_one=True)
    return eqx.combine(found, forecasters)


@eqx.filter_jit
def _best_factors(
    forecaster: AbstractForecaster, batch: Batch, key: PRNGKeyArray
) -> dict[str, Scalar]:
    return best_factors(forecaster, batch, key=key)


def best_factors(
    forecaster: AbstractForecaster, batch: Batch, *, key: PRNGKeyArray
) -> dict[str, Scalar]:
    """The factors of those above with the best CRPS, one spread after the other.

    Every observation counts in units of its own spread, every series as much as another.
    """
    path_key, noise_key = jr.split(key)
    later = slice(forecaster.context, None)
    values, seen = batch.values[:, later], batch.observed[:, later]
    spread = Standardiser.of(values, seen).sd

    def losses(factors: dict[str, Scalar]) -> Float[Array, " series"]:
        predicted = scaled(forecaster, factors).predict(batch, DRAWS, key=path_key)
        draws = predicted.after(forecaster.context).draws(key=noise_key)
        relative: Float[Array, "series time obs"] = crps(draws, values) / spread
        found = jnp.sum(relative, (1, 2), where=seen) / jnp.maximum(seen.sum((1, 2)), 1)
        return jnp.where(jnp.isfinite(found), found, jnp.inf)

    chosen: dict[str, Scalar] = {}
    for name in forecaster.spreads():
        grid = jnp.array(FACTORS[name])
        tried = jax.lax.map(lambda factor, name=name: losses({**chosen, name: factor}), grid)
        chosen[name] = least_change(grid, tried)
    return chosen


def least_change(factors: Float[Array, " factor"], losses: Float[Array, "factor series"]) -> Scalar:
    """The factor nearest to one whose loss is within a standard error of the lowest.

    The error is that of the mean difference between the two over series; few series seldom tell
    neighbouring factors apart. One where no loss is finite.
    """
    means = losses.mean(1)
    best = jnp.argmin(means)
    excess = losses - losses[best]
    error = jnp.std(excess, 1) / jnp.sqrt(jnp.maximum(losses.shape[1] - 1, 1))
    as_good = (excess.mean(1) <= error) & jnp.isfinite(means)
    change = jnp.where(as_good, jnp.abs(jnp.log(factors)), jnp.inf)
    return jnp.where(jnp.any(as_good), factors[jnp.argmin(change)], 1.0)


def scaled(forecaster: AbstractForecaster, factors: dict[str, Scalar]) -> AbstractForecaster:
    """The same forecaster with spreads multiplied by numbers."""
    for name, factor in factors.items():
        forecaster = eqx.tree_at(
            lambda f, name=name: f.spreads()[name].unit.frozen,
            forecaster,
            replace_fn=lambda unit, factor=factor: unit * factor,
        )
    return forecaster
