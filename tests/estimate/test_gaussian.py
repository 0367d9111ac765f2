"""The Kalman update against conditioning of a joint Gaussian."""

import jax.numpy as jnp
import numpy as np
from scipy import stats

from hybridsde.estimate import GaussianState, update


def test_the_update_is_that_of_the_joint_gaussian():
    rng = np.random.default_rng(0)
    mean, root = rng.normal(size=3), rng.normal(size=(3, 3))
    covariance, c = root @ root.T, rng.normal(size=(4, 3))
    sd, y = rng.uniform(0.5, 1.5, 4), rng.normal(size=4)
    seen = np.array([True, False, True, True])
    state, told = update(
        GaussianState(jnp.asarray(mean), jnp.asarray(covariance)),
        *(jnp.asarray(one) for one in (c, sd, y, seen)),
    )
    c, r, y = c[seen], np.diag(sd[seen] ** 2), y[seen]
    s = c @ covariance @ c.T + r
    gain = covariance @ c.T @ np.linalg.inv(s)
    np.testing.assert_allclose(state.mean, mean + gain @ (y - c @ mean), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(
        state.covariance, covariance - gain @ c @ covariance, rtol=1e-4, atol=1e-4
    )
    expected = stats.multivariate_normal(c @ mean, s).logpdf(y)
    np.testing.assert_allclose(told.log_prob, expected, rtol=1e-4)
