"""From the rows of a history to labelled draws of what comes after them."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from hybridsde._types import Array, Float, Numbers, PRNGKeyArray
from hybridsde.data import Batch, Clock, Trajectories
from hybridsde.data.checks import check_whole
from hybridsde.forecast.forecast import Forecast, label
from hybridsde.forecast.forecaster import AbstractForecaster, Prediction
from hybridsde.forecast.plausible import cut_off, implausible, say_implausible
from hybridsde.forecast.spec import ModelSpec

ROWS_AT_ONCE = 1_000_000
"""Steps of sampled futures in one call, which bounds the memory that they take."""
PATHS_PER_WEIGHT = 4
"""Futures that share their weights, where the number of draws allows it."""


def forecast(
    spec: ModelSpec,
    forecaster: AbstractForecaster,
    history: Trajectories,
    clock: Float[np.ndarray, "series time"],
    inputs: Numbers | None = None,
    *,
    draws: int,
    paths_per_weight: int | None = None,
    plausible: tuple[tuple[float, float], ...] | None = None,
    key: PRNGKeyArray,
) -> Forecast:
    """Sampled futures of every trajectory of `history` at the times of `clock`.

    `inputs` hold u at those times; without them the last given ones are kept. Draws outside the
    `plausible` range of an observation are cut off there, and their share is said.
    """
    paths_per_weight = _shared(draws, paths_per_weight)
    if inputs is not None:
        inputs = np.asarray(inputs, float)
        wanted = (*clock.shape, len(spec.inputs))
        if inputs.shape != wanted or not np.isfinite(inputs).all():
            raise ValueError(
                f"`inputs` must be finite with shape {wanted}, but have {inputs.shape}."
            )
    context = spec.context
    path_key, noise_key = jr.split(key)
    batch = future(spec.encode(history), clock, inputs, context, spec.clock)
    found = _sample(forecaster, batch, draws, paths_per_weight, path_key).after(context)
    seen = forecaster.observation.raw(found.draws(key=noise_key))
    if plausible is not None:
        ends = jnp.asarray(plausible)
        say_implausible(float(implausible(seen, ends).mean()))
        seen = cut_off(seen, ends)
    where = (clock, history.times[:, 0], history.ids)
    return Forecast(
        label(spec.raw_states(np.asarray(found.states)), *where, spec.state_names, "state"),
        label(np.asarray(seen), *where, spec.observations, "obs"),
        paths_per_weight,
    )


def _shared(draws: int, paths_per_weight: int | None) -> int:
    """How many draws share their weights: as asked, or four where that divides the draws."""
    check_whole(draws, "draws")
    if paths_per_weight is None:
        return 1 if draws % PATHS_PER_WEIGHT else PATHS_PER_WEIGHT
    check_whole(paths_per_weight, "paths_per_weight")
    if draws % paths_per_weight:
        raise ValueError(
            f"`draws` must be a multiple of `paths_per_weight`, but they are {draws} and "
            f"{paths_per_weight}."
        )
    return paths_per_weight


def _sample(
    forecaster: AbstractForecaster, batch: Batch, draws: int, shared: int, key: PRNGKeyArray
) -> Prediction:
    """All draws, some at a time."""
    weights = draws // shared
    steps = batch.count * batch.solver_steps(1)
    size = int(np.clip(ROWS_AT_ONCE // max(1, steps * shared), 1, weights))
    parts = [
        _predict(forecaster, batch, size * shared, shared, chunk_key)
        for chunk_key in jr.split(key, -(-weights // size))
    ]
    if len(parts) == 1:
        return parts[0]

    def joined(*leaves: Array) -> Array:
        same = leaves[0].shape[0] == 1 and size * shared > 1  # one number for all draws
        return leaves[0] if same else jnp.concatenate(leaves)[:draws]

    return jax.tree.map(joined, *parts)


@eqx.filter_jit
def _predict(
    forecaster: AbstractForecaster, batch: Batch, draws: int, shared: int, key: PRNGKeyArray
) -> Prediction:
    return forecaster.predict(batch, draws, paths_per_weight=shared, key=key)


def clock_of(
    start: Trajectories, times: Numbers | None, elapsed: Numbers | None, context: int
) -> np.ndarray:
    """Forecast times on the clock of the data, one row per trajectory."""
    if (times is None) == (elapsed is None):
        raise ValueError("Give exactly one of `times` and `elapsed`.")
    first = start.times[:, :1]
    name = "times" if elapsed is None else "elapsed"
    given = np.asarray(times if elapsed is None else elapsed, float)
    rows = len(given) if given.ndim == 2 else len(start)
    if given.ndim not in (1, 2) or given.size == 0 or rows != len(start):
        raise ValueError(
            f"`{name}` must be one grid for all, or one row for each of the {len(start)} "
            f"trajectories, but has shape {given.shape}."
        )
    clock = np.broadcast_to(given, (len(start), given.shape[-1]))
    clock = clock if elapsed is None else first + clock
    whole = np.concatenate([start.times[:, context - 1 : context], clock], 1)
    if not np.isfinite(whole).all():
        raise ValueError(f"`{name}` must be finite.")
    early = np.argwhere(np.diff(whole, axis=1) < 0)
    if early.size:
        series, index = early[0]
        raise ValueError(
            f"`{name}` must not decrease or lie before the start of a trajectory, but for "
            f"{start.ids[series]!r} entry {index} is {clock[series, index]:g} after "
            f"{whole[series, index]:g}. Use `elapsed` for times since each start."
        )
    return clock


def future(
    start: Trajectories,
    times: Float[np.ndarray, "series time"],
    inputs: Float[np.ndarray, "series time input"] | None,
    context: int,
    clock: Clock,
) -> Batch:
    """A batch that begins with the first rows of `start` and asks for nothing but `times`."""
    given = slice(0, context)
    whole = np.concatenate([start.times[:, given], times], 1)
    rows = whole.shape[1]
    values = np.zeros((len(start), rows, len(start.states)))
    observed = np.zeros(values.shape, bool)
    values[:, given], observed[:, given] = start.values[:, given], start.observed[:, given]
    if inputs is None:
        inputs = np.repeat(start.inputs[:, context - 1 : context], times.shape[1], 1)
    u = np.concatenate([start.inputs[:, given], inputs], 1)
    return Batch(
        times=jnp.asarray(whole - clock.origin),
        steps=jnp.asarray(np.diff(whole)),
        values=jnp.asarray(values),
        observed=jnp.asarray(observed),
        inputs=jnp.asarray(u),
        recorded=jnp.ones(whole.shape, bool),
        fine=clock.grid(whole, u),
    )
