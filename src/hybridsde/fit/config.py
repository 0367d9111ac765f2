"""How to train: length, batches, learning rate, and when to give up."""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import optax

from hybridsde._types import Array, Int, Scalar
from hybridsde._types import Schedule as ScheduleName
from hybridsde.data.checks import check_positive, check_whole

NEVER = 2**31 - 1
"""More epochs than any fit has."""
FINAL_RATES = {"cosine": 0.01, "constant": 1.0}
"""The learning rate at the end, as a share of that at the beginning."""
LONGEST = 120
"""Longer recordings are cut into windows of this many times for training."""


@dataclass(frozen=True)
class Training:
    """Adam with a learning-rate schedule and gradient clipping.

    - `epochs`: after each of them validation data are looked at.
    - `passes`: through the training series in an epoch.
    - `batch_size`: series per gradient step.
    - `learning_rate`, `schedule`: "cosine" decays to a hundredth of it, "constant" does not.
    - `clip`: largest norm of a gradient; longer ones are shortened. None leaves them alone.
    - `patience`: with validation data, stop after this many epochs without improvement.
    - `bad_steps`: stop after this many consecutive steps without a finite loss and gradient.
    - `longest`: `fit` cuts longer recordings into windows of this many times, each of which begins
      at the last time of the one before. None leaves them whole.
    - `windows`: pairs (epochs, rows), such as ((40, 30), (20, 100)): first train on random windows
      of 30 rows, then of 100. An epoch draws as many windows as would cover the series once, and
      `epochs` is the sum of theirs. None trains on whole series.

    Numbers of epochs, rates and limits are data to the compiled program: changing them compiles
    nothing.
    """

    epochs: int = 500
    batch_size: int = 4
    learning_rate: float = 1e-2
    schedule: ScheduleName = "cosine"
    clip: float | None = 10.0
    patience: int | None = None
    bad_steps: int = 10
    longest: int | None = LONGEST
    windows: tuple[tuple[int, int], ...] | None = None
    passes: int = 1

    def __post_init__(self):
        if self.windows is not None:
            self._check_windows()
        for name in ("epochs", "batch_size", "bad_steps", "passes"):
            check_whole(getattr(self, name), name)
        check_positive(self.learning_rate, "learning_rate")
        if self.clip is not None:
            check_positive(self.clip, "clip")
        if self.patience is not None:
            check_whole(self.patience, "patience")
        if self.longest is not None:
            check_whole(self.longest, "longest", least=2)
        if self.schedule not in FINAL_RATES:
            raise ValueError(f"`schedule` must be cosine or constant, but is {self.schedule!r}.")

    def _check_windows(self) -> None:
        for epochs, rows in self.windows or ():
            check_whole(epochs, "windows")
            check_whole(rows, "windows", least=2)
        total = sum(epochs for epochs, _ in self.windows or ())
        if total == 0:
            raise ValueError("`windows` is empty. Give pairs of epochs and rows, or None.")
        object.__setattr__(self, "epochs", total)

    def length_at(self, epoch: int) -> int | None:
        """Rows of the windows that an epoch draws; None for whole series."""
        for epochs, rows in self.windows or ():
            if epoch < epochs:
                return rows
            epoch -= epochs
        return None

    def batches(self, series: int, rows: int = 0, length: int | None = None) -> int:
        """Gradient steps per epoch; the last batch is filled up, so all have one shape."""
        return self.passes * batches_of(self.batch_size, series, rows, length)

    def steps(self, series: int, rows: int) -> int:
        """Gradient steps of a whole fit."""
        stages = self.windows or ((self.epochs, None),)
        return sum(epochs * self.batches(series, rows, length) for epochs, length in stages)


def batches_of(batch_size: int, series: int, rows: int, length: int | None) -> int:
    """Batches that cover the series once, or as many windows of them as would."""
    windows = series * (1 if length is None else max(1, rows // length))
    return -(-windows // min(batch_size, series))


class Schedule(eqx.Module):
    """The numbers of a `Training` as arrays, which a compiled epoch takes as data."""

    learning_rate: Scalar
    final: Scalar
    """Share of the learning rate that is left at the end."""
    steps: Scalar
    """Gradient steps of the whole fit."""
    clip: Scalar
    patience: Int[Array, ""]
    bad_steps: Int[Array, ""]

    @classmethod
    def of(cls, training: Training, steps: int) -> "Schedule":
        """For a fit of so many gradient steps."""
        patience = NEVER if training.patience is None else training.patience
        return cls(
            learning_rate=jnp.asarray(training.learning_rate, float),
            final=jnp.asarray(FINAL_RATES[training.schedule], float),
            steps=jnp.asarray(steps, float),
            clip=jnp.asarray(jnp.inf if training.clip is None else training.clip, float),
            patience=jnp.asarray(patience),
            bad_steps=jnp.asarray(training.bad_steps),
        )

    def rate(self, count: Any) -> Scalar:
        """η_k = η [(1 − a) ½(1 + cos πk/K) + a]: a half cosine from η to aη over K steps."""
        done = jnp.minimum(jnp.asarray(count, self.steps.dtype), self.steps) / self.steps
        cosine = 0.5 * (1 + jnp.cos(jnp.pi * done))
        return self.learning_rate * ((1 - self.final) * cosine + self.final)

    def optimiser(self) -> optax.GradientTransformation:
        """Clipping, then Adam."""
        return optax.chain(optax.clip_by_global_norm(self.clip), optax.adam(self.rate))
