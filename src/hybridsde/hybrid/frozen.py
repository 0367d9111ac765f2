"""What was learned before, as known physics: a trained drift that no longer moves."""

from collections.abc import Mapping

import equinox as eqx
import jax.numpy as jnp

from hybridsde._parameters import Fixed
from hybridsde._types import Scalar
from hybridsde.hybrid.spec import HybridSDE
from hybridsde.model.sde import BayesianSDE
from hybridsde.physics import AbstractPhysics


class FrozenDrift(AbstractPhysics):
    """r(h, t): learned plus known drift of a trained model, at the mean of its weights.

    Transfer as in Haussmann et al. 2021, section on motion capture: what was learned on everybody
    is the known part for one person. States and inputs keep their names.
    """

    sde: Fixed
    states: tuple[str, ...] = eqx.field(static=True)
    inputs: tuple[str, ...] = eqx.field(static=True)
    source: HybridSDE = eqx.field(static=True)
    """How the trained model was declared, so that a run folder can say."""

    @classmethod
    def of(cls, declared: HybridSDE, model: BayesianSDE) -> "FrozenDrift":
        """The drift of a trained model."""
        if declared.offsets:
            far = next(iter(declared.offsets))
            raise ValueError(
                f"{far!r} lies far from zero, so this drift cannot be frozen: subtract a constant "
                "from the column first."
            )
        if declared.positive:
            raise ValueError("A drift of logarithms cannot be frozen: leave `positive` out.")
        sde = model.typical()
        return cls(Fixed(sde), tuple(declared.states), tuple(declared.inputs), declared)

    def __call__(
        self, t: Scalar, states: Mapping[str, Scalar], inputs: Mapping[str, Scalar]
    ) -> dict[str, Scalar]:
        """All rates at once."""
        h = jnp.stack([states[name] for name in self.states])
        u = jnp.stack([inputs[name] for name in self.inputs]) if self.inputs else jnp.zeros(0)
        learned, known = self.sde.value.drift(t, h, u, None)
        return dict(zip(self.states, learned + known, strict=True))

    def known(self, states: tuple[str, ...], inputs: tuple[str, ...]) -> tuple[str, ...]:
        """All states of the trained model, which must be there under the same names."""
        for name in self.states:
            if name not in states:
                raise ValueError(
                    f"The trained drift is one of {', '.join(self.states)}, but {name!r} is not a "
                    f"state here; the states are {', '.join(states)}."
                )
        lacking = [name for name in self.inputs if name not in inputs]
        if lacking:
            raise ValueError(f"The trained drift takes the input {lacking[0]!r}, which is missing.")
        return tuple(name for name in states if name in self.states)
