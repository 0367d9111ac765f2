"""Drifts that explode: their paths are counted and cut off, and spoil no score."""

import jax.numpy as jnp
import numpy as np
import pytest

import hybridsde as hs
from helpers import untrained_run, wiggles
from hybridsde.hybrid.lost_paths import FAR, held_far_out
from hybridsde.model import Standardiser

USUAL = Standardiser(jnp.array([1.0]), jnp.array([2.0]))


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ([0.0, 5.0, np.nan, np.inf], [0.0, 5.0, 1 + 2 * FAR, 1 + 2 * FAR]),
        ([3.0, -5.0, -np.inf, np.nan], [3.0, -5.0, 1 - 2 * FAR, 1 - 2 * FAR]),
        ([3.0, 2.0, 1.0, 0.0], [3.0, 2.0, 1.0, 0.0]),
        ([np.nan, np.nan, np.nan, np.nan], [np.nan] * 4),
    ],
)
def test_a_path_stays_on_the_side_where_it_was_last(path, wanted):
    found = held_far_out(jnp.array(path)[None, None, :, None], USUAL)
    np.testing.assert_allclose(found[0, 0, :, 0], wanted, rtol=1e-6)


def test_scores_of_a_drift_that_explodes_are_numbers_and_it_is_said():
    physics = hs.equations("dx = 40*x^3", "dy = 1")
    spec = hs.HybridSDE(states=("x", "y"), physics=physics, hidden=None, diffusion=0.1, noise=0.1)
    data = wiggles()
    run = untrained_run(spec, data, plausible=((-30.0, 30.0), (-30.0, 30.0)))
    with pytest.warns(hs.InputNotice, match="left every plausible range"):
        scores = run.score(data, draws=20)
    assert np.isfinite(scores[["rmse", "crps", "coverage90"]].to_numpy()).all()
