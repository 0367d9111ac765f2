"""A scan through a network, differentiated with little memory and few passes over the weights.

Reverse-mode differentiation of a scan adds to the gradient of every weight at every step; with
few paths this moves far more memory than the rest of the step. But a layer is linear in its
weights, z_k = x_k W + b, so the sum over steps is one product,

    ∂L/∂W = Σ_k x_kᵀ ∂L/∂z_k,

of the inputs and output gradients of all steps. Inputs are kept on the way forward. Output
gradients are those of a tap: a number that would be added to z_k, were it not zero.

With many paths the product of a single step is large enough. There it is memory that counts: only
the products z_k are kept, and activations are computed again on the way back. Long scans keep the
state at the start of each block of steps, and run the block again on the way back.
"""

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax

from hybridsde._types import PyTree

FEW_PATHS = 128
"""Up to this many paths, weight gradients are gathered."""
BLOCK = 256
"""Steps between kept states, in scans of more than twice as many."""

UNROLL = {"cpu": 1, "gpu": 1}
"""Steps per turn of the compiled loop, by backend."""

Step = Callable[[PyTree, PyTree, Any, Any], tuple[Any, Any]]
"""(layers, rest, carry, x) ↦ (carry, y) for one path."""
Lift = Callable[[Callable], Callable]
"""Maps a function of (carry, x, taps) over all paths."""


def scan(
    step: Step, lift: Lift, layers: tuple, rest: PyTree, carry: PyTree, xs: PyTree, calls: tuple
) -> tuple[Any, Any]:
    """`lax.scan` of `step` over all paths; `calls` are its steps and then its axes of paths.

    Reverse-mode gradients reach `layers`, `rest` and `carry`, but not `xs`.
    """
    few = math.prod(calls[1:]) <= FEW_PATHS and _called_once(step, lift, layers, rest, carry, xs)

    def block(arg: PyTree, xs: PyTree):
        count = len(jax.tree.leaves(xs)[0])
        if few:
            return _gathered(arg, step, lift, xs, (count, *calls[1:]))
        return _plain(arg, step, lift, xs, jax.checkpoint_policies.dots_saveable)

    return _in_blocks(block, layers, rest, carry, xs, calls[0])


def _in_blocks(block: Callable, layers: tuple, rest: PyTree, carry: PyTree, xs: PyTree, steps: int):
    """Block after block, so that a long scan need not keep what happens inside them."""
    if steps <= 2 * BLOCK:
        return block((layers, rest, carry), xs)
    blocks, left = divmod(steps, BLOCK)
    arrays, static = eqx.partition((layers, rest), eqx.is_array)

    @jax.checkpoint
    def again(arrays: PyTree, carry: PyTree, xs: PyTree):
        return block((*eqx.combine(arrays, static), carry), xs)

    end = blocks * BLOCK
    folded = jax.tree.map(lambda leaf: leaf[:end].reshape(blocks, BLOCK, *leaf.shape[1:]), xs)
    carry, ys = lax.scan(lambda carry, xs: again(arrays, carry, xs), carry, folded)
    ys = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), ys)
    if not left:
        return carry, ys
    carry, last = again(arrays, carry, jax.tree.map(lambda leaf: leaf[end:], xs))
    return carry, jax.tree.map(lambda first, last: jnp.concatenate([first, last]), ys, last)


def _plain(arg: PyTree, step: Step, lift: Lift, xs: PyTree, policy: Callable | None = None):
    layers, rest, carry = arg

    def one(carry, x, taps):
        del taps
        return step(layers, rest, carry, x)

    def advance(carry, x):
        return lift(one)(carry, x, ())

    if policy is not None:
        advance = jax.checkpoint(advance, policy=policy, prevent_cse=False)
    return lax.scan(advance, carry, xs, unroll=_unroll())


def _gathered(arg: PyTree, step: Step, lift: Lift, xs: PyTree, calls: tuple):
    """The plain scan, with the gradients of layers gathered."""
    numbers, other = eqx.partition(arg, eqx.is_inexact_array)
    arrays, static = eqx.partition((other, xs), eqx.is_array)

    @jax.custom_vjp
    def run(numbers: PyTree, arrays: PyTree):
        other, xs = eqx.combine(arrays, static)
        return _plain(eqx.combine(numbers, other), step, lift, xs)

    def forward(numbers: PyTree, arrays: PyTree):
        other, xs = eqx.combine(arrays, static)
        layers, _, _ = eqx.combine(numbers, other)

        def tapped(taps: PyTree, varied: PyTree):
            rest, carry = eqx.combine(varied, other[1:])
            return _tapped(step, lift, layers, taps, rest, carry, xs)

        taps = tuple(layer.zeros(calls) for layer in layers)
        out, pull, inputs = jax.vjp(tapped, taps, numbers[1:], has_aux=True)
        return out, (pull, layers, inputs)

    def backward(residuals, cotangent):
        pull, layers, inputs = residuals
        d_taps, d_varied = pull(cotangent)
        d_layers = tuple(
            _gather(layer, x, d) for layer, x, d in zip(layers, inputs, d_taps, strict=True)
        )
        return (d_layers, *d_varied), None

    run.defvjp(forward, backward)
    return run(numbers, arrays)


def _called_once(
    step: Step, lift: Lift, layers: tuple, rest: PyTree, carry: PyTree, xs: PyTree
) -> bool:
    """Whether a step calls every layer once, which is what can be gathered."""
    stand_ins = tuple(_Counted(layer) for layer in layers)
    jax.eval_shape(
        lambda: lift(lambda carry, x, _: step(stand_ins, rest, carry, x))(
            carry, jax.tree.map(lambda leaf: leaf[0], xs), ()
        )
    )
    return all(layer.calls == 1 for layer in stand_ins)


def _unroll() -> int:
    return UNROLL.get(jax.default_backend(), 1)


def _tapped(
    step: Step, lift: Lift, layers: tuple, taps: PyTree, rest: PyTree, carry: PyTree, xs: PyTree
):
    """The plain scan with a tap on every layer, and the inputs of all layers."""

    def one(carry, x, taps):
        stand_ins = tuple(_Tapped(layer, tap) for layer, tap in zip(layers, taps, strict=True))
        after = step(stand_ins, rest, carry, x)
        return after, tuple(layer.input for layer in stand_ins)

    def advance(carry, x):
        (carry, y), inputs = lift(one)(carry, *x)
        return carry, (y, inputs)

    carry, (ys, inputs) = lax.scan(advance, carry, (xs, taps), unroll=_unroll())
    return (carry, ys), inputs


def _gather(layer: PyTree, inputs: PyTree, cotangents: PyTree) -> PyTree:
    """The gradient of a layer's weights over all calls at once."""
    x, d = jax.tree.map(lambda leaf: leaf.reshape(-1, leaf.shape[-1]), (inputs, cotangents))
    _, pull = eqx.filter_vjp(lambda layer: jax.vmap(layer)(x), layer)
    return pull(d)[0]


class _Counted:
    """Stands in for a layer and counts its calls."""

    def __init__(self, layer: Callable):
        self._layer = layer
        self.calls = 0

    def __call__(self, x):
        self.calls += 1
        return self._layer(x)


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
