"""What only the filtered likelihood can learn."""

import numpy as np
import pytest

from hybridsde import (
    EmpiricalBayes,
    EulerMaruyama,
    HybridSDE,
    Training,
    Trajectories,
    equations,
    fit,
)


@pytest.mark.slow
def test_diffusion_and_noise_are_recovered_together():
    """An Ornstein–Uhlenbeck process with known drift: both within 20 %.

    30 series of 60 steps pin G and R to about 3 % (one standard error); the bound is wider by the
    discretisation of the drift.
    """
    rng = np.random.default_rng(0)
    g, r, dt, fine = 0.4, 0.2, 0.1, 20
    x = rng.normal(size=30)
    rows = [x]
    for _ in range(60):
        for _ in range(fine):
            x = x - x * dt / fine + g * np.sqrt(dt / fine) * rng.normal(size=30)
        rows.append(x)
    y = np.array(rows) + r * rng.normal(size=(61, 30))
    times = [dt * np.arange(61)] * 30
    data = Trajectories.from_arrays(times, list(y.T[..., None]), states=("x",))
    model = HybridSDE(
        states=("x",),
        physics=equations("dx = -x"),
        hidden=None,
        diffusion="learn",
        noise="learn",
        start="uncertain",
    )
    run = fit(
        model,
        data,
        objective=EmpiricalBayes(estimator="filtered", solver=EulerMaruyama()),
        training=Training(epochs=40, batch_size=10, learning_rate=0.05),
    )
    np.testing.assert_allclose(run.forecaster.model.diffusion.sd.value, [g], rtol=0.2)
    np.testing.assert_allclose(run.forecaster.model.observation.sd.value, [r], rtol=0.2)
