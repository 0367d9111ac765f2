"""Recorded rows as a learned part sees them."""

import jax.numpy as jnp

from hybridsde._types import Array, Float
from hybridsde.data import Batch
from hybridsde.hybrid.declaration import AbstractDeclaration
from hybridsde.model.library import standard_rows
from hybridsde.model.scaling import Scale


def feature_rows(
    declared: AbstractDeclaration, batch: Batch, scale: Scale
) -> tuple[Float[Array, "row feature"], Float[Array, " row"]]:
    """Standardised features of every recorded row, and whether it is one.

    What was not measured there is taken to be anywhere it may be.
    """
    lift = declared.lift
    needed = (lift != 0).astype(float)
    seen = batch.observed.astype(float) @ needed.T >= needed.sum(1)
    seen = seen & jnp.any(lift != 0, 1)
    states = scale.states(batch.values @ lift.T)
    filler = jnp.asarray(standard_rows(states.shape[0] * states.shape[1], states.shape[-1]))
    states = jnp.where(seen, states, filler.reshape(states.shape).astype(states.dtype))
    clock = [] if declared.autonomous else [scale.time(batch.times)[..., None]]
    rows = jnp.concatenate([states, *clock, scale.inputs(batch.inputs)], -1)
    return rows.reshape(-1, rows.shape[-1]), batch.recorded.reshape(-1).astype(rows.dtype)
