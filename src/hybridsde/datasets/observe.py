"""Recordings of a fully known SDE, by the package's own solver."""

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from hybridsde._types import Array, Float, PRNGKeyArray
from hybridsde.data import Trajectories
from hybridsde.model import physics_sde
from hybridsde.physics import AbstractPhysics
from hybridsde.simulate import EulerMaruyama, Grid, rollout


@dataclass(frozen=True)
class Recorder:
    """When a system is observed, and how finely it is simulated between observations."""

    start: Sequence[float]
    interval: float
    observations: int
    steps_per_observation: int

    def observe(
        self,
        physics: AbstractPhysics,
        diffusion: Sequence[float],
        states: tuple[str, ...],
        *,
        key: PRNGKeyArray,
    ) -> Float[Array, "time state"]:
        """One recording, the start included. Can be compiled and mapped."""
        sde = physics_sde(physics, diffusion, states)
        count, fine = self.observations, self.steps_per_observation
        times = self.interval * jnp.arange(count, dtype=float)
        grid = Grid.refine(times, jnp.full(count - 1, self.interval), jnp.zeros((count, 0)), fine)
        dw = jnp.sqrt(grid.dt)[:, None] * jr.normal(key, (len(grid.t), len(states)))
        solver = EulerMaruyama(substeps=fine)
        return rollout(sde, solver, grid, jnp.array(self.start), dw, None).states

    def load(self, observe, states: tuple[str, ...], name: str, *, seed: int) -> Trajectories:
        """A recording made by `observe`, as times and states."""
        path = jax.jit(lambda key: observe(key=key))(jr.key(seed))
        times = self.interval * np.arange(self.observations)
        return Trajectories.from_arrays([times], [path], states=states, ids=[name])
