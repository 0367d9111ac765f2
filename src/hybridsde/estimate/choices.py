"""Estimators of states by name; those that stand on cuthbert are imported when asked for."""

from collections.abc import Callable

from hybridsde._errors import InputError, suggest
from hybridsde.estimate.estimator import AbstractEstimator
from hybridsde.estimate.kalman import CUBATURE, UNSCENTED, ExtendedKalman, SigmaPointKalman

AUTO = "auto"
"""Extended, unless its errors are far from Gaussian and particles explain the record better."""
EXTENDED, PARTICLES = "extended", "particles"


def _particles() -> AbstractEstimator:
    from hybridsde.estimate.particles import Particles

    return Particles()


def _ensemble() -> AbstractEstimator:
    from hybridsde.estimate.particles import EnsembleKalman

    return EnsembleKalman()


def _parallel() -> AbstractEstimator:
    from hybridsde.estimate.parallel import ParallelKalman

    return ParallelKalman()


ESTIMATORS: dict[str, Callable[[], AbstractEstimator]] = {
    EXTENDED: ExtendedKalman,
    "cubature": lambda: SigmaPointKalman(CUBATURE),
    "unscented": lambda: SigmaPointKalman(UNSCENTED),
    "parallel": _parallel,
    "ensemble": _ensemble,
    PARTICLES: _particles,
}


def estimator_of(name: str) -> AbstractEstimator:
    """The one of a name."""
    if name not in ESTIMATORS:
        raise InputError(
            f"`estimator` must be {AUTO}, {', '.join(ESTIMATORS)}, but is {name!r}."
            + suggest(name, ESTIMATORS)
        )
    try:
        return ESTIMATORS[name]()
    except ModuleNotFoundError as error:
        raise InputError(
            f"The estimator {name!r} needs the package {error.name}: pip install "
            "'hybridsde[filters]'."
        ) from None
