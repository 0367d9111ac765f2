"""Where a path begins: p(h₀)."""

import abc

import equinox as eqx

from hybridsde._parameters import AbstractParameter
from hybridsde._types import Array, Bool, Float
from hybridsde.model.observation import GaussianObservation
from hybridsde.model.scaling import Scale


class AbstractStart(eqx.Module):
    """A distribution of h₀ given the first observations of a series."""

    context: eqx.AbstractVar[int]
    """How many observations it looks at."""

    @abc.abstractmethod
    def __call__(
        self,
        values: Float[Array, "time obs"],
        observed: Bool[Array, "time obs"],
        observation: GaussianObservation,
        scale: Scale,
        epsilon: Float[Array, " state"],
    ) -> Float[Array, " state"]:
        """One draw of h₀, from standard normals."""


class FirstObservation(AbstractStart):
    """h₀ = the first observation; what it does not show starts at a learned default.

    The smallest correction of the default m that explains the observed part of y₀:
    h₀ = m + A⁺(y₀ − A m), where A holds the rows of C that were observed. A spread, in standard
    deviations of the states, may be added.
    """

    default: AbstractParameter
    """In standardised units."""
    spread: AbstractParameter
    context: int = eqx.field(static=True, default=1)

    def __call__(
        self,
        values: Float[Array, "time obs"],
        observed: Bool[Array, "time obs"],
        observation: GaussianObservation,
        scale: Scale,
        epsilon: Float[Array, " state"],
    ) -> Float[Array, " state"]:
        """One draw of h₀, from standard normals."""
        guess = scale.state_mean + scale.state_sd * self.default.value
        gap = values[0] - observation.mean(guess)
        noise = self.spread.value * scale.state_sd * epsilon
        return guess + observation.explain(gap, observed[0]) + noise
