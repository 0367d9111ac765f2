"""A scan through a network whose weight gradients are gathered in one product at the end.

Reverse-mode differentiation of a scan adds to the gradient of every weight at every step; for
small batches this moves far more memory than the rest of the step. But a layer is linear in its
weights, z_k = x_k W + b, so the sum over steps is one product,

    ∂L/∂W = Σ_k x_kᵀ ∂L/∂z_k,

of the inputs and output gradients of all steps. Inputs are kept on the way forward. Output
gradients are those of a tap: a number that would be added to z_k, were it not zero.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax

from hybridsde._types import PyTree

Step = Callable[[PyTree, PyTree, Any, Any], tuple[Any, Any]]
"""(layers, rest, carry, x) ↦ (carry, y) for one path. Calls each layer once."""
Lift = Callable[[Callable], Callable]
"""Maps a function of (carry, x, taps) over all paths."""


def scan(
    step: Step, lift: Lift, layers: tuple, rest: PyTree, carry: PyTree, xs: PyTree, calls: tuple
) -> tuple[Any, Any]:
    """`lax.scan` of `step` over all paths; `calls` are its steps and then its axes of paths.

    Reverse-mode gradients reach `layers`, `rest` and `carry`, but not `xs`.
    """
    return _scan((layers, rest, carry), step, lift, xs, calls)


@eqx.filter_custom_vjp
def _scan(arg: PyTree, step: Step, lift: Lift, xs: PyTree, calls: tuple):
    del calls
    layers, rest, carry = arg

    def one(carry, x, taps):
        del taps
        return step(layers, rest, carry, x)

    return lax.scan(lambda carry, x: lift(one)(carry, x, ()), carry, xs)


@_scan.def_fwd
def _forward(perturbed: PyTree, arg: PyTree, step: Step, lift: Lift, xs: PyTree, calls: tuple):
    layers, rest, carry = arg
    varied, held = eqx.partition((rest, carry), perturbed[1:])

    def tapped(taps: PyTree, varied: PyTree):
        rest, carry = eqx.combine(varied, held)

        def one(carry, x, taps):
            stand_ins = tuple(_Tapped(layer, tap) for layer, tap in zip(layers, taps, strict=True))
            after = step(stand_ins, rest, carry, x)
            return after, tuple(layer.input for layer in stand_ins)

        def advance(carry, x):
            (carry, y), inputs = lift(one)(carry, *x)
            return carry, (y, inputs)

        carry, (ys, inputs) = lax.scan(advance, carry, (xs, taps))
        return (carry, ys), inputs

    taps = tuple(layer.zeros(calls) for layer in layers)
    out, pull, inputs = jax.vjp(tapped, taps, varied, has_aux=True)
    return out, (pull, inputs, out)


@_scan.def_bwd
def _backward(
    residuals, cotangent, perturbed, arg: PyTree, step: Step, lift: Lift, xs: PyTree, calls: tuple
):
    del perturbed, step, lift, xs, calls
    pull, inputs, out = residuals
    d_taps, d_rest = pull(_dense(cotangent, out))
    d_layers = tuple(
        _gather(layer, x, d) for layer, x, d in zip(arg[0], inputs, d_taps, strict=True)
    )
    return d_layers, *d_rest


def _gather(layer: PyTree, inputs: PyTree, cotangents: PyTree) -> PyTree:
    """The gradient of a layer's weights over all calls at once."""
    x, d = jax.tree.map(lambda leaf: leaf.reshape(-1, leaf.shape[-1]), (inputs, cotangents))
    _, pull = eqx.filter_vjp(lambda layer: jax.vmap(layer)(x), layer)
    return pull(d)[0]


def _dense(cotangent: PyTree, like: PyTree) -> PyTree:
    """Zeros where a result was not used."""
    return jax.tree.map(
        lambda d, leaf: jnp.zeros_like(leaf) if d is None else d,
        cotangent,
        like,
        is_leaf=lambda d: d is None,
    )


class _Tapped:
    """Stands in for a layer: taps its output and remembers its input."""

    def __init__(self, layer: Callable, tap: PyTree):
        self._layer, self._tap = layer, tap
        self.input: Any = None

    def __call__(self, x):
        self.input = x
        return jax.tree.map(_with_tap, self._layer(x), self._tap)


@jax.custom_jvp
def _with_tap(output, tap):
    """Output + tap where tap is zero: it costs nothing and has a gradient."""
    del tap
    return output


@_with_tap.defjvp
def _with_tap_jvp(primals, tangents):
    return primals[0], tangents[0] + tangents[1]
