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

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jax.extend.core import get_opaque_trace_state

from hybridsde._types import PyTree

FEW_PATHS = 128
"""Up to this many paths, weight gradients are gathered."""
BLOCK = 256
"""Steps between kept states, in scans of more than twice as many."""

Step = Callable[[PyTree, PyTree, Any, Any], tuple[Any, Any]]
"""(layers, rest, carry, x) ↦ (carry, y) for one path."""
Lift = Callable[[Callable], Callable]
"""Maps a function of (carry, x, taps) over all paths."""


def scan(
    step: Step, lift: Lift, layers: tuple, rest: PyTree, carry: PyTree, xs: PyTree, paths: int
) -> tuple[Any, Any]:
    """`lax.scan` of `step` over all `paths`.

    Has reverse-mode gradients. With few paths it has no forward-mode ones.
    """
    steps = len(jax.tree.leaves(xs)[0])
    outputs = None
    if steps > 0 and paths <= FEW_PATHS:
        outputs = _outputs(step, lift, layers, rest, carry, xs)

    def block(arg: PyTree, xs: PyTree):
        if outputs is None:
            return _plain(arg, step, lift, xs, jax.checkpoint_policies.dots_saveable)
        return _gathered(arg, step, lift, xs, outputs)

    return _in_blocks(block, layers, rest, carry, xs, steps)


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
    return lax.scan(advance, carry, xs)


def _gathered(arg: PyTree, step: Step, lift: Lift, xs: PyTree, outputs: PyTree):
    """The plain scan, with the gradients of layers gathered."""
    numbers, other = eqx.partition((*arg, xs), eqx.is_inexact_array)
    arrays, static = eqx.partition(other, eqx.is_array)
    steps = len(jax.tree.leaves(xs)[0])

    @jax.custom_vjp
    def run(numbers: PyTree, arrays: PyTree):
        *arg, xs = eqx.combine(numbers, arrays, static)
        return _plain(arg, step, lift, xs)

    def forward(numbers: PyTree, arrays: PyTree):
        layers, *_ = eqx.combine(numbers, arrays, static)
        held = eqx.combine(arrays, static)[1:]

        def tapped(taps: PyTree, varied: PyTree):
            rest, carry, xs = eqx.combine(varied, held)
            return _tapped(step, lift, layers, taps, rest, carry, xs)

        taps = jax.tree.map(lambda out: jnp.zeros((steps, *out.shape), out.dtype), outputs)
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


def _outputs(
    step: Step, lift: Lift, layers: tuple, rest: PyTree, carry: PyTree, xs: PyTree
) -> PyTree | None:
    """Shapes of what the layers return in one step.

    None where a step does not call each of them once, or calls one inside a transformation of
    its own: such steps cannot be gathered.
    """
    gatherable = True

    def one(carry, x, taps):
        nonlocal gatherable
        del taps
        here = _trace()
        stand_ins = tuple(_Recorded(layer) for layer in layers)
        step(stand_ins, rest, carry, x)
        gatherable = all(layer.traces == [here] for layer in stand_ins)
        return tuple(layer.output for layer in stand_ins) if gatherable else ()

    first = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), xs)
    found = jax.eval_shape(lift(one), carry, first, ())
    return found if gatherable else None


def _trace() -> Any:
    """The transformation that operations are recorded by at this moment."""
    return get_opaque_trace_state(convention="flax")


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

    carry, (ys, inputs) = lax.scan(advance, carry, (xs, taps))
    return (carry, ys), inputs


def _gather(layer: PyTree, inputs: PyTree, cotangents: PyTree) -> PyTree:
    """The gradient of a layer's weights over all calls at once."""
    x, d = jax.tree.map(lambda leaf: leaf.reshape(-1, leaf.shape[-1]), (inputs, cotangents))
    _, pull = eqx.filter_vjp(lambda layer: jax.vmap(layer)(x), layer)
    return pull(d)[0]


class _Recorded:
    """Stands in for a layer and remembers where it was called and what it returned."""

    def __init__(self, layer: Callable):
        self._layer = layer
        self.traces: list[Any] = []
        self.output: Any = None

    def __call__(self, x):
        self.traces.append(_trace())
        self.output = self._layer(x)
        return self.output


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
