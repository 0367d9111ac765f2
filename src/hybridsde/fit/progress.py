"""How far a fit is, for those who watch it."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Progress:
    """What a callback is told after each epoch; arrays over seeds where fits are mapped.

    Epochs of successive chunks count on.
    """

    epoch: int
    epochs: int
    terms: dict[str, np.ndarray]


Callback = Callable[[Progress], None]
CallbackFactory = Callable[[str], tuple[Callback, ...]]
"""Given the name of a fit, callbacks that follow it."""


@dataclass(frozen=True)
class ProgressReporter:
    """The callbacks, and how far all of it is: chunks of fits, each of so many epochs."""

    callbacks: tuple[Callback, ...]
    epochs: int
    chunk: int = 0
    chunks: int = 1

    def __call__(self, done: int, terms: dict[str, np.ndarray]) -> None:
        """After an epoch, or after a block of Langevin steps, which counts like one."""
        for callback in self.callbacks:
            callback(Progress(self.chunk * self.epochs + done, self.chunks * self.epochs, terms))
