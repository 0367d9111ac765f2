"""A last look at the spreads: forecasts of recordings that were not trained on."""

from collections.abc import Mapping
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from scipy.special import stdtrit

from hybridsde._devices import over_seeds
from hybridsde._errors import InputError
from hybridsde._streams import Stream, stream
from hybridsde._types import Array, Float, Keys, PRNGKeyArray, Scalar
from hybridsde.certify.used_data import POSTERIOR
from hybridsde.data import Batch, Trajectories
from hybridsde.forecast import AbstractBayesianForecaster, AbstractForecaster, crps
from hybridsde.model import Standardiser
from hybridsde.run.run import Run

FACTORS = np.geomspace(0.1, 10.0, 13)
"""What a spread may be multiplied with. Neither end is ever taken: the optimum lies beyond it."""
DRAWS = 64
CONFIDENCE = 0.975
"""One-sided, of the test that a changed spread is better at all."""


def calibrate(run: Run, data: Trajectories) -> Run:
    """Multiply each estimated spread, of the dynamics and then of the noise, where that helps.

    Filtering judges both by what happens between neighbouring observations. Where measurement
    errors or missing physics last longer than that, forecasts over many steps need other spreads.
    A factor is judged on `data` by forecasts over the horizon and from row to row together; see
    `best_factors`. It is one unless another is better beyond the doubt that few recordings leave.
    Haussmann et al. 2021 choose G on held-out data in the same spirit. Spreads that were declared
    stay as they are.
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
    return calibrated(run, data, best_factors(run.forecaster, run.spec.batch(data), key=key))


def calibrated(run: Run, data: Trajectories, factors: Mapping[str, Scalar]) -> Run:
    """A run with these factors, which were found on these recordings."""
    metadata = replace(
        run.metadata,
        used=run.metadata.used.add(calibration=data),
        calibration={name: float(factor) for name, factor in factors.items()},
    )
    return replace(run, forecaster=scaled(run.forecaster, factors), metadata=metadata)


@eqx.filter_jit
def best_factors_of_many(
    forecasters: AbstractForecaster, batch: Batch, keys: Keys
) -> dict[str, Float[Array, " seed"]]:
    """`best_factors` of forecasters along a leading `seed` axis, with one batch for each."""

    def one(forecaster: AbstractForecaster, batch: Batch, key: PRNGKeyArray):
        return best_factors(forecaster, batch, key=key)

    return over_seeds(one, forecasters, batch, keys, one_by_one=True)


def best_factors(
    forecaster: AbstractForecaster, batch: Batch, *, key: PRNGKeyArray
) -> dict[str, Scalar]:
    """The factor of each spread, one after the other, that makes forecasts better beyond doubt.

    A series has the score CRPS(c)/CRPS(1) of forecasts over the horizon, plus the mean of
    −ln p(y_k | y_1..k−1) over its values where the forecaster can say it; both are proper.
    Observations count in units of their own spread, series as much as another.
    """
    now = len(FACTORS) // 2
    chosen = {name: jnp.ones(len(FACTORS)) for name in forecaster.spreads()}
    for name in chosen:
        grid = jnp.asarray(FACTORS)
        horizon, rows = losses_on_grid(forecaster, batch, {**chosen, name: grid}, key)
        found = horizon / jnp.mean(horizon[now]) + rows - rows[now]
        best = better_factor(grid, jnp.where(jnp.isfinite(found), found, jnp.inf))
        chosen[name] = jnp.full(len(FACTORS), best)
    return {name: factors[0] for name, factors in chosen.items()}


@eqx.filter_jit
def losses_on_grid(
    forecaster: AbstractForecaster,
    batch: Batch,
    factors: dict[str, Float[Array, " factor"]],
    key: PRNGKeyArray,
) -> tuple[Float[Array, "factor series"], Float[Array, "factor series"]]:
    """Over the horizon, and from row to row, of every series under spreads that are multiplied."""
    path_key, noise_key, row_key = jr.split(key, 3)
    later = slice(forecaster.context, None)
    values, seen = batch.values[:, later], batch.observed[:, later]
    spread = Standardiser.of(values, seen).sd
    count = jnp.maximum(seen.sum((1, 2)), 1)

    def losses(factors: dict[str, Scalar]) -> tuple[Float[Array, " series"], ...]:
        changed = scaled(forecaster, factors)
        predicted = changed.predict(batch, DRAWS, key=path_key)
        draws = predicted.after(forecaster.context).draws(key=noise_key)
        relative: Float[Array, "series time obs"] = crps(draws, values) / spread
        horizon = jnp.sum(relative, (1, 2), where=seen) / count
        if not isinstance(changed, AbstractBayesianForecaster):
            return horizon, jnp.zeros_like(horizon)
        return horizon, -changed.log_evidence(batch, key=row_key) / count

    return jax.lax.map(losses, factors)


def better_factor(
    factors: Float[Array, " factor"], losses: Float[Array, "factor series"]
) -> Scalar:
    """The smallest change that is better than none beyond doubt, and no worse than the best.

    Both by Student's t test of the paired differences over series. One where no factor passes,
    where there is a single series, and where the best is an end of the grid.
    """
    count = losses.shape[1]
    middle = len(factors) // 2
    if count < 2:
        return jnp.ones(())
    least = float(stdtrit(count - 1, CONFIDENCE))
    means = losses.mean(1)
    best = jnp.argmin(means)

    def beaten_by(other: Float[Array, " series"]) -> Float[Array, " factor"]:
        """By how many standard errors each factor is worse than another."""
        excess = losses - other
        error = jnp.std(excess, 1, ddof=1) / jnp.sqrt(count)
        return jnp.where(excess.mean(1) == 0, 0.0, excess.mean(1) / jnp.maximum(error, 1e-12))

    good = (beaten_by(losses[middle]) < -least) & (beaten_by(losses[best]) < least)
    inside = (best > 0) & (best < len(factors) - 1)
    change = jnp.where(good & jnp.isfinite(means), jnp.abs(jnp.log(factors)), jnp.inf)
    return jnp.where(jnp.any(good) & inside, factors[jnp.argmin(change)], 1.0)


def scaled(forecaster: AbstractForecaster, factors: Mapping[str, Scalar]) -> AbstractForecaster:
    """The same forecaster with spreads multiplied by numbers."""
    for name, factor in factors.items():
        forecaster = eqx.tree_at(
            lambda f, name=name: f.spreads()[name].unit.frozen,
            forecaster,
            replace_fn=lambda unit, factor=factor: unit * factor,
        )
    return forecaster
