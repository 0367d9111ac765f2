"""A fit of positive states: raw numbers go in and come out."""

import numpy as np
import pytest

import hybridsde as hs
from helpers import plain_fit

RNG = np.random.default_rng(0)
TIMES = [0.1 * np.arange(20)] * 4
VALUES = [np.exp(RNG.normal(size=(20, 2)).cumsum(0) * 0.1) for _ in range(4)]


@pytest.mark.slow
def test_forecasts_are_raw_and_positive():
    data = hs.Trajectories.from_arrays(TIMES, VALUES, states=("x", "y"))
    model = hs.HybridSDE(
        states=("x", "y"), positive=("x",), hidden=(8,), diffusion=0.5, noise=0.1, start="first"
    )
    run = plain_fit(model, data, training=hs.Training(epochs=2))
    forecast = run.forecast(data.start(), elapsed=[0.0, 0.5], draws=16)
    first = forecast.states.isel(draw=0, time=0)
    np.testing.assert_allclose(first, [v[0] for v in VALUES], rtol=1e-5)
    assert (forecast.observations.sel(obs="x") > 0).all()
    assert np.isfinite(run.score(data).to_numpy()).all()
