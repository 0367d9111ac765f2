"""The stochastic Lotka–Volterra system of Haussmann et al. 2021, appendix.

    dx = (θ₁x − θ₂xy) dt + 0.2 dW,   dy = (−θ₃y + θ₄xy) dt + 0.3 dW

with θ = (2, 1, 4, 1). 100 000 Euler steps of 1e-4 on [0, 10], every hundredth kept: 1000
observations 0.01 apart. The paper does not give the start; here it is (5, 3), off the equilibrium
(4, 2). One recording in twenty reaches a negative population, where the equations explode; only
populations that survive are recorded.
"""

import jax
import jax.numpy as jnp
import jax.random as jr

from hybridsde._types import Array, Float, PRNGKeyArray
from hybridsde.data import Trajectories
from hybridsde.datasets.observe import Recorder
from hybridsde.physics import FunctionPhysics, known_drift

STATES = ("x", "y")
TRUE = {"theta1": 2.0, "theta2": 1.0, "theta3": 4.0, "theta4": 1.0}
DIFFUSION = (0.2, 0.3)
TRIES = 4
RECORDER = Recorder((5.0, 3.0), interval=0.01, observations=1000, steps_per_observation=100)


def equations(x, y, theta1, theta2, theta3, theta4):
    """Prey, then predator."""
    return {"x": theta1 * x - theta2 * x * y, "y": -theta3 * y + theta4 * x * y}


def true_physics() -> FunctionPhysics:
    """Both equations with the true parameters."""
    return known_drift(equations, **TRUE)


def observe(*, key: PRNGKeyArray) -> Float[Array, "time state"]:
    """One recording: 1000 observations, the start included. Can be compiled and mapped.

    The first survivor of `TRIES` simulations; all of them fail once in a hundred thousand times.
    """
    paths = jax.vmap(lambda key: RECORDER.observe(true_physics(), DIFFUSION, STATES, key=key))(
        jr.split(key, TRIES)
    )
    survives = (paths > 0).all((1, 2))
    return paths[jnp.argmax(survives)]


def load(*, seed: int) -> Trajectories:
    """One recording as times and states."""
    return RECORDER.load(observe, STATES, "lotka_volterra", seed=seed)
