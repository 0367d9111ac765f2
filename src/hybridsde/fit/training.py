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
    """

    epochs: int = 500
    batch_size: int = 2
    learning_rate: float = 5e-3
    schedule: str = "cosine"
    clip: float | None = 10.0
    patience: int | None = None
    bad_steps: int = 10

    def __post_init__(self):
        for name in ("epochs", "batch_size", "bad_steps"):
            check_whole(getattr(self, name), name)
        check_positive(self.learning_rate, "learning_rate")
        if self.clip is not None:
            check_positive(self.clip, "clip")
        if self.patience is not None:
            check_whole(self.patience, "patience")
        if self.schedule not in ("cosine", "constant"):
            raise ValueError(f"`schedule` must be cosine or constant, but is {self.schedule!r}.")

    def batches(self, series: int) -> int:
        """Gradient steps per epoch; the last batch is filled up, so all have one shape."""
        return -(-series // min(self.batch_size, series))

    def optimiser(self, series: int) -> optax.GradientTransformation:
        """The update rule."""
        rate = self.learning_rate
        if self.schedule == "cosine":
            steps = self.epochs * self.batches(series)
            rate = optax.cosine_decay_schedule(self.learning_rate, steps, alpha=0.01)
        adam = optax.adam(rate)
        return (
            adam if self.clip is None else optax.chain(optax.clip_by_global_norm(self.clip), adam)
        )
