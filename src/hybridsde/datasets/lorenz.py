"""The stochastic Lorenz attractor of Haussmann et al. 2021, section 5.

    dx = ζ(y − x) dt + dW,   dy = (x(κ − z) − y) dt + dW,   dz = (xy − ρz) dt + dW

with ζ = 10, κ = 28, ρ = 2.67 from (1, 1, 28). 200 000 Euler steps of 1e-4, every hundredth kept:
2000 observations 0.01 apart.
"""

from hybridsde._types import Array, Float, PRNGKeyArray
from hybridsde.data import Trajectories
from hybridsde.datasets.observe import Recorder
from hybridsde.physics import FunctionPhysics, known_drift

STATES = ("x", "y", "z")
TRUE = {"zeta": 10.0, "kappa": 28.0, "rho": 2.67}
DIFFUSION = (1.0, 1.0, 1.0)
RECORDER = Recorder((1.0, 1.0, 28.0), interval=0.01, observations=2000, steps_per_observation=100)


def x_equation(x, y, zeta):
    """The first equation."""
    return {"x": zeta * (y - x)}


def y_equation(x, y, z, kappa):
    """The second equation."""
    return {"y": x * (kappa - z) - y}


def z_equation(x, y, z, rho):
    """The third equation."""
    return {"z": x * y - rho * z}


def equations(x, y, z, zeta, kappa, rho):
    """All three."""
    return x_equation(x, y, zeta) | y_equation(x, y, z, kappa) | z_equation(x, y, z, rho)


def true_physics() -> FunctionPhysics:
    """All equations with the true parameters."""
    return known_drift(equations, **TRUE)


def observe(*, key: PRNGKeyArray) -> Float[Array, "time state"]:
    """One recording: 2000 observations, the start included. Can be compiled and mapped."""
    return RECORDER.observe(true_physics(), DIFFUSION, STATES, key=key)


def load(*, seed: int) -> Trajectories:
    """One recording as times and states."""
    return RECORDER.load(observe, STATES, "lorenz", seed=seed)
