"""What a user declares about a system before any data are seen."""

import abc
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from hybridsde._errors import InputError, InputNotice, notice
from hybridsde.data import Batch, Clock, Trajectories
from hybridsde.fit import Langevin, Training
from hybridsde.forecast.forecaster import AbstractForecaster
from hybridsde.forecast.inference import AbstractInference
from hybridsde.objective import AbstractObjective

FAR = 1e3
"""A column whose values are this many times their spread away from zero gets an offset."""
BELOW = 1e-3
"""A zero of a positive state lies below the smallest value, and this share of it lower."""
SAME_STEP = 1e-3
"""Relative difference of two time steps that are equal but for rounding."""
JITTER = 0.05
"""How far a step may be from the usual one, as a share of it, for systems that count rows as steps.
In a step that is so much longer a state moves by as much more, which is little beside what such
systems miss anyway. `look` calls recordings regular by the same share."""


@dataclass(frozen=True)
class Requirements:
    """What a system asks of recordings beyond the right columns."""

    inputs: bool = True
    """Whether it has a place for inputs."""
    regular: bool = False
    """Whether all rows must come in equal steps of time, but for `JITTER`."""
    complete: bool = False
    """Whether no value may be missing."""
    whole: bool = False
    """Whether long recordings must not be cut for training."""
    neighbours: bool = False
    """Whether two neighbouring rows must be complete somewhere in the training data."""
    package: str | None = None
    """What it needs of the extra `baselines`, if anything."""


class ModelSpec(abc.ABC):
    """A system as it is declared: its columns, what it asks of data, and how it is fitted."""

    inputs: Sequence[str]
    positive: Sequence[str]
    offsets: Mapping[str, float] | None = None
    """What is subtracted from columns that lie far from zero, in double precision; see `encode`."""
    smallest: Mapping[str, float] | None = None
    """Of positive columns that hold zeros: what a zero is below; see `encode`."""

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """What it is called."""

    @property
    @abc.abstractmethod
    def observations(self) -> tuple[str, ...]:
        """The columns of the recordings."""

    @property
    @abc.abstractmethod
    def state_names(self) -> tuple[str, ...]:
        """What moves: the columns of the states of a forecast."""

    @property
    @abc.abstractmethod
    def context(self) -> int:
        """How many first rows a forecast is given."""

    @property
    @abc.abstractmethod
    def clock(self) -> Clock:
        """How times become steps of a solver."""

    @abc.abstractmethod
    def settled(self, data: Trajectories) -> "ModelSpec":
        """With what was left open and follows from the training recordings before any fit."""

    @property
    @abc.abstractmethod
    def requirements(self) -> Requirements:
        """What it asks of recordings."""

    @abc.abstractmethod
    def inference(
        self,
        data: Batch,
        objective: AbstractObjective | None = None,
        training: Training | None = None,
        langevin: Langevin | None = None,
    ) -> AbstractInference:
        """How it is fitted to recordings like these; None leaves a choice to it."""

    @abc.abstractmethod
    def restore(self, notes: Mapping[str, Any]) -> AbstractForecaster:
        """A forecaster of the right structure, to be filled with saved numbers.

        `notes` are what `AbstractForecaster` leaves beside its arrays; see `notes_of`.
        """

    @abc.abstractmethod
    def notes_of(self, forecaster: AbstractForecaster) -> dict[str, Any]:
        """What must be saved beside the arrays of a forecaster, as plain data."""

    def check(self, data: Trajectories) -> None:
        """A `ValueError` unless it is installed and takes recordings of this kind."""
        needs, names = self.requirements, self.observations
        if needs.package and find_spec(needs.package) is None:
            raise InputError(
                f"{self.name} needs {needs.package}. Install it with: pip install "
                "'hybridsde[baselines]'"
            )
        if data.input_names and not needs.inputs:
            raise ValueError(
                f"{self.name} takes no inputs, but the data hold {', '.join(data.input_names)}."
            )
        if data.states != names:
            raise ValueError(
                f"The model observes {', '.join(names)}, but the data hold "
                f"{', '.join(data.states)}. Name the same columns in the same order."
            )
        if data.input_names != tuple(self.inputs):
            raise ValueError(
                f"The model takes the inputs {', '.join(self.inputs) or 'none'}, but the data hold "
                f"{', '.join(data.input_names) or 'none'}."
            )
        if needs.regular:
            common_step(data, self.name)
        if needs.complete:
            check_complete(self._encode_quietly(data), self.name)

    def check_later(self, data: Trajectories) -> None:
        """A `ValueError` unless every series goes on after its start."""
        self.check(data)
        short = np.flatnonzero(data.lengths <= self.context)
        if short.size:
            rows = int(data.lengths[short[0]])
            has = "one point" if rows == 1 else f"{rows} points"
            raise ValueError(
                f"Series {data.ids[short[0]]!r} has {has}, so there is nothing to predict "
                "after its start. Remove it or join it to its neighbours."
            )

    def check_training(self, data: Trajectories) -> None:
        """A `ValueError` unless these recordings can be learned from."""
        self.check_later(data)
        usable = self._encode_quietly(data).observed
        empty = np.flatnonzero(~usable.any((0, 1)))
        if empty.size:
            raise ValueError(
                f"{data.states[empty[0]]!r} is never observed in these data"
                + (", or never above zero" if data.states[empty[0]] in self.positive else "")
                + ". Leave it out of `observed`."
            )
        whole = np.all(usable, -1)
        if self.requirements.neighbours and not (whole[:, 1:] & whole[:, :-1]).any():
            raise ValueError(
                f"{self.name} begins with the differences of complete neighbouring rows, but there "
                "are none in these data. Compare with another system."
            )

    def encode(self, data: Trajectories) -> Trajectories:
        """Recordings as the model sees them: less their offsets, and logarithms of positive states.

        A zero of a positive state is read as a value below the `smallest`, where that is known, and
        else as a missing one. Both is said.
        """
        data = self.centred(data)
        if not self.positive:
            return data
        logarithms = np.array([name in self.positive for name in data.states])
        below = np.array([(self.smallest or {}).get(name, np.nan) for name in data.states])
        zero = data.observed & logarithms & (data.values <= 0)
        for column in np.flatnonzero(zero.any((0, 1))):
            least = below[column]
            read = "missing" if np.isnan(least) else f"below {least:.4g}, the smallest value"
            notice(
                f"{zero[..., column].sum()} values of {data.states[column]!r} are zero or less, "
                f"though it is positive: they are read as {read}.",
            )
        usable = data.observed & ~(zero & np.isnan(below))
        values = np.where(zero, below, data.values)
        logs = np.log(np.where(usable & logarithms, values, 1.0))
        return replace(data, values=np.where(logarithms, logs, data.values), observed=usable)

    def centred(self, data: Trajectories) -> Trajectories:
        """Recordings less the offsets of their columns."""
        if not self.offsets:
            return data
        less = np.where(data.observed, data.values - self.offset_of(data.states), 0.0)
        return replace(data, values=less)

    def offset_of(self, names: Sequence[str]) -> np.ndarray:
        """What is subtracted from each of these columns."""
        known = self.offsets or {}
        return np.array([known.get(name, 0.0) for name in names])

    def _encode_quietly(self, data: Trajectories) -> Trajectories:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InputNotice)
            return self.encode(data)

    def batch(self, data: Trajectories) -> Batch:
        """Recordings as the model sees them, on the device."""
        return Batch.of(self.encode(data), self.clock)

    def raw_states(self, h: np.ndarray) -> np.ndarray:
        """States in the units of the data."""
        logarithms = np.array([name in self.positive for name in self.state_names])
        with np.errstate(over="ignore"):  # what is endless is said, and cut off
            found = np.where(logarithms, np.exp(np.where(logarithms, h, 0.0)), h)
        return found + self.offset_of(self.state_names) if self.offsets else found

    def raw_observations(self, seen: np.ndarray) -> np.ndarray:
        """Observations that are no logarithms any more in the units of the data."""
        return seen + self.offset_of(self.observations) if self.offsets else seen


def offsets_of(data: Trajectories, positive: Sequence[str] = ()) -> dict[str, float]:
    """The roundest number about the middle of every column that lies far from zero.

    Single precision holds seven digits: of a column whose values are 1e9 ± 1 it would leave none.
    """
    found = {}
    for column, name in enumerate(data.states):
        seen = data.values[..., column][data.observed[..., column]]
        if name in positive or not seen.size:
            continue
        middle, spread = float(np.median(seen)), float(np.std(seen))
        if spread > 0 and abs(middle) > FAR * spread:
            found[name] = _roundest(middle - spread, middle + spread)
    return found


def smallest_of(data: Trajectories, positive: Sequence[str]) -> dict[str, float]:
    """A little less than the smallest value of every positive column that holds zeros too."""
    found = {}
    for column, name in enumerate(data.states):
        seen = data.values[..., column][data.observed[..., column]]
        if name in positive and (seen <= 0).any() and (seen > 0).any():
            found[name] = (1 - BELOW) * float(seen[seen > 0].min())
    return found


def _roundest(low: float, high: float) -> float:
    """The number with the fewest digits in an interval."""
    exponent = int(np.ceil(np.log10(max(abs(low), abs(high)))))
    while True:
        unit = 10.0**exponent
        number = np.ceil(low / unit) * unit
        if number <= high:
            return float(f"{number:.15g}")
        exponent -= 1


def blank_batch(spec: ModelSpec) -> Batch:
    """Recordings of the right shape, to build a model whose numbers are filled in later."""
    rows = spec.context + 4 + len(spec.observations)
    batch = Batch.regular(jnp.zeros((2, rows, len(spec.observations))), 1.0)
    return replace(batch, inputs=jnp.zeros((2, rows, len(spec.inputs))))


def structure_of(spec: ModelSpec, init: Any) -> Any:
    """What `init` would build for a spec: shapes, and no numbers."""
    return eqx.filter_eval_shape(lambda key: init(blank_batch(spec), key=key), jr.key(0))


def common_step(data: Trajectories, name: str, interval: float | None = None) -> float:
    """The time step that all rows share, but for a jitter; a `ValueError` where there is none."""
    steps = np.concatenate([np.diff(t[:n]) for t, n in zip(data.times, data.lengths, strict=True)])
    step = float(np.median(steps)) if interval is None and steps.size else interval or 1.0
    wrong = np.abs(steps - step) > JITTER * step
    if wrong.any():
        raise ValueError(
            f"{name} moves in equal steps of time, here of {step:g}, and allows for "
            f"{100 * JITTER:.0f} % of it, but a step of the data is {steps[wrong][0]:g}. Resample "
            "them to a grid, with missing values where it allows them, or compare with a system in "
            "continuous time."
        )
    return step


def check_complete(data: Trajectories, name: str) -> None:
    """A `ValueError` where a value is missing."""
    recorded = np.arange(data.times.shape[1]) < data.lengths[:, None]
    missing = np.argwhere(recorded[..., None] & ~data.observed)
    if missing.size:
        series, _, column = missing[0]
        raise ValueError(
            f"{name} needs every value of every row, but {data.states[column]!r} is missing in "
            f"series {data.ids[series]!r}. Fill it in, or compare with another system."
        )
