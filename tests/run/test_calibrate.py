"""Spreads are corrected on recordings that were not trained on, no further than these can tell."""

import dataclasses

import jax.numpy as jnp
import pytest

import hybridsde as hs
from helpers import plain_fit, tiny_model, wiggles
from hybridsde.run.calibrate import least_change, scaled


@pytest.mark.slow
def test_calibration_finds_spreads_that_are_too_large():
    """G fitted three times too large is brought back towards the truth."""
    data = wiggles()
    run = hs.fit(
        hs.HybridSDE(states=("x", "y"), hidden=(8,), diffusion="learn", noise="learn"),
        data,
        objective=hs.EmpiricalBayes(solver=hs.EulerMaruyama()),
        training=hs.Training(epochs=20, batch_size=3, learning_rate=0.02),
    )
    wide = dataclasses.replace(
        run, forecaster=scaled(run.forecaster, {"diffusion": jnp.array(3.0)})
    )
    calibrated = hs.calibrate(wide, wiggles(seed=4))
    factors = calibrated.metadata.calibration
    assert factors is not None
    assert factors["diffusion"] < 0.8
    before, after = (r.score(wiggles(seed=4)).loc["overall", "crps"] for r in (wide, calibrated))
    assert after < before
    fixed = plain_fit(tiny_model(), data, training=hs.Training(epochs=1))
    with pytest.raises(hs.InputError, match="Only a learned"):
        hs.calibrate(fixed, data)


FACTORS = jnp.array([0.25, 0.5, 1.0, 2.0])


@pytest.mark.parametrize(
    ("losses", "kept"),
    [
        # Both series agree that a quarter is best: no doubt, however small the gain.
        ([[1.0, 2.0], [1.1, 2.1], [1.2, 2.2], [2.0, 3.0]], 0.25),
        # They disagree on everything between a quarter and one, and both reject two.
        ([[1.0, 2.0], [1.3, 1.8], [1.5, 1.6], [2.0, 3.0]], 1.0),
        # One series alone has no error: the lowest wins.
        ([[1.2], [1.0], [1.1], [2.0]], 0.5),
        ([[jnp.inf, 1.0], [jnp.inf, 1.0], [1.0, 1.0], [0.9, 0.9]], 2.0),
        ([[jnp.inf, 1.0]] * 4, 1.0),
    ],
)
def test_the_smallest_change_within_a_standard_error(losses, kept):
    assert least_change(FACTORS, jnp.array(losses)) == kept
