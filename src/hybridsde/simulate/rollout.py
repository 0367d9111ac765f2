"""Paths of the SDE and their path KL: one scan, with all paths side by side in it."""

import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr

from hybridsde._devices import over_paths
from hybridsde._random import path_normals
from hybridsde._types import Array, Float, PRNGKeyArray, PyTree, Scalar, UInt32
from hybridsde.data import Batch, Grid
from hybridsde.model import SDE, BayesianSDE
from hybridsde.simulate import weight_gradient
from hybridsde.simulate.solver import AbstractSolver

START = 1
"""Folded into the key of the paths where a start takes other normals than a step."""


class Paths(eqx.Module):
    """States at the observation times, the start included, and the path KL of each path."""

    states: Float[Array, "*path time state"]
    kl: Float[Array, "*path"]


class _Step(NamedTuple):
    """What one step is given. As axes for a map over lanes: the grid is shared by all of them."""

    grid: Any
    dw: Any
    noise: Any


def rollout(
    sde: SDE,
    solver: AbstractSolver,
    grid: Grid,
    h0: Float[Array, "lane series state"],
    dw: Float[Array, "step lane series state"],
    noise: PyTree,
    rows: int,
) -> Paths:
    """Paths through the grids of all series at their `rows`, with the path KL they accumulate.

    KL_path = ½ Σ_k f_kᵀ J_k⁻¹ f_k Δt_k      (Haussmann et al. 2021, Lemma 1)

    An estimate by one path; its mean over paths is the path part of the Lemma. The arrays of
    `grid` are step × series, those of `noise` step × lane × series.
    """
    layers = sde.learned.network.layers
    bare = _with_layers(sde, None)

    def one_path(layers: tuple, bare: SDE, carry: tuple[Float[Array, " state"], Scalar], x: _Step):
        h, kl = carry
        whole = _with_layers(bare, layers)
        h, energy = solver.step(whole, x.grid.t, h, x.grid.u, x.grid.dt, x.dw, x.noise)
        h = whole.clip(h)
        return (h, kl + energy), h

    def all_paths(one):
        return jax.vmap(jax.vmap(one), in_axes=(0, _Step(None, 0, 0), 0))

    carry = (h0, jnp.zeros(h0.shape[:-1], h0.dtype))
    xs = _Step(grid, dw, noise)
    scanned = weight_gradient.scan(
        one_path, all_paths, layers, bare, carry, xs, math.prod(dw.shape[1:-1])
    )
    (_, kl), states = scanned
    ends = jax.vmap(lambda one: one.ends(rows), in_axes=1)(grid)
    at_rows = jax.vmap(lambda path, ends: path[ends], in_axes=(2, 0))(states, ends)
    return Paths(jnp.concatenate([h0[:, :, None], jnp.moveaxis(at_rows, 2, 0)], 2), kl)


def _with_layers(sde: SDE, layers: tuple | None) -> SDE:
    return eqx.tree_at(
        lambda s: s.learned.network.layers, sde, layers, is_leaf=lambda leaf: leaf is None
    )


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
    weight_key, call_key, path_key = jr.split(key, 3)
    calls = _numbers(samples, batch.count)
    numbers = _numbers(samples, paths, batch.count)

    def of_share(model, batch, weight_keys, calls, numbers) -> Paths:
        """A share of the samples or of the series."""
        refine = jax.vmap(lambda one: one.grid(solver.substeps, model.interpolation), out_axes=1)
        grid = refine(batch)

        def under_one_network(weight_key, calls, numbers) -> Paths:
            sde = model.draw(key=weight_key)
            steps = len(grid.t)
            noise = sde.learned.network.noise(calls, steps, key=call_key)
            noise = jax.tree.map(lambda leaf: jnp.repeat(leaf, paths, 1), noise)
            normal = path_normals(path_key, numbers, 1 + steps, model.states, grid.dt.dtype)
            dw = jnp.sqrt(grid.dt)[:, None, :, None] * normal[1:]
            first = normal[0]
            if model.start_normals != model.states:
                key = jr.fold_in(path_key, START)
                first = path_normals(key, numbers, 1, model.start_normals, grid.dt.dtype)[0]
            over_series = jax.vmap(lambda one, normal: model.initial_state(sde, one, normal))
            h0 = jax.vmap(over_series, (None, 0))(batch, first)
            return rollout(sde, solver, grid, h0, dw, noise, batch.times.shape[1])

        if not model.weights.held:
            lanes = numbers.reshape(-1, numbers.shape[-1])
            return under_one_network(weight_keys[0], calls, lanes)
        nested = jax.vmap(under_one_network)(weight_keys, calls[:, None], numbers)
        return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), nested)

    return over_paths(of_share, model, batch, jr.split(weight_key, samples), calls, numbers)


def _numbers(*shape: int) -> UInt32[Array, "*shape"]:
    return jnp.arange(math.prod(shape), dtype=jnp.uint32).reshape(shape)
