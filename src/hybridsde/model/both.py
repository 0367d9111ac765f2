"""A learned part of two pieces: readable terms, and networks for what these leave."""

from collections.abc import Callable

import equinox as eqx
import jax.random as jr

from hybridsde._parameters import Fixed
from hybridsde._types import Array, Float, Int, PRNGKeyArray, PyTree, Scalar, UInt32
from hybridsde.model.bayesian import AbstractBayesianNetwork, BayesianMLP, MixtureMLP
from hybridsde.model.library import Library
from hybridsde.model.network import MLP, AbstractNetwork, Linear, through


class TermsAndNetwork(AbstractNetwork):
    """f(x) = Φ(x) C + network(x)."""

    layers: tuple[Linear, ...]
    """Of the network."""
    activation: Callable = eqx.field(static=True)
    terms: Library

    @classmethod
    def of(cls, terms: Library, network: MLP) -> "TermsAndNetwork":
        """The sum of both."""
        return cls(network.layers, network.activation, terms)

    def noise(self, paths: UInt32[Array, "*path"], steps: int, *, key: PRNGKeyArray) -> PyTree:
        """Nothing."""
        del paths, steps, key

    def __call__(self, x: Float[Array, " feature"], noise: PyTree = None) -> Float[Array, " state"]:
        """Terms, and what they leave."""
        del noise
        return self.terms(x) + through(self.layers, self.activation, x)


class LibraryAndNetworks(AbstractBayesianNetwork):
    """Independent pieces: their KL to the prior is the sum of theirs.

    The library is held as its evidence has settled it: a network could do the same work.
    """

    library: Fixed
    """A `BayesianLibrary`."""
    networks: BayesianMLP | MixtureMLP

    @property
    def turns(self) -> int:
        """As the networks do."""
        return self.networks.turns

    def sample(self, *, key: PRNGKeyArray, number: Int[Array, ""] | None = None) -> TermsAndNetwork:
        """One choice of terms with its coefficients, and one network."""
        term_key, network_key = jr.split(key)
        return TermsAndNetwork.of(
            self.library.value.sample(key=term_key),
            self.networks.sample(key=network_key, number=number),
        )

    def local(self) -> AbstractNetwork:
        """Refused: coefficients are held along a path."""
        return self.library.value.local()

    def mean(self) -> TermsAndNetwork:
        """The mean drift of the terms, and the mean of the networks."""
        return TermsAndNetwork.of(self.library.value.mean(), self.networks.mean())

    def kl_to_prior(self) -> Scalar:
        """KL of the coefficients plus KL of the weights."""
        return self.library.value.kl_to_prior() + self.networks.kl_to_prior()
