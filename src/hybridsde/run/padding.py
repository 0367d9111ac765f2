"""Recordings of several members brought to one shape, so that one program takes them all."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from hybridsde._types import PyTree
from hybridsde.data import Batch, Grid

STEPS_IN_AN_OCTAVE = 8
"""Sizes that arrays are padded to between a number and twice that number."""


def round_up(size: int) -> int:
    """The next of a few sizes, an eighth apart or less: few shapes, few compiled programs."""
    unit = 1 << max(0, (size - 1).bit_length() - 1 - (STEPS_IN_AN_OCTAVE.bit_length() - 1))
    return -(-size // unit) * unit


def common(sizes: Sequence[int]) -> int:
    """The size that all are padded to: their own where they agree."""
    return sizes[0] if len(set(sizes)) == 1 else round_up(max(sizes))


def alike(batches: Sequence[Batch]) -> list[Batch]:
    """Batches with as many rows and solver steps as the longest of them.

    A repeated time is padding: a step of length zero that moves nothing and is not observed.
    """
    rows = common([batch.times.shape[-1] for batch in batches])
    grids = [batch.fine for batch in batches]
    steps = common([0 if grid is None else grid.dt.shape[-1] for grid in grids])
    return [padded(batch, rows, steps) for batch in batches]


def padded(batch: Batch, rows: int, steps: int) -> Batch:
    """The same series with more rows and more solver steps, all of length zero."""
    more = rows - batch.times.shape[-1]
    fine = batch.fine
    return Batch(
        times=_edge(batch.times, more),
        steps=_zeros(batch.steps, more),
        values=_zeros(batch.values, more),
        observed=_zeros(batch.observed, more),
        inputs=_edge(batch.inputs, more),
        recorded=_zeros(batch.recorded, more),
        fine=None if fine is None else _longer(fine, batch.times, steps - fine.dt.shape[-1]),
    )


def _longer(fine: Grid, times: jax.Array, more: int) -> Grid:
    """Further steps stand still at the last time of each series."""
    ends = jnp.repeat(times[:, -1:], more, axis=1)
    return Grid(
        t=jnp.concatenate([fine.t, ends.astype(fine.t.dtype)], 1),
        dt=_zeros(fine.dt, more),
        u=_edge(fine.u, more),
        row=_zeros(fine.row, more),
    )


def _edge(leaf: jax.Array, more: int) -> jax.Array:
    return leaf if more == 0 else jnp.asarray(np.pad(leaf, _after(leaf, more), mode="edge"))


def _zeros(leaf: jax.Array, more: int) -> jax.Array:
    return leaf if more == 0 else jnp.asarray(np.pad(leaf, _after(leaf, more)))


def _after(leaf: jax.Array, more: int) -> list[tuple[int, int]]:
    """Along the second axis, behind the others: series come first."""
    return [(0, 0), (0, more), *[(0, 0)] * (leaf.ndim - 2)]


def stacked(trees: Sequence[PyTree]) -> PyTree:
    """Trees of one structure along a new leading axis, through the host: one copy each way."""
    return jax.tree.map(lambda *leaves: _stack(leaves), *trees)


def _stack(leaves: Sequence[jax.Array]) -> jax.Array:
    if jnp.issubdtype(leaves[0].dtype, jax.dtypes.prng_key):
        return jnp.stack(leaves)
    return jnp.asarray(np.stack([np.asarray(leaf) for leaf in leaves]))
