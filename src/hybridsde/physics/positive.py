"""Known physics of states that are modelled by their logarithm."""

from collections.abc import Mapping

import equinox as eqx
import jax.numpy as jnp

from hybridsde._parameters import Fixed
from hybridsde._types import Scalar
from hybridsde.physics.base import AbstractPhysics

BEYOND = 10.0
"""In equations a positive state goes no further than e¹⁰ times its largest recorded value."""


class PositivePhysics(AbstractPhysics):
    """Equations of x for a model of z = ln x: dz = r(x)/x dt, so x stays positive.

    The rate of the logarithm is that of the given equation; noise acts on the logarithm, so the
    equation describes the median, not the mean. States that are not positive are left alone.
    """

    inner: AbstractPhysics
    positive: tuple[str, ...] = eqx.field(static=True)
    highest: Fixed
    """ln of the largest recorded value of each positive state."""

    def __call__(
        self, t: Scalar, states: Mapping[str, Scalar], inputs: Mapping[str, Scalar]
    ) -> dict[str, Scalar]:
        """Rates of logarithms for positive states."""
        bound = dict(zip(self.positive, self.highest.value + BEYOND, strict=True))
        raw = {
            name: jnp.exp(jnp.minimum(value, bound[name])) if name in bound else value
            for name, value in states.items()
        }
        rates = self.inner(t, raw, inputs)
        return {
            name: rate / raw[name] if name in self.positive else rate
            for name, rate in rates.items()
        }

    def known(self, states: tuple[str, ...], inputs: tuple[str, ...]) -> tuple[str, ...]:
        """As the equations themselves."""
        return self.inner.known(states, inputs)
