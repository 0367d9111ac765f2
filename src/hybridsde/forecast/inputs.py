"""The inputs of a forecast: given, looked up in a record, or held where that is asked for."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from hybridsde._errors import InputError
from hybridsde._types import Float, Int, Numbers
from hybridsde.data import Trajectories
from hybridsde.forecast.spec import ModelSpec

HOLD = "hold"
FutureInputs = Numbers | Trajectories | Literal["hold"]
"""Inputs at the times of a forecast, a record whose rows hold them, or "hold"."""
SAME_TIME = 1e-6
"""Times that differ by this share of the shortest gap of a record are one."""


@dataclass(frozen=True)
class Driven:
    """The times that a forecast moves through, with the inputs there, and which are asked for."""

    clock: Float[np.ndarray, "series time"]
    inputs: Float[np.ndarray, "series time input"]
    asked: Int[np.ndarray, "series asked"] | None = None
    """Places of the times that were asked for; all of them by default."""


def driven(
    spec: ModelSpec,
    history: Trajectories,
    clock: Float[np.ndarray, "series time"],
    inputs: FutureInputs | None,
) -> Driven:
    """Inputs at forecast times, by name where a record holds them.

    An `InputError` where a model has inputs and nothing is said of them: to keep the last ones for
    ever is a decision, not a default.
    """
    names = tuple(spec.inputs)
    wanted = (*clock.shape, len(names))
    if isinstance(inputs, Trajectories):
        return _along(spec, history, clock, inputs)
    if isinstance(inputs, str) and inputs != HOLD:
        raise InputError(f"`inputs` must be numbers, a record or {HOLD!r}, but is {inputs!r}.")
    if inputs is None and names:
        raise InputError(
            f"The model is driven by {', '.join(names)}: say what {_it(names)} after the last "
            f"given row. inputs=record takes a record whose rows hold {_them(names)} (as `test` "
            f"after `test.start()`), inputs=numbers has the shape {wanted}, and "
            f'inputs="{HOLD}" keeps the last given {"value" if len(names) == 1 else "values"}.'
        )
    if inputs is None or isinstance(inputs, str):
        last = history.inputs[np.arange(len(history)), history.lengths - 1]
        return Driven(clock, np.repeat(last[:, None], clock.shape[1], 1))
    given = np.asarray(inputs, float)
    if len(names) == 1 and given.shape in (clock.shape, clock.shape[1:]):
        given = given[..., None]
    if given.shape == wanted[1:]:
        given = np.broadcast_to(given, wanted)
    if given.shape != wanted or not np.isfinite(given).all():
        raise InputError(f"`inputs` must be finite with shape {wanted}, but have {given.shape}.")
    return Driven(clock, given)


def _it(names: tuple[str, ...]) -> str:
    return "it is" if len(names) == 1 else "they are"


def _them(names: tuple[str, ...]) -> str:
    return "it" if len(names) == 1 else "them"


def _along(
    spec: ModelSpec,
    history: Trajectories,
    clock: Float[np.ndarray, "series time"],
    record: Trajectories,
) -> Driven:
    """Every change of the inputs of a record counts, also between the times that are asked for."""
    if record.input_names != tuple(spec.inputs):
        raise InputError(
            f"The model takes the inputs {', '.join(spec.inputs) or 'none'}, but the record that "
            f"`inputs` names holds {', '.join(record.input_names) or 'none'}."
        )
    unknown = [one for one in history.ids if one not in record.ids]
    if unknown:
        raise InputError(
            f"The record that `inputs` names has no trajectory {unknown[0]!r}; it holds "
            f"{', '.join(record.ids[:6])}. Give both the same ids."
        )
    linear = spec.clock.interpolation == "linear"
    parts = []
    for series, (name, begin) in enumerate(zip(history.ids, history.ends, strict=True)):
        row = record.ids.index(name)
        times = record.times[row, : record.lengths[row]]
        inputs = record.inputs[row, : record.lengths[row]]
        near = SAME_TIME * np.min(np.diff(times), initial=1.0, where=np.diff(times) > 0)
        if spec.inputs and (clock[series, -1] > times[-1] + near or begin < times[0] - near):
            raise InputError(
                f"The inputs of {name!r} are known from {times[0]:g} to {times[-1]:g}, but the "
                f"forecast goes from {begin:g} to {clock[series, -1]:g}. Append rows with times "
                f'and inputs but without values, ask for fewer, or say inputs="{HOLD}" '
                "(--hold-inputs) to keep the last."
            )
        between = times[(times > begin + near) & (times < clock[series, -1] - near)]
        if spec.requirements.regular:  # every row is a step, so none may stand between them
            between = between[:0]
        gaps = np.abs(between[:, None] - clock[series]).min(1, initial=np.inf)
        merged = np.sort(np.concatenate([clock[series], between[gaps > near]]))
        if linear:
            seen = np.stack([np.interp(merged, times, one) for one in inputs.T], -1)
        else:
            seen = inputs[np.maximum(np.searchsorted(times, merged + near, "right") - 1, 0)]
        parts.append(
            (merged, seen.reshape(len(merged), -1), np.searchsorted(merged, clock[series]))
        )
    longest = max(len(merged) for merged, _, _ in parts)

    def stacked(arrays: list[np.ndarray]) -> np.ndarray:
        room = [(longest - len(one), one.ndim) for one in arrays]
        return np.stack(
            [
                np.pad(one, [(0, spare), *[(0, 0)] * (axes - 1)], mode="edge")
                for one, (spare, axes) in zip(arrays, room, strict=True)
            ]
        )

    moments, inputs, asked = zip(*parts, strict=True)
    return Driven(stacked(list(moments)), stacked(list(inputs)), np.stack(asked))


def kept_on(record: Trajectories, clock: Float[np.ndarray, "series time"]) -> Trajectories:
    """A record with one more row where a forecast ends later, its last inputs still there."""
    times, inputs = [], []
    for n, (rows, end) in enumerate(zip(record.lengths, clock[:, -1], strict=True)):
        later = end > record.times[n, rows - 1]
        times.append(np.append(record.times[n, :rows], [end] if later else []))
        inputs.append(record.inputs[n, [*range(rows), rows - 1] if later else slice(rows)])
    blank = [np.zeros((len(one), len(record.states))) for one in times]
    return Trajectories.from_arrays(
        times,
        blank,
        states=record.states,
        observed=[one.astype(bool) for one in blank],
        inputs=inputs,
        input_names=record.input_names,
        ids=record.ids,
    )
