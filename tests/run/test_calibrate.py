"""Spreads are corrected on recordings that were not trained on, no further than these can tell."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

import hybridsde as hs
from helpers import plain_fit, tiny_model, wiggles
from hybridsde.run.calibrate import better_factor, scaled


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


FACTORS = jnp.array([0.25, 0.5, 1.0, 2.0, 4.0])


@pytest.mark.parametrize(
    ("losses", "kept"),
    [
        # All series agree that a half is better than one, by about the same.
        ([[9, 9, 9], [1.0, 2.0, 3.1], [1.5, 2.5, 3.5], [2, 3, 4], [9, 9, 9]], 0.5),
        # They disagree on whether a half is better.
        ([[9, 9, 9], [1.0, 2.0, 4.0], [1.5, 2.5, 3.5], [2, 3, 4], [9, 9, 9]], 1.0),
        # The best is an end of the grid: the optimum may lie anywhere beyond.
        ([[0.5, 1.5, 2.6], [1.0, 2.0, 3.1], [1.5, 2.5, 3.5], [2, 3, 4], [9, 9, 9]], 1.0),
        # One series alone proves nothing.
        ([[9], [1.0], [1.5], [2], [9]], 1.0),
        ([[jnp.inf, 1.0]] * 5, 1.0),
    ],
)
def test_a_spread_changes_only_beyond_doubt(losses, kept):
    assert better_factor(FACTORS, jnp.array(losses)) == kept


def test_the_smallest_change_that_is_as_good_as_the_best_is_taken():
    rng = np.random.default_rng(0)
    base = rng.normal(size=40)
    losses = [base + 3, base - 1.0 + 0.3 * rng.normal(size=40), base, base + 3, base + 3]
    nearly = base - 1.0 + 0.3 * rng.normal(size=40)
    factors = jnp.array([0.2, 0.5, 1.0, 1.25, 4.0])
    losses[3] = nearly
    assert better_factor(factors, jnp.array(losses)) == 1.25
