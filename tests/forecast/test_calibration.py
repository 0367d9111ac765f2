"""PIT values and coverage of forecasts that are right, too narrow, and too wide."""

import numpy as np
import pytest

from hybridsde.forecast.calibration import LEVELS, coverage, pit

RNG = np.random.default_rng(0)
VALUES = RNG.normal(size=4000)
EVERYWHERE = np.ones(4000, bool)


@pytest.mark.parametrize("spread", [0.5, 1.0, 2.0])
def test_coverage_of_a_gaussian(spread):
    """Against P(|y| ≤ spread·z); five standard errors of 4000 values, and ranks of 400 draws."""
    from scipy.stats import norm

    draws = spread * RNG.normal(size=(400, 4000))
    found = coverage(pit(draws, VALUES), EVERYWHERE)
    expected = 2 * norm.cdf(spread * norm.ppf(0.5 + LEVELS / 2)) - 1
    error = np.sqrt(expected * (1 - expected) / 4000)
    assert (np.abs(found - expected) < 5 * error + 0.01).all()


def test_pit_values_are_uniform_and_inside():
    values = pit(RNG.normal(size=(99, 4000)), VALUES)
    assert values.min() > 0
    assert values.max() < 1
    assert values.mean() == pytest.approx(0.5, abs=5 * np.sqrt(1 / 12 / 4000))


def test_missing_values_do_not_count():
    seen = VALUES > 0
    pits = np.where(seen, 0.5, 0.999)
    assert (coverage(pits, seen) == 1).all()
