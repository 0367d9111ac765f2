"""Multi-layer perceptrons: with plain weights, and with weights redrawn at every call."""

import abc
from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from hybridsde._types import Array, Float, PRNGKeyArray, PyTree

ACTIVATIONS: dict[str, Callable] = {
    "softplus": jax.nn.softplus,
    "tanh": jnp.tanh,
    "relu": jax.nn.relu,
    "silu": jax.nn.silu,
    "gelu": jax.nn.gelu,
    "elu": jax.nn.elu,
}


class AbstractNetwork(eqx.Module):
    """A map from features to outputs that may use fresh noise at every call."""

    @abc.abstractmethod
    def noise(self, calls: int, *, key: PRNGKeyArray) -> PyTree:
        """What `calls` successive calls consume, stacked along a leading axis."""

    @abc.abstractmethod
    def __call__(self, x: Float[Array, " in"], noise: PyTree) -> Float[Array, " out"]:
        """The outputs at `x`."""


class ZeroNetwork(AbstractNetwork):
    """Nothing is learned: the output is zero."""

    outputs: int = eqx.field(static=True)

    def noise(self, calls: int, *, key: PRNGKeyArray) -> PyTree:
        """Nothing."""
        del calls, key

    def __call__(self, x: Float[Array, " in"], noise: PyTree = None) -> Float[Array, " out"]:
        """Zero."""
        del noise
        return jnp.zeros(self.outputs, x.dtype)


class Linear(eqx.Module):
    """x ↦ x W + b."""

    weight: Float[Array, "in out"]
    bias: Float[Array, " out"]

    def __call__(self, x: Float[Array, " in"]) -> Float[Array, " out"]:
        """The affine map of `x`."""
        return x @ self.weight + self.bias


class MLP(AbstractNetwork):
    """Linear layers with an activation between them; deterministic."""

    layers: tuple[Linear, ...]
    activation: Callable = eqx.field(static=True)

    @classmethod
    def init(
        cls,
        widths: Sequence[int],
        activation: Callable,
        *,
        last: float = 1.0,
        key: PRNGKeyArray,
    ) -> "MLP":
        """Normal weights of variance 1/fan-in, zero biases; the last layer shrunk by `last`."""
        keys = jr.split(key, len(widths) - 1)
        layers = [
            Linear(jr.normal(k, (rows, columns)) / jnp.sqrt(rows), jnp.zeros(columns))
            for k, rows, columns in zip(keys, widths[:-1], widths[1:], strict=True)
        ]
        layers[-1] = Linear(last * layers[-1].weight, layers[-1].bias)
        return cls(tuple(layers), activation)

    def noise(self, calls: int, *, key: PRNGKeyArray) -> PyTree:
        """Nothing."""
        del calls, key

    def __call__(self, x: Float[Array, " in"], noise: PyTree = None) -> Float[Array, " out"]:
        """Layer after layer."""
        del noise
        for layer in self.layers[:-1]:
            x = self.activation(layer(x))
        return self.layers[-1](x)


class LocalMLP(AbstractNetwork):
    """An MLP whose Gaussian weights are redrawn at every call, through its activations.

    With W ~ N(M, V) elementwise, x W + b is Gaussian with mean x M + m_b and variance
    x² V + v_b, so one normal per activation replaces one per weight: the local
    reparameterisation trick (Kingma et al. 2015; Haussmann et al. 2021, after eq. marglik-mc).
    """

    mean: MLP
    variance: MLP

    def noise(self, calls: int, *, key: PRNGKeyArray) -> PyTree:
        """One standard normal per activation and call."""
        widths = [len(layer.bias) for layer in self.mean.layers]
        draws = jr.normal(key, (calls, sum(widths)), self.mean.layers[0].bias.dtype)
        return tuple(jnp.split(draws, np.cumsum(widths)[:-1], axis=1))

    def __call__(self, x: Float[Array, " in"], noise: PyTree) -> Float[Array, " out"]:
        """Layer after layer, each output drawn from its Gaussian."""
        layers = zip(self.mean.layers, self.variance.layers, noise, strict=True)
        for depth, (mean, variance, epsilon) in enumerate(layers):
            if depth > 0:
                x = self.mean.activation(x)
            x = mean(x) + jnp.sqrt(variance(x * x)) * epsilon
        return x
