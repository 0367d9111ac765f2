"""Array aliases and the one vocabulary of axes.

Every array axis in the package carries one of these names:

    seed     independent repetitions of a fit
    sample   Monte-Carlo draws: weights, then noise
    series   trajectories
    path     simulated paths, of any sample and series; `lane` for those of one series that one
             draw of the network drives
    time     observation times; `step` for the solver's finer grid
    state    components of h
    obs      components of y
    input    components of u

Layers of a network use `in`, `out` and `width`.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray, PyTree, UInt32

Scalar = Float[Array, ""]

Keys = Key[Array, " seed"]
"""One random key per repetition."""

Numbers = float | int | Sequence | np.ndarray | Array
"""What a user may write for a number, a list of them, or an array."""

__all__ = [
    "Array",
    "Bool",
    "Float",
    "Int",
    "Key",
    "Keys",
    "Numbers",
    "PRNGKeyArray",
    "PyTree",
    "Scalar",
    "UInt32",
]
