"""Normals against the generator they are built on and against their law."""

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from scipy import stats

from hybridsde._random import normals, path_normals, threefry


def test_threefry_is_the_hash_of_jax_random(getkey):
    """`jax.random.bits` is the exclusive or of both words of the hash of a counter."""
    key, count = getkey(), 1000
    counter = jnp.arange(count, dtype=jnp.uint32)
    first, second = threefry(jr.key_data(key), jnp.zeros_like(counter), counter)
    np.testing.assert_array_equal(first ^ second, jr.bits(key, (count,)))


def test_normals_are_standard_normal(getkey):
    draws = np.asarray(normals(getkey(), (200_001,)))
    assert stats.kstest(draws, "norm").pvalue > 1e-6
    both_words = draws[:200_000].reshape(2, -1)
    assert abs(np.corrcoef(both_words)[0, 1]) < 5 / np.sqrt(100_000)
    neighbours = np.corrcoef(draws[:-1], draws[1:])[0, 1]
    assert abs(neighbours) < 5 / np.sqrt(len(draws))


@pytest.mark.parametrize("shape", [(), (1,), (3, 5), (0, 2)])
def test_normals_have_the_shape_and_repeat_by_key(shape, getkey):
    key = getkey()
    draws = normals(key, shape)
    assert draws.shape == shape
    assert np.isfinite(draws).all()
    np.testing.assert_array_equal(draws, normals(key, shape))
    assert draws.size == 0 or not np.array_equal(draws, normals(getkey(), shape))


def test_path_normals_are_standard_normal_and_differ_between_paths(getkey):
    draws = np.asarray(path_normals(getkey(), jnp.arange(2000, dtype=jnp.uint32), 25, 4))
    assert draws.shape == (25, 2000, 4)
    assert stats.kstest(draws.ravel(), "norm").pvalue > 1e-6
    flat = draws.transpose(1, 0, 2).reshape(2000, -1)
    off = np.corrcoef(flat, rowvar=False) - np.eye(100)
    assert np.abs(off).max() < 6 / np.sqrt(2000)
    between = np.corrcoef(flat[:100]) - np.eye(100)
    assert np.abs(between).max() < 6 / np.sqrt(100)


def test_a_path_keeps_its_normals_whatever_is_beside_it(getkey):
    key, numbers = getkey(), jnp.arange(6, dtype=jnp.uint32)
    together = path_normals(key, numbers.reshape(2, 3), 5, 2)
    alone = path_normals(key, numbers[4:5], 5, 2)
    np.testing.assert_array_equal(together[:, 1, 1], alone[:, 0])
