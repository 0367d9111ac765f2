"""From the rows of a history to labelled draws of what comes after them."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from hybridsde._errors import notice
from hybridsde._memory import check_memory
from hybridsde._types import Array, Float, Numbers, PRNGKeyArray
from hybridsde.data import Batch, Clock, Trajectories
from hybridsde.data.checks import check_whole
from hybridsde.forecast.forecast import Forecast, label
from hybridsde.forecast.forecaster import AbstractForecaster, Prediction
from hybridsde.forecast.inputs import Driven, FutureInputs, driven
from hybridsde.forecast.plausible import cut_off, implausible, say_implausible
from hybridsde.forecast.spec import ModelSpec

ROWS_AT_ONCE = 1_000_000
"""Steps of sampled futures in one call, which bounds the memory that they take."""
MOST_PAST = 5_000
"""A forecast looks back at so many rows at most: a filter has long forgotten those before."""
ANYTHING = (-np.inf, np.inf)
"""The plausible range of a state that nobody measured."""
MOST_NAMED = 3
"""Values that a notice names."""
PATHS_PER_WEIGHT = 4
"""Futures that share their weights, where the number of draws allows it."""


def forecast(
    spec: ModelSpec,
    forecaster: AbstractForecaster,
    history: Trajectories,
    clock: Float[np.ndarray, "series time"],
    inputs: FutureInputs | None = None,
    *,
    draws: int,
    paths_per_weight: int | None = None,
    plausible: tuple[tuple[float, float], ...] | None = None,
    key: PRNGKeyArray,
) -> Forecast:
    """Sampled futures of every trajectory of `history` at the times of `clock`, after its last row.

    `inputs` hold u at those times, or a record that does; see `driven`. Draws outside the
    `plausible` range of an observation are cut off there, and their share is said.
    """
    paths_per_weight = shared_weights(draws, paths_per_weight)
    moving = driven(spec, history, clock, inputs)
    context = spec.context
    columns = len(spec.state_names) + len(spec.observations)
    check_memory(
        float(draws) * moving.clock.size * columns,
        f"{draws} draws of {len(history)} trajectories at {clock.shape[1]} times",
        "Ask for fewer draws, or for some trajectories at a time.",
    )
    path_key, noise_key = jr.split(key)
    batch = future(spec.encode(history), moving, context, spec.clock)
    found = _sample(forecaster, batch, draws, paths_per_weight, path_key)
    found = found.after(context).at(moving.asked)
    return labelled(spec, forecaster, found, history, clock, paths_per_weight, plausible, noise_key)


def labelled(
    spec: ModelSpec,
    forecaster: AbstractForecaster,
    found: Prediction,
    history: Trajectories,
    clock: Float[np.ndarray, "series time"],
    paths_per_weight: int,
    plausible: tuple[tuple[float, float], ...] | None,
    noise_key: PRNGKeyArray,
) -> Forecast:
    """A prediction in the units of the data, with names; what is not plausible is said."""
    say_set_aside(found, history, spec.observations)
    seen = forecaster.observation.raw(found.draws(key=noise_key))
    states = spec.raw_states(np.asarray(found.states))
    if plausible is not None:
        believed = jnp.asarray(plausible)
        say_implausible(float(implausible(seen, believed).mean()))
        seen = cut_off(seen, believed)
        named = dict(zip(spec.observations, plausible, strict=True))
        ends = np.array([named.get(name, ANYTHING) for name in spec.state_names])
        low, high = (ends + spec.offset_of(spec.state_names)[:, None]).T
        states = np.clip(states, low, high)
    where = (clock, history.ends, history.ids)
    return Forecast(
        label(states, *where, spec.state_names, "state"),
        label(spec.raw_observations(np.asarray(seen)), *where, spec.observations, "obs"),
        paths_per_weight,
    )


def say_set_aside(found: Prediction, history: Trajectories, names: Sequence[str]) -> None:
    """A notice about last values that are beyond belief."""
    if found.set_aside is None or not found.set_aside.any():
        return
    wild = np.argwhere(np.asarray(found.set_aside).any(0))
    listed = ", ".join(f"{names[k]!r} of {history.ids[n]!r}" for n, k in wild[:MOST_NAMED])
    more = f" and {len(wild) - MOST_NAMED} more" if len(wild) > MOST_NAMED else ""
    notice(
        f"The last value of {listed}{more} is beyond belief after the rows before it. It was set "
        "aside: a spike would spoil the forecast, and of a jump the next row will tell."
    )


def shared_weights(draws: int, paths_per_weight: int | None) -> int:
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
    history: Trajectories,
    times: Numbers | None,
    elapsed: Numbers | None,
    steps: int | None,
    interval: float | None = None,
) -> np.ndarray:
    """Forecast times on the clock of the data, one row per trajectory, after its last row.

    `steps` are those of the usual interval of the history, or of `interval` where it has one row.
    """
    if sum(one is not None for one in (times, elapsed, steps)) != 1:
        raise ValueError("Give exactly one of `times`, `elapsed` and `steps`.")
    if steps is not None:
        check_whole(steps, "steps")
        interval = history.interval or interval
        if interval is None:
            raise ValueError(
                "One row has no interval to step by: give `elapsed` instead of `steps`."
            )
        elapsed = interval * np.arange(1, steps + 1)
    last = history.ends[:, None]
    name = "times" if elapsed is None else "elapsed"
    given = np.asarray(times if elapsed is None else elapsed, float)
    rows = len(given) if given.ndim == 2 else len(history)
    if given.ndim not in (1, 2) or given.size == 0 or rows != len(history):
        raise ValueError(
            f"`{name}` must be one grid for all, or one row for each of the {len(history)} "
            f"trajectories, but has shape {given.shape}."
        )
    clock = np.broadcast_to(given, (len(history), given.shape[-1]))
    clock = clock if elapsed is None else last + clock
    whole = np.concatenate([last, clock], 1)
    if not np.isfinite(whole).all():
        raise ValueError(f"`{name}` must be finite.")
    early = np.argwhere(np.diff(whole, axis=1) < 0)
    if early.size:
        series, index = early[0]
        raise ValueError(
            f"`{name}` must not decrease or lie before the last row that is given, but for "
            f"{history.ids[series]!r} entry {index} is {clock[series, index]:g} after "
            f"{whole[series, index]:g}. Use `elapsed` for times since then, or give fewer rows: "
            "`data.start()` is the first one."
        )
    return clock


def future(
    history: Trajectories,
    ahead: Driven,
    context: int,
    clock: Clock,
) -> Batch:
    """A batch that begins with the last rows of `history` and goes on at the times `ahead`.

    Its past is the whole of the history, where that is more than these rows.
    """
    each = np.arange(len(history))[:, None]
    last = history.lengths[:, None] - context + np.arange(context)
    whole = np.concatenate([history.times[each, last], ahead.clock], 1)
    rows = whole.shape[1]
    values = np.zeros((len(history), rows, len(history.states)))
    observed = np.zeros(values.shape, bool)
    values[:, :context] = history.values[each, last]
    observed[:, :context] = history.observed[each, last]
    u = np.concatenate([history.inputs[each, last], ahead.inputs], 1)
    return Batch(
        times=jnp.asarray(whole - clock.origin),
        steps=jnp.asarray(np.diff(whole)),
        values=jnp.asarray(values),
        observed=jnp.asarray(observed),
        inputs=jnp.asarray(u),
        recorded=jnp.ones(whole.shape, bool),
        fine=clock.grid(whole, u),
        past=None if np.all(history.lengths == context) else past_of(history, clock),
    )


def past_of(history: Trajectories, clock: Clock) -> Batch:
    """A history as the past of a batch; of a very long one the last part."""
    cuts = [(n, max(0, rows - MOST_PAST), rows) for n, rows in enumerate(map(int, history.lengths))]
    return Batch.of(history.cut(cuts), clock)
