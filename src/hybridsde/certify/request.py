"""What certificate is asked for, and the sentence that a bound amounts to."""

import math
from dataclasses import dataclass

from hybridsde._errors import InputError, suggest
from hybridsde._types import Dependence
from hybridsde.certify.losses import AbstractLoss
from hybridsde.data.checks import check_whole

PAC_BAYES = ("ub", "kl", "catoni")
HOLD_OUT = ("holdout", "holdout-kl")
KINDS = ("auto", *PAC_BAYES, *HOLD_OUT, "paper")


@dataclass(frozen=True)
class CertificateRequest:
    """What is to be certified, and how; checked on creation."""

    bound: str = "auto"
    delta: float = 0.05
    models_compared: int = 1
    """How many models were compared on the certified trajectories."""
    dependence: Dependence = "iid"
    ensemble: int = 1
    """Draws of the weights in one forecast; each costs its share of the KL."""
    draws: int = 10_000
    """Sampled forecasters in all."""
    gate_values: int | None = None
    """|Γ| of the paper's bound: how many values a given γ was chosen from, 1 by default. A learned
    γ brings its own."""

    def __post_init__(self):
        if self.bound not in KINDS:
            raise InputError(
                f"`bound` must be one of {', '.join(KINDS)}, but is {self.bound!r}."
                f"{suggest(self.bound, KINDS)}"
            )
        if not 0 < self.delta < 1:
            raise InputError(f"`delta` must lie strictly between 0 and 1, but is {self.delta}.")
        for name in ("models_compared", "ensemble", "draws"):
            check_whole(getattr(self, name), name)
        if self.gate_values is not None:
            check_whole(self.gate_values, "gate_values")

    def statement(self, loss: AbstractLoss, n: int, value: float, who: str) -> str:
        """What a bound of this value says; the number is rounded up."""
        sure = f"With probability {1 - self.delta:.4g} over"
        below = f"{math.ceil(1000 * value - 1e-9) / 1000:.3f}"
        if value >= 1:
            return (
                f"Vacuous: no promise about the {loss.describe()} follows from these trajectories."
            )
        if self.dependence == "sequential":
            return (
                f"{sure} the course of the recording, the {loss.describe()}, that was to be "
                f"expected at the start of each of these {n} windows given all that came before, "
                f"was below {below} on average, {who}. Nothing is said about other starts or later "
                "times."
            )
        return (
            f"{sure} the draw of these {n} trajectories and of what was sampled, the expected "
            f"{loss.describe()}, on a new trajectory from the same source, is below {below}, {who}."
        )

    def assumptions(self, forecasts: str) -> tuple[str, ...]:
        """What the statement rests on and nobody checked; `forecasts` says how they are made."""
        source = (
            "The trajectories are independent of each other and of the fit, and new ones come from "
            "the same source. Only exact copies of what was fitted are recognised."
            if self.dependence == "iid"
            else "The prior was fitted to earlier times than these windows."
        )
        chosen = (
            "This model was not chosen among others by their results on these trajectories, nor "
            "was this loss, this kind of bound or this seed; if it was one of M, say "
            "models_compared=M."
        )
        return (
            source,
            "Loss, scales and confidence were settled before these trajectories were looked at.",
            f"Forecasts are made by {forecasts}; another solver or step needs another certificate.",
            "Starts, inputs, times and horizon are those of these trajectories. Forecasts know the "
            "inputs that occur; missing values count nowhere.",
            *((chosen,) if self.models_compared == 1 else ()),
        )
