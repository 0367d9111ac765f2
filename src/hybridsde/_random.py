"""Standard normals, in bulk and fast on every kind of device."""

import math

import jax
import jax.numpy as jnp
import jax.random as jr
from jax import lax

from hybridsde._types import Array, Float, PRNGKeyArray, UInt32

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA


def threefry(
    key: UInt32[Array, "2"], first: UInt32[Array, "*word"], second: UInt32[Array, "*word"]
) -> tuple[UInt32[Array, "*word"], UInt32[Array, "*word"]]:
    """Threefry-2x32 with its 20 rounds (Salmon et al. 2011), the hash behind `jax.random`.

    Written out, it is one pass over memory. The loop that `jax.random` compiles on a CPU is one
    pass per round, which costs four times as much where the words do not fit the cache.
    """
    words = (key[0], key[1], key[0] ^ key[1] ^ jnp.uint32(PARITY))
    first, second = first + words[0], second + words[1]
    for group in range(5):
        for distance in ROTATIONS[group % 2]:
            first = first + second
            second = (second << distance) | (second >> (32 - distance))
            second = second ^ first
        first = first + words[(group + 1) % 3]
        second = second + words[(group + 2) % 3] + jnp.uint32(group + 1)
    return first, second


def normals(
    key: PRNGKeyArray, shape: tuple[int, ...], dtype: jax.typing.DTypeLike = float
) -> Float[Array, "..."]:
    """Standard normals of any shape. They differ from those of `jax.random.normal`."""
    if jax.dtypes.canonicalize_dtype(dtype) != jnp.float32:
        return jr.normal(key, shape, dtype)
    count = math.prod(shape)
    counter = lax.iota(jnp.uint32, -(-count // 2))
    words = threefry(jr.key_data(key)[:2], counter, jnp.zeros_like(counter))
    draws = jnp.concatenate([_normal(word) for word in words])[:count]
    return draws.reshape(shape)


def path_normals(
    key: PRNGKeyArray,
    paths: UInt32[Array, "*path"],
    steps: int,
    width: int,
    dtype: jax.typing.DTypeLike = float,
) -> Float[Array, "step *path {width}"]:
    """Standard normals for every step of every path.

    Those of a path depend on its number, not on which other paths there are: paths can be spread
    over devices or taken in parts.
    """
    if jax.dtypes.canonicalize_dtype(dtype) != jnp.float32:
        one = jax.vmap(lambda path: jr.normal(jr.fold_in(key, path), (steps, width), dtype))
        draws = one(paths.ravel()).reshape(*paths.shape, steps, width)
        return jnp.moveaxis(draws, -2, 0)
    half = -(-steps // 2)
    shape = (half, paths.size, width)
    counter = lax.broadcasted_iota(jnp.uint32, shape, 0) * jnp.uint32(width)
    counter = counter + lax.broadcasted_iota(jnp.uint32, shape, 2)
    numbers = jnp.broadcast_to(paths.reshape(-1, 1), shape)
    words = threefry(jr.key_data(key)[:2], counter, numbers)
    draws = jnp.concatenate([_normal(word) for word in words])[:steps]
    return draws.reshape(steps, *paths.shape, width)


def _normal(bits: UInt32[Array, "*shape"]) -> Float[Array, "*shape"]:
    """√2 erf⁻¹(u) with u uniform on (−1, 1): 23 bits, as in `jax.random.normal`."""
    mantissa = (bits >> 9) | jnp.uint32(0x3F800000)
    uniform = 2 * lax.bitcast_convert_type(mantissa, jnp.float32) - 3
    inside = jnp.maximum(uniform, jnp.nextafter(jnp.float32(-1), jnp.float32(0)))
    return math.sqrt(2) * lax.erf_inv(inside)
