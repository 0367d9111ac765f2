"""What the seed of a run is used for: one stream of random numbers for each purpose."""

import enum

import jax.random as jr
import numpy as np

from hybridsde._types import Array, Int, PRNGKeyArray


class Stream(enum.IntEnum):
    """The purposes. A number is folded into the key of a seed, so none may stand here twice.

    `jax.random.split(key)[i]` is `fold_in(key, i)`: whoever splits the key of a seed, as `fit` does
    for its two streams, uses the numbers from 0 on.
    """

    INIT = 0
    """Untrained weights."""
    TRAINING = 1
    """Batches and paths of a fit."""
    CALIBRATION = 2
    """Forecasts that choose the spreads."""
    CERTIFICATE = 3
    """Losses of a certificate or a conformal band."""
    REFERENCE = 4
    """Constants of losses, settled where the certified data have no part."""
    POSTERIOR = 5
    """Training of the weights against a bound."""
    FORECAST = 6
    """Forecasts, and those that are scored."""
    PICTURE = 7
    """Draws of the weights behind a picture of the drift."""
    UPDATE = 8
    """Training of the weights on further recordings."""
    FREE_RUN = 9
    """Draws of the weights that a fitted model is left to itself under."""


class Beside(enum.IntEnum):
    """Purposes beside those that are counted from 0: epochs of a fit, repetitions of a table.

    The numbers are so large that no epoch and no repetition has them.
    """

    LANGEVIN = 2**32 - 1
    """Langevin steps after a fit."""
    VALIDATION = 2**32 - 2
    """Estimates on the validation series, the same in every epoch."""
    TEST = 2**32 - 3
    """Scores of a row of a table."""
    OTHER_WALKERS = 2**32 - 4
    """A fit to other recordings, which another begins with."""
    OTHER_INIT = 2**32 - 5
    """Its untrained weights."""
    RESIDUALS = 2**32 - 6
    """Forecasts of the training series, after a fit."""
    UNTOLD = 2**32 - 7
    """Rows from which on a filter is told nothing."""
    TURN = 2**32 - 8
    """Which of several networks comes first."""
    KNOWLEDGE = 2**32 - 10
    """Draws of the weights that are held to what is known beside equations."""
    ENTRY = 2**32 - 11
    """Draws of the weights that say where pieces of a recording begin."""
    FRESH = 2**32 - 12
    """Pieces that begin as a new recording would."""
    FOLLOWED = 2**32 - 9
    """Forecasts of a record that is followed, whose filter splits the same key."""


def beside(key: PRNGKeyArray, purpose: Beside) -> PRNGKeyArray:
    """A key for something beside what a key is split or counted for."""
    return jr.fold_in(key, np.uint32(purpose))


def stream(seed: int | Int[Array, ""], purpose: Stream) -> PRNGKeyArray:
    """The key of a seed for one purpose."""
    return jr.fold_in(jr.key(seed), purpose)
