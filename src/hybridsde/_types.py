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
from typing import TYPE_CHECKING, Literal

import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray, PyTree, UInt32

Scalar = Float[Array, ""]

Keys = Key[Array, " seed"]
"""One random key per repetition."""

Numbers = float | int | Sequence | np.ndarray | Array
"""What a user may write for a number, a list of them, or an array."""

if TYPE_CHECKING:  # a wrong word is told by our own checks, which name the remedy
    Learned = Literal["auto", "library", "process", "network", "ensemble"]
    Activation = Literal["softplus", "tanh", "relu", "silu", "gelu", "elu", "hinge"]
    Weights = Literal["path", "local"]
    Interpolation = Literal["held", "linear"]
    Far = Literal["fade", "free"]
    Schedule = Literal["cosine", "constant"]
    Evidence = Literal["auto", "filtered", "ahead", "mean_log", "log_mean"]
    PathKL = Literal["mean", "sum"]
    Reading = Literal[
        "auto", "extended", "cubature", "unscented", "parallel", "ensemble", "particles"
    ]
    LossName = Literal["error", "interval", "band", "crps", "likelihood"]
    Dependence = Literal["iid", "sequential"]
else:
    Learned = Activation = Weights = Interpolation = Far = Schedule = Evidence = PathKL = str
    Reading = LossName = Dependence = str

__all__ = [
    "Activation",
    "Array",
    "Bool",
    "Dependence",
    "Evidence",
    "Far",
    "Float",
    "Int",
    "Interpolation",
    "Key",
    "Keys",
    "Learned",
    "LossName",
    "Numbers",
    "PRNGKeyArray",
    "PathKL",
    "PyTree",
    "Reading",
    "Scalar",
    "Schedule",
    "UInt32",
    "Weights",
]
