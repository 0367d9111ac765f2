"""Draws that no reader would believe: counted, and cut off where belief ends."""

from collections.abc import Sequence

import jax.numpy as jnp

from hybridsde._errors import notice
from hybridsde._types import Array, Bool, Float
from hybridsde.data import Trajectories

IMPLAUSIBLE = 10.0
"""Forecasts further outside the recorded range than this many times its width are nonsense."""

SEEN, MANY = 1e-4, 1e-3
"""Shares of draws outside: smaller ones are not written as a number; from more than the second on
the drift is at fault."""


def plausible_range(data: Trajectories, positive: Sequence[str]) -> tuple[tuple[float, float], ...]:
    """Ten times the recorded range to either side, and not below zero where that cannot be."""
    found = []
    for column, name in enumerate(data.states):
        seen = data.values[..., column][data.observed[..., column]]
        low, high = (float(seen.min()), float(seen.max())) if seen.size else (-1.0, 1.0)
        room = IMPLAUSIBLE * ((high - low) or abs(high) or 1.0)
        found.append((0.0 if name in positive else low - room, high + room))
    return tuple(found)


def implausible(
    draws: Float[Array, "*batch obs"], plausible: Float[Array, "obs 2"]
) -> Bool[Array, "*batch obs"]:
    """Outside the range of their observation, or no numbers at all."""
    return ~((draws >= plausible[:, 0]) & (draws <= plausible[:, 1]))


def cut_off(
    draws: Float[Array, "*batch obs"], plausible: Float[Array, "obs 2"]
) -> Float[Array, "*batch obs"]:
    """The nearer end for a draw outside, so that a few of them cannot decide a mean.

    What is no number at all stays so: a score of it is none either.
    """
    return jnp.clip(draws, plausible[:, 0], plausible[:, 1])


def say_implausible(share: float, whose: str = "") -> None:
    """A notice where some draws left the plausible range, or are no numbers."""
    if share > 0:
        name = f"{whose}: " if whose else ""
        amount = f"{share:.2%}" if share >= SEEN else f"Fewer than {SEEN:.2%}"
        advice = (
            " The fitted drift is unstable: give more recordings, declare `bounds`, or forecast "
            "fewer rows ahead."
        )
        notice(
            f"{name}{amount} of the draws left every plausible range (ten times the recorded "
            f"one) and were cut off there.{advice if share > MANY else ''}"
        )
