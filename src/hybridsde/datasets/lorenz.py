"""The stochastic Lorenz attractor of Haussmann et al. 2021, section 5.

    dx = ζ(y − x) dt + dW,   dy = (x(κ − z) − y) dt + dW,   dz = (xy − ρz) dt + dW

with ζ = 10, κ = 28, ρ = 2.67 from (1, 1, 28). 200 000 Euler steps of 1e-4, every hundredth kept:
2000 observations 0.01 apart.
"""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from hybridsde._types import Array, Float, PRNGKeyArray
from hybridsde.data import Trajectories
from hybridsde.model import physics_sde
from hybridsde.physics import FunctionPhysics, known_drift
from hybridsde.simulate import EulerMaruyama, Grid, rollout

STATES = ("x", "y", "z")
TRUE = {"zeta": 10.0, "kappa": 28.0, "rho": 2.67}
START = (1.0, 1.0, 28.0)
DIFFUSION = 1.0
INTERVAL, OBSERVATIONS, STEPS_PER_OBSERVATION = 0.01, 2000, 100


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
    sde = physics_sde(true_physics(), DIFFUSION, STATES)
    times = INTERVAL * jnp.arange(OBSERVATIONS)
    intervals = jnp.full(OBSERVATIONS - 1, INTERVAL)
    grid = Grid.refine(times, intervals, jnp.zeros((OBSERVATIONS, 0)), STEPS_PER_OBSERVATION)
    normal = jr.normal(key, (len(grid.t), len(STATES)))
    solver = EulerMaruyama(substeps=STEPS_PER_OBSERVATION)
    dw = jnp.sqrt(grid.dt)[:, None] * normal
    return rollout(sde, solver, grid, jnp.array(START), dw, None).states


def load(*, seed: int) -> Trajectories:
    """One recording as a table of times and states."""
    path = jax.jit(lambda key: observe(key=key))(jr.key(seed))
    times = INTERVAL * np.arange(OBSERVATIONS)
    return Trajectories.from_arrays([times], [path], states=STATES, ids=["lorenz"])
