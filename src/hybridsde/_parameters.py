"""Numbers that training may move, and numbers that it may not.

Every array in a model is trained unless it stands inside `Fixed`. A constrained number stores
an unconstrained `raw` array; its `value` always satisfies the constraint.
"""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hybridsde._types import Array, Float, Numbers, PyTree


def _array(value: Numbers) -> Array:
    return jnp.asarray(value, float)


class AbstractParameter(eqx.Module):
    """Something with a `value`."""

    @property
    @abc.abstractmethod
    def value(self) -> PyTree:
        """The number or tree of numbers that the model uses."""


class Fixed(AbstractParameter):
    """Arrays that training must not move."""

    frozen: PyTree

    @property
    def value(self) -> PyTree:
        """The arrays themselves."""
        return jax.lax.stop_gradient(self.frozen)


class Free(AbstractParameter):
    """A learned number without constraint."""

    raw: Float[Array, "*shape"] = eqx.field(converter=_array)

    @property
    def value(self) -> Float[Array, "*shape"]:
        """The number itself."""
        return self.raw


class Positive(AbstractParameter):
    """A learned number above a floor: value = floor + exp(raw)."""

    raw: Float[Array, "*shape"] = eqx.field(converter=_array)
    floor: float = eqx.field(static=True, default=0.0)

    @classmethod
    def of(cls, value: Numbers, floor: float = 0.0) -> "Positive":
        """Start at `value`, which must lie above `floor`."""
        number = np.asarray(value, float)
        if not (np.isfinite(number) & (number > floor)).all():
            raise ValueError(f"`value` must lie above the floor {floor:g}, but is {value}.")
        return cls(np.log(number - floor), floor)

    @property
    def value(self) -> Float[Array, "*shape"]:
        """The number, above the floor."""
        return self.floor + jnp.exp(self.raw)


class Bounded(AbstractParameter):
    """A learned number inside an interval: value = low + (high − low)·σ(raw)."""

    raw: Float[Array, "*shape"] = eqx.field(converter=_array)
    low: float = eqx.field(static=True, default=0.0)
    high: float = eqx.field(static=True, default=1.0)

    @classmethod
    def of(cls, value: Numbers, low: float = 0.0, high: float = 1.0) -> "Bounded":
        """Start at `value`, which must lie strictly between the ends."""
        number = np.asarray(value, float)
        if not ((low < number) & (number < high)).all():
            raise ValueError(f"`value` must lie between {low:g} and {high:g}, but is {value}.")
        return cls(np.log((number - low) / (high - number)), low, high)

    @property
    def value(self) -> Float[Array, "*shape"]:
        """The number, inside the interval."""
        return self.low + (self.high - self.low) * jax.nn.sigmoid(self.raw)


class Relative(AbstractParameter):
    """A learned factor times a unit that is measured on the data: value = unit · factor."""

    unit: Fixed
    factor: AbstractParameter

    @property
    def value(self) -> PyTree:
        """The number in raw units."""
        return self.unit.value * self.factor.value


def trainable(tree: PyTree) -> PyTree:
    """True for every floating-point array outside `Fixed`; a filter for `eqx.partition`."""

    def mark(node):
        if isinstance(node, Fixed):
            return jax.tree.map(lambda _: False, node)
        return eqx.is_inexact_array(node)

    return jax.tree.map(mark, tree, is_leaf=lambda node: isinstance(node, Fixed))


def refuse_numbers(function: object, what: str, remedy: str) -> None:
    """A `ValueError` where a module stands for a function: its numbers would never be trained."""
    leaves = jax.tree.leaves(eqx.filter(function, eqx.is_inexact_array))
    if leaves:
        raise ValueError(
            f"`{what}` is a {type(function).__name__} that holds "
            f"{sum(leaf.size for leaf in leaves)} numbers, and those of a function are not "
            f"trained. {remedy}"
        )
