"""The floor of simulated recordings: the true equations, scored on the same test as a fit."""

from dataclasses import replace

from hybridsde.fit import Training
from hybridsde.hybrid import HybridSDE
from hybridsde.objective import EmpiricalBayes
from hybridsde.physics import equations
from hybridsde.project.settings import FloorSettings

BRIEFLY = Training(epochs=60, learning_rate=3e-2)
"""Nothing is learned but where states begin that were not measured there."""


def floor_model(truth: FloorSettings, fitted: HybridSDE) -> HybridSDE:
    """The true system with the columns, limits and starts of the one that is fitted.

    A `ValueError` where the equations cannot be used, or are not complete.
    """
    physics = equations(*truth.equations, flows=(), **truth.parameters)
    known = physics.known(tuple(fitted.states), tuple(fitted.inputs))
    lacking = [name for name in fitted.states if name not in known]
    if lacking:
        raise ValueError(f"[floor] has no equation for {lacking[0]!r}: it must have all of them")
    return HybridSDE(
        states=fitted.states,
        physics=physics,
        inputs=fitted.inputs,
        observed=fitted.observed,
        positive=fitted.positive,
        bounds=fitted.bounds,
        saturates=fitted.saturates,
        diffusion=truth.diffusion,
        noise=truth.noise,
        start=fitted.start,
        interpolation=fitted.interpolation,
        numerics=replace(fitted.numerics, typical=None, step=None, scheme=None, offsets=None),
        hidden=None,
    )


def floor_loss(model: HybridSDE) -> EmpiricalBayes:
    """What its few epochs follow."""
    return EmpiricalBayes(samples=model.samples)
