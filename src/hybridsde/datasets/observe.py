"""Recordings of a fully known SDE, by the package's own solver."""

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from hybridsde._random import normals
from hybridsde._types import Array, Float, PRNGKeyArray
from hybridsde.data import Grid, Trajectories
from hybridsde.model import physics_sde
from hybridsde.physics import AbstractPhysics
from hybridsde.simulate import EulerMaruyama, rollout


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
        grid = jax.tree.map(lambda leaf: leaf[:, None], grid)
        dw = jnp.sqrt(grid.dt)[..., None, None] * normals(key, (len(grid.t), 1, 1, len(states)))
        start = jnp.array(self.start)[None, None]
        solver = EulerMaruyama(substeps=fine)
        return rollout(sde, solver, grid, start, dw, None, count).states[0, 0]

    def load(self, observe, states: tuple[str, ...], name: str, *, seed: int) -> Trajectories:
        """A recording made by `observe`, as times and states."""
        path = jax.jit(lambda key: observe(key=key))(jr.key(seed))
        times = self.interval * np.arange(self.observations)
        return Trajectories.from_arrays([times], [path], states=states, ids=[name])
