"""What every declared model says of the recordings that it takes."""

import abc
import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hybridsde._errors import InputNotice
from hybridsde.data import Batch, Trajectories


class Declared(abc.ABC):
    """Columns, inputs and positive states, and how recordings are checked against them."""

    inputs: Sequence[str]
    positive: Sequence[str]

    @property
    @abc.abstractmethod
    def observations(self) -> tuple[str, ...]:
        """The columns of the recordings."""

    @property
    @abc.abstractmethod
    def context(self) -> int:
        """How many first rows a forecast is given."""

    def check(self, data: Trajectories) -> None:
        """A `ValueError` unless the recordings have the columns that the model observes."""
        names = self.observations
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
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InputNotice)
            usable = self.encode(data).observed
        empty = np.flatnonzero(~usable.any((0, 1)))
        if empty.size:
            raise ValueError(
                f"{data.states[empty[0]]!r} is never observed in these data"
                + (", or never above zero" if data.states[empty[0]] in self.positive else "")
                + ". Leave it out of `observed`."
            )

    def encode(self, data: Trajectories) -> Trajectories:
        """Recordings as the model sees them: logarithms of positive states.

        Values of zero or less count as missing there, which is said.
        """
        if not self.positive:
            return data
        logarithms = np.array([name in self.positive for name in data.states])
        wrong = data.observed & logarithms & (data.values <= 0)
        if wrong.any():
            column = int(np.argwhere(wrong)[0, 2])
            warnings.warn(
                f"{wrong.sum()} values of positive states are not above zero, the first of "
                f"{data.states[column]!r}; they count as missing.",
                InputNotice,
                stacklevel=2,
            )
        usable = data.observed & ~wrong
        logs = np.log(np.where(usable & logarithms, data.values, 1.0))
        return replace(data, values=np.where(logarithms, logs, data.values), observed=usable)

    def batch(self, data: Trajectories) -> Batch:
        """Recordings as the model sees them, on the device."""
        return Batch.of(self.encode(data))
