"""What innovations say, on sequences whose fault is known."""

import numpy as np
import pytest

from hybridsde.forecast.diagnostics import LAGS, diagnose


def white(seed=0, series=20, rows=100):
    return np.random.default_rng(seed).normal(size=(series, rows, 1))


def test_white_noise_is_as_it_should_be_and_rarely_called_otherwise():
    """Probabilities of 200 right models are uniform: about two below 0.01, ten at most."""
    found = [diagnose(white(seed, series=2), ("x",))[0] for seed in range(200)]
    for name in ("square_probability", "white_probability"):
        low = sum(getattr(one, name) < 0.01 for one in found)
        assert low <= 10
    assert "as they should" in diagnose(white(), ("x",))[0].advice()


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        (lambda z: z + 0.3, "too low on average"),
        (lambda z: 1.5 * z, "too narrow"),
        (lambda z: 0.6 * z, "too wide"),
        (lambda z: (z[:, 1:] + 0.7 * z[:, :-1]) / np.sqrt(1.49), "Something slow is missing"),
        (lambda z: (z[:, 1:] - 0.7 * z[:, :-1]) / np.sqrt(1.49), "taken for motion"),
    ],
)
def test_each_fault_has_its_advice(changed, word):
    assert word in diagnose(changed(white()), ("x",))[0].advice()


def test_gaps_count_nowhere_and_nothing_says_nothing():
    z = white()
    z[:, ::3] = np.nan
    found = diagnose(z, ("x",))[0]
    assert found.count == np.isfinite(z).sum()
    assert found.correlation.shape == (LAGS,)
    empty = diagnose(np.full((2, 30, 1), np.nan), ("x",))[0]
    assert "too few" in empty.advice()
