"""Networks that climb to maxima of their posterior side by side, by second-order steps."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hybridsde._types import Bool, Float
from hybridsde.hybrid.scoring import (
    STUCK,
    Local,
    LogLikelihood,
    Prior,
    after_step,
    damped_step,
)

FURTHEST = 3.0
"""No weight moves further in a step."""
ENOUGH = 0.02
"""A network that gains less than this in log-probability in a step is done."""
DAMPING = 1e-2
"""Of the first step."""


@dataclass
class Climber:
    """One network on its way."""

    about: Local
    damping: float = DAMPING
    done: bool = False

    def take(self, tried: Local, prior: Prior) -> None:
        """Go where a step has led, if that is higher."""
        before = self.about
        self.about, self.damping, gain = after_step(before, tried, prior, self.damping)
        moved = self.about is not before
        self.done = self.damping > STUCK or (moved and gain < ENOUGH)

    def height(self, prior: Prior) -> float:
        """Its log-posterior; least where it is no number."""
        found = self.about.value + prior.log_prob(self.about.at)
        return found if self.about.finite else -np.inf


@dataclass(frozen=True)
class Search:
    """A posterior that networks climb."""

    likelihood: LogLikelihood
    prior: Prior
    iterations: int
    report: Callable[[int, int, float], None] = lambda *_: None

    def climb(
        self,
        starts: Float[np.ndarray, "network number"],
        free: Bool[np.ndarray, " number"] | None = None,
        counted: Bool[np.ndarray, "network series time"] | None = None,
    ) -> tuple[list[Climber], list[float]]:
        """All networks side by side, moving the free numbers; and the mean of what they reach."""
        likelihood, prior = self.likelihood, self.prior
        free = np.ones(starts.shape[1], bool) if free is None else free
        climbers = [
            Climber(about, done=not about.finite)
            for about in likelihood.about_each(starts, counted)
        ]
        values = [_mean(climbers)]
        for step in range(self.iterations):
            if all(one.done for one in climbers):
                break
            proposed = np.stack([self._proposed(one, free) for one in climbers])
            tried = likelihood.about_each(proposed, counted)
            for one, there in zip(climbers, tried, strict=True):
                if not one.done:
                    one.take(there, prior)
            values.append(_mean(climbers))
            self.report(step + 1, self.iterations, values[-1])
        self.report(self.iterations, self.iterations, values[-1])
        return climbers, values

    def best(self, climbers: list[Climber], count: int) -> list[Climber]:
        """The highest so many, the highest first."""
        return sorted(climbers, key=lambda one: -one.height(self.prior))[:count]

    def _proposed(self, one: Climber, free: np.ndarray) -> Float[np.ndarray, " number"]:
        if one.done:
            return one.about.at
        step = damped_step(self.likelihood, one.about, self.prior, free, one.damping)
        count = self.likelihood.coefficients
        step[:count] = np.clip(step[:count], -FURTHEST, FURTHEST)
        return one.about.at + step


def _mean(climbers: list[Climber]) -> float:
    values = [one.about.value for one in climbers if one.about.finite]
    return float(np.mean(values)) if values else np.nan
