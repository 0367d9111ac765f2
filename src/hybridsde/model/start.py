"""Where a path begins: p(h₀)."""

import abc

import equinox as eqx
import jax.numpy as jnp

from hybridsde._parameters import AbstractParameter, Fixed, Free, Positive
from hybridsde._types import Array, Bool, Float
from hybridsde.data import Batch
from hybridsde.model.observation import AbstractObservation, GaussianObservation
from hybridsde.model.scaling import Scale

SMALLEST = 1e-3
"""A learned spread of starts stays so far above its floor, in standard deviations of the states."""


class AbstractStart(eqx.Module):
    """A distribution of h₀ given the first observations of a series."""

    @abc.abstractmethod
    def normals(self, states: int) -> int:
        """How many standard normals one draw takes."""

    @abc.abstractmethod
    def __call__(
        self,
        series: Batch,
        observation: AbstractObservation,
        scale: Scale,
        epsilon: Float[Array, " normal"],
    ) -> Float[Array, " state"]:
        """One draw of h₀, from standard normals."""


class FirstObservation(AbstractStart):
    """h₀ = the first observation; what it does not show starts at a learned default.

    The smallest correction of the default m that explains the observed part of y₀:
    h₀ = A⁺y₀ + (I − A⁺A) m, where A holds the rows of C that were observed. A spread, in
    standard deviations of the states, may be added.
    """

    default: AbstractParameter
    """In standardised units."""
    spread: AbstractParameter

    def normals(self, states: int) -> int:
        """One for every state."""
        return states

    def __call__(
        self,
        series: Batch,
        observation: AbstractObservation,
        scale: Scale,
        epsilon: Float[Array, " state"],
    ) -> Float[Array, " state"]:
        """One draw of h₀, from standard normals."""
        guess = scale.states.inverse(self.default.value)
        assert isinstance(observation, GaussianObservation)
        inverse, left_open = observation.split_state(series.observed[0])
        seen = jnp.where(series.observed[0], series.values[0], 0.0)
        noise = self.spread.value * scale.states.sd * epsilon
        return inverse @ seen + left_open @ guess + noise


class UncertainStart(AbstractStart):
    """h₀ = the first observation less its noise; what it does not show starts as was declared.

    h₀ = A⁺(y₀ − σ∘ε) + (I − A⁺A)(m + s∘ε), with a learned default m and a learned spread s, both
    in standard deviations of the states. Exact where states are measured directly. A state may
    start at a given number instead, or at the first value of an input such as a dose.
    """

    default: AbstractParameter
    spread: AbstractParameter
    given: Fixed | None = None
    """Starts in raw units where they are known, else NaN."""
    columns: tuple[int | None, ...] | None = eqx.field(static=True, default=None)
    """The input that holds the start of a state."""
    logarithms: tuple[bool, ...] | None = eqx.field(static=True, default=None)
    """Which states are logarithms of what the columns hold."""

    def normals(self, states: int) -> int:
        """One for every state."""
        return states

    def __call__(
        self,
        series: Batch,
        observation: AbstractObservation,
        scale: Scale,
        epsilon: Float[Array, " state"],
    ) -> Float[Array, " state"]:
        """One draw of h₀, from standard normals."""
        assert isinstance(observation, GaussianObservation)
        inverse, left_open = observation.split_state(series.observed[0])
        seen = jnp.where(series.observed[0], series.values[0], 0.0)
        blurred = seen - observation.sd.value * observation.mean(epsilon)
        anywhere = scale.states.inverse(self.default.value + self.spread.value * epsilon)
        if self.given is not None:
            given = self.given.value
            anywhere = jnp.where(jnp.isnan(given), anywhere, jnp.nan_to_num(given))
        for state, column in enumerate(self.columns or ()):
            if column is not None:
                value = series.inputs[0, column]
                if self.logarithms is not None and self.logarithms[state]:
                    value = jnp.log(jnp.maximum(value, jnp.finfo(value.dtype).tiny))
                anywhere = anywhere.at[state].set(value)
        return inverse @ blurred + left_open @ anywhere

    @property
    def learned(self) -> bool:
        """Whether m and s are learned."""
        return isinstance(self.default, Free) and isinstance(self.spread, Positive)

    def at_normals(
        self, normals: Float[Array, "series state"], hidden: Bool[Array, " state"]
    ) -> "UncertainStart":
        """With m and s of hidden states by n recordings that were found to begin at these normals.

        mᵢ = m + s εᵢ; then m ← mean mᵢ and s² ← (s² + Σ (mᵢ − m)²)/n: one recording says nothing of
        how far others lie apart.
        """
        if not self.learned:
            return self
        assert isinstance(self.default, Free)
        assert isinstance(self.spread, Positive)
        m, s = self.default.value, self.spread.value
        begun, count = m + s * normals, len(normals)
        spread = jnp.sqrt((s**2 + count * jnp.var(begun, 0)) / count)
        raw = jnp.log(jnp.maximum(spread - self.spread.floor, SMALLEST))
        return eqx.tree_at(
            lambda start: (start.default.raw, start.spread.raw),
            self,
            (
                jnp.where(hidden, begun.mean(0), m),
                jnp.where(hidden, raw, self.spread.raw),
            ),
        )
