"""Draws that no reader would believe: counted, and cut off where belief ends."""

import warnings

import jax.numpy as jnp

from hybridsde._errors import InputNotice
from hybridsde._types import Array, Bool, Float


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


def say_implausible(share: float) -> None:
    """A notice where some draws left the plausible range, or are no numbers."""
    if share > 0:
        warnings.warn(
            f"{share:.2%} of the draws left every plausible range (ten times the recorded one) and "
            "were cut off there. The fitted drift is unstable: give more recordings, declare "
            "`bounds`, or forecast fewer rows ahead.",
            InputNotice,
            stacklevel=3,
        )
