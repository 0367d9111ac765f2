"""How well a fitted drift keeps to what is known beside equations."""

from dataclasses import dataclass, replace

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from hybridsde._streams import Stream, stream
from hybridsde._types import Array, Float
from hybridsde.data import Batch
from hybridsde.hybrid.build import scale_of
from hybridsde.hybrid.constraining import constraints_of
from hybridsde.hybrid.declaration import AbstractDeclaration
from hybridsde.hybrid.knowledge import Knowledge
from hybridsde.model import BayesianSDE
from hybridsde.model.constraints import Constraints

DRAWS = 16
"""Of the weights."""
BROKEN = 0.1
"""A property is not kept where it is off by more than this, in typical rates."""


@dataclass(frozen=True)
class Violation:
    """One property, and how far a drift is off."""

    property: str
    size: float
    """Root mean square over points and draws of the weights, in typical rates."""

    def __str__(self) -> str:
        """A sentence."""
        kept = "not kept: off by" if self.size > BROKEN else "kept to"
        return f"{self.property}: {kept} {100 * self.size:.2g} % of the typical rate."


def violations(
    known: Knowledge, declared: AbstractDeclaration, model: BayesianSDE, batch: Batch
) -> list[Violation]:
    """Every property of the whole drift, on and around these recordings."""
    asked = replace(declared, knowledge=known)
    constraints = constraints_of(asked, batch, scale_of(asked, batch))
    if constraints is None:
        return []
    sizes = np.asarray(_sizes(model, constraints))
    return [
        Violation(text, float(size))
        for (_, text), size in zip(known.sentences(), sizes, strict=True)
    ]


@eqx.filter_jit
def _sizes(model: BayesianSDE, constraints: Constraints) -> Float[Array, " property"]:
    def of(key, number):
        return constraints.residuals(model.draw(key=key, number=number))

    found = jax.vmap(of)(jr.split(stream(0, Stream.PICTURE), DRAWS), jnp.arange(DRAWS))
    return jnp.sqrt(jnp.mean(found**2, (0, 2)))
