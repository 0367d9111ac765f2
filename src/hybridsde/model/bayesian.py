"""Distributions over the weights of a network: Gaussian, sampled, or none."""

import abc
import math
from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jax.flatten_util import ravel_pytree

from hybridsde._parameters import Fixed
from hybridsde._random import normals
from hybridsde._types import Array, Float, Int, PRNGKeyArray, PyTree, Scalar
from hybridsde.model.network import ACTIVATIONS, MLP, AbstractNetwork, LocalMLP, ZeroNetwork


def gaussian_kl(
    mean: Float[Array, "*shape"],
    sd: Float[Array, "*shape"],
    prior_mean: Float[Array, "*#shape"],
    prior_sd: Float[Array, "*#shape"],
) -> Scalar:
    """KL divergence between products of independent Gaussians.

    KL(N(μ, σ²) ‖ N(μ₀, σ₀²)) = Σ ln(σ₀/σ) + (σ² + (μ − μ₀)²) / 2σ₀² − ½
    """
    ratio = sd / prior_sd
    shift = (mean - prior_mean) / prior_sd
    return jnp.sum(0.5 * (ratio**2 + shift**2 - 1) - jnp.log(ratio))


class MeanField(eqx.Module):
    """Independent Gaussians, one for every weight and bias of an MLP."""

    mean: MLP
    log_sd: MLP

    def sd(self) -> MLP:
        """Standard deviations, in the shape of the network."""
        return jax.tree.map(jnp.exp, self.log_sd)

    def sample(self, *, key: PRNGKeyArray) -> MLP:
        """μ + σ ∘ ε."""
        epsilon = _normal_like(self.mean, key=key)
        return jax.tree.map(lambda m, s, e: m + s * e, self.mean, self.sd(), epsilon)

    def kl_to(self, prior: "MeanField") -> Scalar:
        """KL divergence, summed over weights and biases."""
        parts = jax.tree.map(gaussian_kl, self.mean, self.sd(), prior.mean, prior.sd())
        return sum(jax.tree.leaves(parts), start=jnp.zeros(()))


class AbstractBayesianNetwork(eqx.Module):
    """A distribution over networks with a prior to be compared with."""

    @abc.abstractmethod
    def sample(self, *, key: PRNGKeyArray, number: Int[Array, ""] | None = None) -> AbstractNetwork:
        """One network, to be held along a path; of several, numbered ones take turns."""

    @property
    @abc.abstractmethod
    def turns(self) -> int:
        """How many networks numbered draws take turns among."""

    @abc.abstractmethod
    def local(self) -> AbstractNetwork:
        """The network that redraws itself at every call."""

    @abc.abstractmethod
    def mean(self) -> AbstractNetwork:
        """The network at the mean of its weights."""

    @abc.abstractmethod
    def kl_to_prior(self) -> Scalar:
        """KL(p_φ(θ) ‖ p_pri(θ)), the weight part of Lemma 1."""


class NothingLearned(AbstractBayesianNetwork):
    """No network at all: physics alone."""

    outputs: int = eqx.field(static=True)

    @property
    def turns(self) -> int:
        """One."""
        return 1

    def sample(self, *, key: PRNGKeyArray, number: Int[Array, ""] | None = None) -> ZeroNetwork:
        """Zero."""
        del key, number
        return ZeroNetwork(outputs=self.outputs)

    def local(self) -> ZeroNetwork:
        """Zero."""
        return ZeroNetwork(outputs=self.outputs)

    def mean(self) -> ZeroNetwork:
        """Zero."""
        return ZeroNetwork(outputs=self.outputs)

    def kl_to_prior(self) -> Scalar:
        """Zero."""
        return jnp.zeros(())


class BayesianMLP(AbstractBayesianNetwork):
    """A network with distribution p_φ(θ) over its weights and a fixed prior p_pri(θ).

    φ are the means and log standard deviations (Haussmann et al. 2021, eq. bbsde).
    """

    posterior: MeanField
    prior: Fixed
    """A `MeanField` in the shape of the posterior, never trained."""

    @classmethod
    def init(
        cls,
        widths: Sequence[int],
        activation: str,
        *,
        sd: float,
        prior_sd: float,
        last: float,
        key: PRNGKeyArray,
    ) -> "BayesianMLP":
        """Random means, one starting `sd` for all weights, prior N(0, prior_sd²)."""
        mean = MLP.init(widths, ACTIVATIONS[activation], last=last, key=key)
        return cls.about(mean, sd=sd, prior_sd=prior_sd)

    @classmethod
    def about(cls, mean: MLP, *, sd: float, prior_sd: float) -> "BayesianMLP":
        """One `sd` about the weights of a network, prior N(0, prior_sd²)."""
        prior = MeanField(
            jax.tree.map(jnp.zeros_like, mean),
            jax.tree.map(lambda leaf: jnp.full_like(leaf, math.log(prior_sd)), mean),
        )
        log_sd = jax.tree.map(lambda leaf: jnp.full_like(leaf, math.log(sd)), mean)
        return cls(MeanField(mean, log_sd), Fixed(prior))

    @property
    def turns(self) -> int:
        """One."""
        return 1

    def sample(self, *, key: PRNGKeyArray, number: Int[Array, ""] | None = None) -> MLP:
        """One network: θ = μ + σ ∘ ε."""
        del number
        return self.posterior.sample(key=key)

    def local(self) -> LocalMLP:
        """The network whose activations are drawn at every call."""
        variance = jax.tree.map(lambda log_sd: jnp.exp(2 * log_sd), self.posterior.log_sd)
        return LocalMLP.of(self.posterior.mean, variance)

    def mean(self) -> MLP:
        """θ = μ."""
        return self.posterior.mean

    def kl_to_prior(self) -> Scalar:
        """KL(p_φ(θ) ‖ p_pri(θ)), summed over weights and biases."""
        return self.posterior.kl_to(self.prior.value)

    def log_prior(self, weights: MLP) -> Scalar:
        """Ln p_pri(θ) = Σ −½ ((θ − μ₀)/σ₀)² − ln σ₀ − ½ ln 2π at given weights."""
        prior = self.prior.value
        return sum(
            jax.tree.leaves(jax.tree.map(_log_normal, weights, prior.mean, prior.sd())),
            start=jnp.zeros(()),
        )


class MixtureMLP(AbstractBayesianNetwork):
    """Several networks, each with Gaussian weights about its own mean, in equal shares.

    One Gaussian about one set of weights knows one explanation of the data. Networks that began
    elsewhere find others, and what they disagree about is what few recordings leave open
    (Lakshminarayanan, Pritzel and Blundell 2017). All share the other numbers of the model.
    """

    posterior: MeanField
    """Every array with a leading axis of networks."""
    prior: Fixed
    """A `MeanField` in the shape of one of them, never trained."""

    @classmethod
    def init(cls, make: Callable[[PRNGKeyArray], BayesianMLP], count: int, *, key: PRNGKeyArray):
        """Networks that begin at different weights."""
        each = [make(one) for one in jr.split(key, count)]
        posterior = jax.tree.map(
            lambda *leaves: jnp.stack(leaves), *(one.posterior for one in each)
        )
        return cls(posterior, each[0].prior)

    @property
    def count(self) -> int:
        """How many networks there are."""
        return len(self.posterior.mean.layers[0].bias)

    @property
    def turns(self) -> int:
        """Each has its turn."""
        return self.count

    def member(self, index: Int[Array, ""] | int) -> MeanField:
        """The distribution of one of them."""
        return jax.tree.map(lambda leaf: leaf[index], self.posterior)

    def sample(self, *, key: PRNGKeyArray, number: Int[Array, ""] | None = None) -> MLP:
        """One of them, by turns or by lot, and its weights."""
        choice_key, weight_key = jr.split(key)
        lot = jr.randint(choice_key, (), 0, self.count) if number is None else number
        return self.member(lot % self.count).sample(key=weight_key)

    def local(self) -> AbstractNetwork:
        """Refused: a path would change its network at every step."""
        raise ValueError("Weights that are redrawn at every step are those of one network.")

    def mean(self) -> MLP:
        """The first network at the mean of its weights: an average of weights would be none."""
        return self.member(0).mean

    def kl_to_prior(self) -> Scalar:
        """The mean over networks, which is not less than the KL of their mixture (convexity)."""
        return jax.vmap(lambda one: one.kl_to(self.prior.value))(self.posterior).mean()


class SampledNetworks(AbstractBayesianNetwork):
    """Networks that a sampler visited, each as likely as the others."""

    samples: MLP
    """Every array with a leading axis of samples."""

    @classmethod
    def point(cls, network: MLP) -> "SampledNetworks":
        """All probability on one network."""
        return cls(jax.tree.map(lambda leaf: leaf[None], network))

    @property
    def count(self) -> int:
        """How many networks there are."""
        return len(self.samples.layers[0].bias)

    @property
    def turns(self) -> int:
        """One."""
        return 1

    def sample(self, *, key: PRNGKeyArray, number: Int[Array, ""] | None = None) -> MLP:
        """One of them."""
        del number
        chosen = jr.randint(key, (), 0, self.count)
        return jax.tree.map(lambda leaf: leaf[chosen], self.samples)

    def local(self) -> AbstractNetwork:
        """Refused: a sampled network is held along a path."""
        raise ValueError("Sampled networks are held along a path: they cannot be redrawn by call.")

    def mean(self) -> MLP:
        """Averaged weights."""
        return jax.tree.map(lambda leaf: leaf.mean(0), self.samples)

    def kl_to_prior(self) -> Scalar:
        """Infinite: a few points have no density with respect to a Gaussian."""
        return jnp.full((), jnp.inf)


def _log_normal(
    x: Float[Array, "*shape"], mean: Float[Array, "*shape"], sd: Float[Array, "*shape"]
) -> Scalar:
    return jnp.sum(-0.5 * ((x - mean) / sd) ** 2 - jnp.log(sd) - 0.5 * math.log(2 * math.pi))


def _normal_like(tree: PyTree, *, key: PRNGKeyArray) -> PyTree:
    """Standard normals in the shape of a tree, from one draw."""
    flat, unravel = ravel_pytree(tree)
    return unravel(normals(key, flat.shape, flat.dtype))
