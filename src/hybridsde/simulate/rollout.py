"""Paths of the SDE: one scan for a path and its KL, batched over samples and series."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jax import lax

from hybridsde._types import Array, Float, PRNGKeyArray, PyTree, Scalar
from hybridsde.data import Batch
from hybridsde.model import SDE, BayesianSDE
from hybridsde.simulate.grid import Grid
from hybridsde.simulate.solver import AbstractSolver


class Paths(eqx.Module):
    """States at the observation times, the start included, and the path KL of each path."""

    states: Float[Array, "*sample time state"]
    kl: Float[Array, "*sample"]


def rollout(
    sde: SDE,
    solver: AbstractSolver,
    grid: Grid,
    h0: Float[Array, " state"],
    dw: Float[Array, "step state"],
    noise: PyTree,
) -> Paths:
    """One path through the grid, with the path KL it accumulates.

    KL_path = ½ Σ_k f_kᵀ J_k⁻¹ f_k Δt_k      (Haussmann et al. 2021, Lemma 1)

    An estimate by one path; its mean over paths is the path part of the Lemma.
    """

    def advance(
        carry: tuple[Float[Array, " state"], Scalar], step
    ) -> tuple[tuple[Float[Array, " state"], Scalar], Float[Array, " state"]]:
        h, kl = carry
        t, dt, u, dw, noise = step
        h, energy = solver.step(sde, t, h, u, dt, dw, noise)
        return (h, kl + energy), h

    steps = (grid.t, grid.dt, grid.u, dw, noise)
    (_, kl), states = lax.scan(advance, (h0, jnp.zeros((), h0.dtype)), steps)
    observed = states[solver.substeps - 1 :: solver.substeps]
    return Paths(jnp.concatenate([h0[None], observed]), kl)


def simulate(
    model: BayesianSDE,
    solver: AbstractSolver,
    batch: Batch,
    *,
    samples: int,
    paths: int = 1,
    key: PRNGKeyArray,
) -> Paths:
    """Paths for every series under `samples` draws of the weights, `paths` each.

    A draw of the weights is shared by all series, and by its `paths`, which differ in their
    Wiener noise alone: the nested design that separates epistemic from aleatoric variance. The
    sample axis holds the paths of the first draw, then those of the second, and so on.
    """

    def under_one_draw(key: PRNGKeyArray) -> Paths:
        weight_key, call_key, path_key = jr.split(key, 3)
        sde = model.draw(key=weight_key)

        def one_path(series: Batch, call_key: PRNGKeyArray, key: PRNGKeyArray) -> Paths:
            grid = Grid.refine(series.times, series.steps, series.inputs, solver.substeps)
            normal = jr.normal(key, (1 + len(grid.t), model.states), grid.dt.dtype)
            h0 = model.initial_state(series.values, series.observed, normal[0])
            noise = sde.learned.network.noise(len(grid.t), key=call_key)
            return rollout(sde, solver, grid, h0, jnp.sqrt(grid.dt)[:, None] * normal[1:], noise)

        call_keys = jr.split(call_key, batch.count)
        path_keys = jr.split(path_key, (paths, batch.count))
        over_series = jax.vmap(one_path)
        return jax.vmap(over_series, (None, None, 0))(batch, call_keys, path_keys)

    nested = jax.vmap(under_one_draw)(jr.split(key, samples))
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), nested)
