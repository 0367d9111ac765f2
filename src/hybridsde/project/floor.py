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
    """The true system with the columns, limits and starts of the one that is fitted."""
    return HybridSDE(
        states=fitted.states,
        physics=equations(*truth.equations, **truth.parameters),
        inputs=fitted.inputs,
        observed=fitted.observed,
        positive=fitted.positive,
        bounds=fitted.bounds,
        diffusion=truth.diffusion,
        noise=truth.noise,
        start=fitted.start,
        interpolation=fitted.interpolation,
        numerics=replace(fitted.numerics, typical=None, step=None, scheme=None),
        hidden=None,
    )


def floor_loss(model: HybridSDE) -> EmpiricalBayes:
    """What its only epoch follows."""
    return EmpiricalBayes(samples=model.samples)
