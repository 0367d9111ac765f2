"""How far from the training data a learned drift is believed."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from hybridsde._types import Array, Float
from hybridsde.data import Batch
from hybridsde.model.scaling import Scale

ROOM = 0.5
"""The learned drift is believed this share of the recorded range beyond either end of it."""
UNMEASURED = 4.0
"""Of a state that is never measured: this many spreads to either side of its guess."""


class Reach(eqx.Module):
    """The box of states and inputs in which a network is believed, in standardised units.

    With d the distance from the box, the learned drift is multiplied by 1/(1 + d²), so it fades to
    the known physics. A state without an equation is pulled back instead, by its typical rate for
    every spread that it is outside.
    """

    low: Float[Array, " feature"]
    high: Float[Array, " feature"]
    pulled: tuple[bool, ...] = eqx.field(static=True)
    """The states that nothing is known of."""

    @classmethod
    def of(
        cls,
        batch: Batch,
        lift: Float[Array, "state obs"],
        scale: Scale,
        known: tuple[bool, ...],
        room: float = ROOM,
    ) -> "Reach":
        """The recorded range with some room; `lift` carries observations back to states."""
        seen = batch.observed
        largest = jnp.max(batch.values, (0, 1), where=seen, initial=-jnp.inf)
        smallest = jnp.min(batch.values, (0, 1), where=seen, initial=jnp.inf)
        middle, half = 0.5 * (largest + smallest), 0.5 * (largest - smallest)
        centre = scale.states(jnp.nan_to_num(lift @ jnp.nan_to_num(middle)))
        wide = jnp.sqrt(lift**2 @ jnp.nan_to_num(half) ** 2) / scale.states.sd
        measured = jnp.any(lift != 0, 1)
        centre = jnp.where(measured, centre, 0.0)
        wide = jnp.where(measured, (1 + 2 * room) * wide, UNMEASURED)
        recorded = batch.recorded[..., None]
        u = scale.inputs(batch.inputs)
        top = jnp.max(u, (0, 1), where=recorded, initial=-jnp.inf)
        bottom = jnp.min(u, (0, 1), where=recorded, initial=jnp.inf)
        beyond = room * (top - bottom)
        return cls(
            jnp.concatenate([centre - wide, bottom - beyond]),
            jnp.concatenate([centre + wide, top + beyond]),
            tuple(not one for one in known),
        )

    def __call__(
        self, states: Float[Array, " state"], inputs: Float[Array, " input"]
    ) -> tuple[Float[Array, ""], Float[Array, " state"]]:
        """The share of the learned drift that is kept, and the pull back in typical rates."""
        features = jnp.concatenate([states, inputs])
        outside = features - jnp.clip(features, self.low, self.high)
        share = 1 / (1 + jnp.sum(outside**2))
        return share, -jnp.where(np.array(self.pulled), outside[: len(states)], 0.0)
