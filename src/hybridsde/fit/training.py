"""How to train: length, batches, learning rate, and when to give up."""

from dataclasses import dataclass

import optax

from hybridsde.data.checks import check_positive, check_whole


@dataclass(frozen=True)
class Training:
    """Adam with a learning-rate schedule and gradient clipping.

    - `epochs`: passes through the training series.
    - `batch_size`: series per gradient step.
    - `learning_rate`, `schedule`: "cosine" decays to a hundredth of it, "constant" does not.
    - `clip`: largest norm of a gradient; longer ones are shortened. None leaves them alone.
    - `patience`: with validation data, stop after this many epochs without improvement.
    - `bad_steps`: stop after this many consecutive steps without a finite loss and gradient.
    - `snippets`: pairs (epochs, rows), such as ((40, 30), (20, 100)): first train on random windows
      of 30 rows, then of 100. An epoch draws as many windows as would cover the series once, and
      `epochs` is the sum of theirs. None trains on whole series.
    """

    epochs: int = 500
    batch_size: int = 2
    learning_rate: float = 5e-3
    schedule: str = "cosine"
    clip: float | None = 10.0
    patience: int | None = None
    bad_steps: int = 10
    snippets: tuple[tuple[int, int], ...] | None = None

    def __post_init__(self):
        if self.snippets is not None:
            self._check_snippets()
        for name in ("epochs", "batch_size", "bad_steps"):
            check_whole(getattr(self, name), name)
        check_positive(self.learning_rate, "learning_rate")
        if self.clip is not None:
            check_positive(self.clip, "clip")
        if self.patience is not None:
            check_whole(self.patience, "patience")
        if self.schedule not in ("cosine", "constant"):
            raise ValueError(f"`schedule` must be cosine or constant, but is {self.schedule!r}.")

    def _check_snippets(self) -> None:
        for epochs, rows in self.snippets or ():
            check_whole(epochs, "snippets")
            check_whole(rows, "snippets", least=2)
        total = sum(epochs for epochs, _ in self.snippets or ())
        if total == 0:
            raise ValueError("`snippets` is empty. Give pairs of epochs and rows, or None.")
        object.__setattr__(self, "epochs", total)

    def length_at(self, epoch: int) -> int | None:
        """Rows of the windows that an epoch draws; None for whole series."""
        for epochs, rows in self.snippets or ():
            if epoch < epochs:
                return rows
            epoch -= epochs
        return None

    def batches(self, series: int, rows: int = 0, length: int | None = None) -> int:
        """Gradient steps per epoch; the last batch is filled up, so all have one shape."""
        windows = series * (1 if length is None else max(1, rows // length))
        return -(-windows // min(self.batch_size, series))

    def steps(self, series: int, rows: int) -> int:
        """Gradient steps of a whole fit."""
        stages = self.snippets or ((self.epochs, None),)
        return sum(epochs * self.batches(series, rows, length) for epochs, length in stages)

    def optimiser(self, steps: int) -> optax.GradientTransformation:
        """The update rule of a fit of so many steps."""
        rate = self.learning_rate
        if self.schedule == "cosine":
            rate = optax.cosine_decay_schedule(self.learning_rate, steps, alpha=0.01)
        adam = optax.adam(rate)
        return (
            adam if self.clip is None else optax.chain(optax.clip_by_global_norm(self.clip), adam)
        )
