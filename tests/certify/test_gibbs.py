"""The training loss that is a bound, against its formula."""

import math

import numpy as np
import pytest

from helpers import linear_model, regular_batch
from hybridsde import EulerMaruyama, TruncatedError
from hybridsde.certify import GibbsRisk


@pytest.mark.parametrize("bound_series", [5, 50])
@pytest.mark.slow
def test_it_is_the_bound_with_the_batch_in_place_of_all(bound_series, getkey):
    """A drift of one against values that stay: the error is known, and so is the KL."""
    model = linear_model(0.0, [1.0], diffusion=1e-6, noise=0.1)
    batch = regular_batch(4, 1.0, start=(0.0,), series=3)
    loss = GibbsRisk(TruncatedError([1.0]), EulerMaruyama(), bound_series, delta=0.1)
    terms = loss(model, batch, 3, key=getkey())
    risk = np.mean([0.25**2, 0.5**2, 0.75**2, 1.0])
    kl = float(model.network.kl_to_prior())
    penalty = (kl + math.log(2 * math.sqrt(bound_series) / 0.1)) / (2 * bound_series)
    expected = (math.sqrt(risk + penalty) + math.sqrt(penalty)) ** 2
    np.testing.assert_allclose(terms.loss, expected, rtol=1e-4)
    np.testing.assert_allclose(terms.complexity, expected - risk, rtol=1e-4)
    np.testing.assert_allclose(terms.weight_kl, kl)
