"""What a record says of the states: labelled draws, imputed values, innovations, evidence."""

from dataclasses import dataclass, replace

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pandas as pd
import xarray as xr
from scipy.stats import kurtosis

from hybridsde._errors import InputError
from hybridsde._types import PRNGKeyArray, Reading
from hybridsde.data import Batch, Trajectories
from hybridsde.estimate.choices import AUTO, EXTENDED, PARTICLES, estimator_of
from hybridsde.estimate.estimator import AbstractEstimator
from hybridsde.forecast.export import summarised
from hybridsde.forecast.forecast import label
from hybridsde.forecast.forecaster import AbstractStateEstimator, StatesGiven
from hybridsde.forecast.future import PATHS_PER_WEIGHT
from hybridsde.forecast.spec import ModelSpec

PATH_STEPS = 2_000_000
"""Steps of all drawn paths in one call, which bounds the memory that they take."""
EXCESS, TAIL_ERRORS = 1.0, 4.0
"""Tails are heavy where the kurtosis exceeds a Gaussian's by this much and so many errors of it."""
FEWEST = 30
"""Errors that say something of tails."""
MOST_ROWS = 20_000
"""Longer records are not given to particles unasked."""
CLEARLY = 2.0
"""Particles must be better than a Gaussian by so much in log evidence."""


@dataclass(frozen=True, eq=False)
class StateEstimate:
    """Draws of every state at every row, hidden ones too.

    `states` have dimensions draw, trajectory, time, state; `observations` are what would be
    measured there without noise, which fills in missing values. Draws of `smooth` are whole paths.
    """

    states: xr.DataArray
    observations: xr.DataArray
    innovations: xr.DataArray
    """Errors of forecasts from row to row in units of their own spread; NaN where none was made."""
    log_evidence: xr.DataArray
    """Ln p(y_1, y_2, … | y_0) of each trajectory, the weights integrated out."""
    effective: xr.DataArray
    """How many draws of the weights a trajectory leaves; few: it says much about them."""
    estimator: Reading
    """How the states were estimated, by name."""
    why: str
    """Why so, in a sentence."""

    def mean(self) -> xr.DataArray:
        """Mean of the states."""
        return self.states.mean("draw")

    def quantile(self, q: float | list[float]) -> xr.DataArray:
        """Quantiles of the states."""
        return self.states.quantile(q, "draw")

    def table(self) -> pd.DataFrame:
        """Mean, standard deviation and quantiles of every state: one row per number."""
        return summarised(self.states.rename({"state": "obs"})).rename(columns={"obs": "state"})

    def dataset(self) -> xr.Dataset:
        """Every draw, with innovations and evidence."""
        return xr.Dataset(
            {
                "states": self.states,
                "observations": self.observations,
                "innovations": self.innovations,
                "log_evidence": self.log_evidence,
            }
        )


def estimate_states(
    spec: ModelSpec,
    forecaster: AbstractStateEstimator,
    data: Trajectories,
    *,
    smooth: bool,
    estimator: Reading = AUTO,
    draws: int,
    key: PRNGKeyArray,
) -> StateEstimate:
    """The states of every trajectory, by a named estimator or by one that suits.

    With "auto" a Gaussian is carried along, and looked at: where the errors from row to row have
    much heavier tails than a Gaussian, particles are tried too, and kept where the record is
    likelier under them.
    """

    def estimated(name: Reading, why: str) -> StateEstimate:
        return _estimate(spec, forecaster, data, name, why, smooth=smooth, draws=draws, key=key)

    if estimator != AUTO:
        estimator_of(estimator)
        return estimated(estimator, "As asked for.")
    found = estimated(EXTENDED, "Errors from row to row look Gaussian.")
    tails = heavy_tails(found.innovations.values)
    if tails is None:
        return found
    if data.times.size > MOST_ROWS:
        return replace(found, why=f"{tails}; particles were not tried on so many rows.")
    try:
        tried = estimated(PARTICLES, "")
    except InputError as error:
        return replace(found, why=f"{tails}. {error}")
    gain = float(tried.log_evidence.sum() - found.log_evidence.sum())
    likelier = "more" if gain >= 0 else "less"
    said = (
        f"{tails}; with particles instead of Gaussians the logarithm of the probability of these "
        f"records is {abs(gain):.1f} {likelier}."
    )
    return replace(tried if gain > CLEARLY else found, why=said)


def heavy_tails(z: np.ndarray) -> str | None:
    """What is not Gaussian about standardised errors; None where nothing is.

    The kurtosis of n normal numbers is 3 ± √(24/n).
    """
    z = z[np.isfinite(z)]
    if len(z) < FEWEST:
        return None
    excess = float(kurtosis(z))
    if excess < max(EXCESS, TAIL_ERRORS * np.sqrt(24 / len(z))):
        return None
    return f"Errors from row to row have heavy tails (kurtosis {3 + excess:.1f}, a Gaussian 3)"


def _estimate(
    spec: ModelSpec,
    forecaster: AbstractStateEstimator,
    data: Trajectories,
    estimator: Reading,
    why: str,
    *,
    smooth: bool,
    draws: int,
    key: PRNGKeyArray,
) -> StateEstimate:
    """The states of every trajectory, some trajectories at a time."""
    shared = 1 if draws % PATHS_PER_WEIGHT else PATHS_PER_WEIGHT
    batch = spec.batch(data)
    chosen = estimator_of(estimator)
    width = max(draws, chosen.width * draws // shared) * batch.solver_steps(1)
    size = max(1, PATH_STEPS // max(1, width))
    parts = []
    for begin in range(0, len(data), size):
        some = batch.take(jnp.arange(begin, min(begin + size, len(data))))
        own = jr.fold_in(key, begin)
        parts.append(_states(forecaster, some, chosen, draws, smooth, shared, own))
    observation = forecaster.observation
    states = np.concatenate([np.asarray(one.states) for one in parts], 1)
    seen = [np.asarray(observation.raw(observation.mean(one.states))) for one in parts]
    where = (data.times, data.times[:, 0], data.ids)
    innovations = np.concatenate([np.asarray(one.innovations) for one in parts])

    def per_trajectory(name: str) -> xr.DataArray:
        numbers = np.concatenate([np.asarray(getattr(one, name)) for one in parts])
        return xr.DataArray(numbers, dims="trajectory", coords={"trajectory": list(data.ids)})

    return StateEstimate(
        label(spec.raw_states(states), *where, spec.state_names, "state"),
        label(spec.raw_observations(np.concatenate(seen, 1)), *where, spec.observations, "obs"),
        label(innovations[None], *where, spec.observations, "obs").isel(draw=0, drop=True),
        per_trajectory("log_evidence"),
        per_trajectory("effective"),
        estimator,
        why,
    )


@eqx.filter_jit
def _states(
    forecaster: AbstractStateEstimator,
    batch: Batch,
    estimator: AbstractEstimator,
    draws: int,
    smooth: bool,
    shared: int,
    key: PRNGKeyArray,
) -> StatesGiven:
    return forecaster.states_given(
        batch, draws, smooth=smooth, estimator=estimator, paths_per_weight=shared, key=key
    )
