"""Multi-layer perceptrons: with plain weights, and with weights redrawn at every call."""

import abc
from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from hybridsde._parameters import Fixed
from hybridsde._random import path_normals
from hybridsde._types import Array, Float, PRNGKeyArray, PyTree, UInt32

ARTANH_TERMS = 8
HINGE = 4.0
"""How sharply a hinge bends: a softplus of so many times its argument."""


@jax.custom_jvp
def softplus(x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """ln(1 + eˣ) = max(x, 0) + ln(1 + y) with y = e^−|x|.

    ln(1 + y) = 2 artanh s = 2 (s + s³/3 + s⁵/5 + …) with s = y/(2 + y) ≤ ⅓, so eight terms reach
    the precision of single floats, at a quarter of the time that a logarithm takes on a CPU.
    Double floats take the logarithm.
    """
    y = jnp.exp(-jnp.abs(x))
    if x.dtype == jnp.float64:
        return jnp.maximum(x, 0) + jnp.log1p(y)
    s = y / (2 + y)
    square = s * s
    series = jnp.zeros_like(s)
    for power in reversed(range(ARTANH_TERMS)):
        series = series * square + 2 / (2 * power + 1)
    return jnp.maximum(x, 0) + s * series


@softplus.defjvp
def _softplus_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    return softplus(x), jax.nn.sigmoid(x) * dx


def hinge(x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Ln(1 + e⁴ˣ)/4: flat, then a line, with a smooth bend of a quarter of a unit between them."""
    return softplus(HINGE * x) / HINGE


ACTIVATIONS: dict[str, Callable] = {
    "softplus": softplus,
    "tanh": jnp.tanh,
    "relu": jax.nn.relu,
    "silu": jax.nn.silu,
    "gelu": jax.nn.gelu,
    "elu": jax.nn.elu,
    "hinge": hinge,
}


class AbstractNetwork(eqx.Module):
    """A map from features to outputs that may use fresh noise at every call."""

    layers: eqx.AbstractVar[tuple]
    """The maps of one vector that hold all weights, each affine in them, used by being called."""

    @abc.abstractmethod
    def noise(self, paths: UInt32[Array, "*path"], steps: int, *, key: PRNGKeyArray) -> PyTree:
        """What one call per step of numbered paths consumes: arrays of step × path × …"""

    @abc.abstractmethod
    def __call__(self, x: Float[Array, " in"], noise: PyTree) -> Float[Array, " out"]:
        """The outputs at `x`."""


class ZeroNetwork(AbstractNetwork):
    """Nothing is learned: the output is zero."""

    outputs: int = eqx.field(static=True)
    layers: tuple = ()

    def noise(self, paths: UInt32[Array, "*path"], steps: int, *, key: PRNGKeyArray) -> PyTree:
        """Nothing."""
        del paths, steps, key

    def __call__(self, x: Float[Array, " in"], noise: PyTree = None) -> Float[Array, " out"]:
        """Zero."""
        del noise
        return jnp.zeros(self.outputs, x.dtype)


class HeldNetwork(AbstractNetwork):
    """A network whose weights stay as they are while other numbers move."""

    held: Fixed
    layers: tuple = ()

    def noise(self, paths: UInt32[Array, "*path"], steps: int, *, key: PRNGKeyArray) -> PyTree:
        """As it consumes it."""
        return self.held.frozen.noise(paths, steps, key=key)

    def __call__(self, x: Float[Array, " in"], noise: PyTree = None) -> Float[Array, " out"]:
        """Its outputs."""
        return self.held.frozen(x, noise)


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
    direct: bool = eqx.field(static=True, default=False)
    """Whether the last layer sees the features themselves too, behind the units."""

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

    @classmethod
    def hinged(
        cls, features: int, units: int, outputs: int, *, last: float, key: PRNGKeyArray
    ) -> "MLP":
        """An affine map and a few hinges at random places: x ↦ V hinge(W x + b) + A x + c.

        W and b are standard normals, so that the bends lie where standardised features do; V
        is smaller by `last`, A and c begin at zero.
        """
        weight_key, bias_key, last_key = jr.split(key, 3)
        first = Linear(jr.normal(weight_key, (features, units)), jr.normal(bias_key, (units,)))
        bent = last * jr.normal(last_key, (units, outputs))
        straight = jnp.zeros((features, outputs))
        behind = Linear(jnp.concatenate([bent, straight]), jnp.zeros(outputs))
        return cls((first, behind), hinge, direct=True)

    def noise(self, paths: UInt32[Array, "*path"], steps: int, *, key: PRNGKeyArray) -> PyTree:
        """Nothing."""
        del paths, steps, key

    def __call__(self, x: Float[Array, " in"], noise: PyTree = None) -> Float[Array, " out"]:
        """Layer after layer."""
        del noise
        if not self.direct:
            return through(self.layers, self.activation, x)
        *inner, last = self.layers
        z = x
        for layer in inner:
            z = self.activation(layer(z))
        return last(jnp.concatenate([z, x]))


def through(layers: tuple, activation: Callable, x: Float[Array, " in"]) -> Float[Array, " out"]:
    """Layer after layer, with an activation between them."""
    for layer in layers[:-1]:
        x = activation(layer(x))
    return layers[-1](x)


class GaussianLinear(eqx.Module):
    """Mean and variance of x W + b for independent Gaussian W ~ N(M, V) and b."""

    mean: Linear
    variance: Linear

    def __call__(self, x: Float[Array, " in"]) -> tuple[Float[Array, " out"], Float[Array, " out"]]:
        """X M + m_b and x² V + v_b."""
        return self.mean(x), self.variance(x * x)


class LocalMLP(AbstractNetwork):
    """An MLP whose Gaussian weights are redrawn at every call, through its activations.

    One normal per activation replaces one per weight: the local reparameterisation trick (Kingma
    et al. 2015; Haussmann et al. 2021, after eq. marglik-mc).
    """

    layers: tuple[GaussianLinear, ...]
    activation: Callable = eqx.field(static=True)

    @classmethod
    def of(cls, mean: MLP, variance: MLP) -> "LocalMLP":
        """From means and variances in the shape of the network."""
        pairs = zip(mean.layers, variance.layers, strict=True)
        return cls(tuple(GaussianLinear(m, v) for m, v in pairs), mean.activation)

    def noise(self, paths: UInt32[Array, "*path"], steps: int, *, key: PRNGKeyArray) -> PyTree:
        """One standard normal per activation and call."""
        widths = [len(layer.mean.bias) for layer in self.layers]
        dtype = self.layers[0].mean.bias.dtype
        draws = path_normals(key, paths, steps, sum(widths), dtype)
        return tuple(jnp.split(draws, np.cumsum(widths)[:-1], axis=-1))

    def __call__(self, x: Float[Array, " in"], noise: PyTree) -> Float[Array, " out"]:
        """Layer after layer, each output drawn from its Gaussian."""
        for depth, (layer, epsilon) in enumerate(zip(self.layers, noise, strict=True)):
            mean, variance = layer(x if depth == 0 else self.activation(x))
            x = mean + jnp.sqrt(variance) * epsilon
        return x
