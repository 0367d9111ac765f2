"""The activation by a series against the logarithm in double precision."""

import jax
import jax.numpy as jnp
import numpy as np

from hybridsde.model.network import softplus

X = np.linspace(-30, 30, 10_001).astype(np.float32)


def test_softplus_is_exact_to_single_precision():
    exact = np.logaddexp(X.astype(float), 0)
    np.testing.assert_allclose(softplus(jnp.asarray(X)), exact, rtol=5e-7)


def test_its_slope_is_the_sigmoid():
    slope = jax.vmap(jax.grad(softplus))(jnp.asarray(X))
    np.testing.assert_allclose(slope, 1 / (1 + np.exp(-X.astype(float))), rtol=1e-5)


def test_far_away_it_is_zero_or_the_identity():
    far = jnp.array([-1e4, 1e4])
    np.testing.assert_array_equal(softplus(far), [0, 1e4])
    np.testing.assert_array_equal(jax.vmap(jax.grad(softplus))(far), [0, 1])
