"""How long one draw of the weights lasts: a whole path, or a single call."""

import abc
from typing import ClassVar

import equinox as eqx

from hybridsde._types import Array, Int, PRNGKeyArray
from hybridsde.model.bayesian import AbstractBayesianNetwork
from hybridsde.model.network import AbstractNetwork


class AbstractWeights(eqx.Module):
    """Turns a distribution over weights into a network that can be called."""

    held: eqx.AbstractClassVar[bool]
    """Whether paths need networks of their own; else one serves all, and its noise differs."""

    @abc.abstractmethod
    def draw(
        self,
        network: AbstractBayesianNetwork,
        *,
        key: PRNGKeyArray,
        number: Int[Array, ""] | None = None,
    ) -> AbstractNetwork:
        """The network of one path."""


class HeldWeights(AbstractWeights):
    """One draw of θ, held along the whole path (Algorithm 1)."""

    held: ClassVar[bool] = True

    def draw(
        self,
        network: AbstractBayesianNetwork,
        *,
        key: PRNGKeyArray,
        number: Int[Array, ""] | None = None,
    ) -> AbstractNetwork:
        """θ ~ p_φ(θ)."""
        return network.sample(key=key, number=number)


class LocalWeights(AbstractWeights):
    """A fresh θ at every step, by the local reparameterisation trick.

    A different model from held weights: independent draws average out along the path, so the
    epistemic variance of h_T shrinks from s²T² to s²TΔt for a constant drift of spread s.
    """

    held: ClassVar[bool] = False

    def draw(
        self,
        network: AbstractBayesianNetwork,
        *,
        key: PRNGKeyArray,
        number: Int[Array, ""] | None = None,
    ) -> AbstractNetwork:
        """The distribution itself; its calls do the drawing."""
        del key, number
        return network.local()


WEIGHTS: dict[str, AbstractWeights] = {"path": HeldWeights(), "local": LocalWeights()}
