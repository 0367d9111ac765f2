"""Estimators of states by name."""

from hybridsde._errors import InputError, suggest
from hybridsde.estimate.estimator import AbstractEstimator
from hybridsde.estimate.kalman import ExtendedKalman, SigmaPointKalman
from hybridsde.estimate.particles import EnsembleKalman, Particles

AUTO = "auto"
"""Extended, unless its errors are far from Gaussian and particles explain the record better."""
EXTENDED, PARTICLES = "extended", "particles"
ESTIMATORS: dict[str, AbstractEstimator] = {
    EXTENDED: ExtendedKalman(),
    "cubature": SigmaPointKalman("cubature"),
    "unscented": SigmaPointKalman("unscented"),
    "ensemble": EnsembleKalman(),
    PARTICLES: Particles(),
}


def estimator_of(name: str) -> AbstractEstimator:
    """The one of a name."""
    if name not in ESTIMATORS:
        raise InputError(
            f"`estimator` must be {AUTO}, {', '.join(ESTIMATORS)}, but is {name!r}."
            + suggest(name, ESTIMATORS)
        )
    return ESTIMATORS[name]
