"""Rows without values change nothing: steps follow time."""

import equinox as eqx
import jax
import numpy as np
import pytest

import hybridsde as hs
from helpers import wiggles

pytestmark = pytest.mark.slow
TRAINING = hs.Training(epochs=2, batch_size=3)


def with_blanks(data: hs.Trajectories, count: int) -> hs.Trajectories:
    """So many rows without values between any two."""
    times, values, seen = [], [], []
    for t, y, there in zip(data.times, data.values, data.observed, strict=True):
        inside = np.linspace(t[:-1], t[1:], count + 2)[:-1].T.reshape(-1)
        times.append(np.append(inside, t[-1]))
        rows = np.arange(len(t)) * (count + 1)
        values.append(np.zeros((len(times[-1]), y.shape[1])))
        seen.append(np.zeros(values[-1].shape, bool))
        values[-1][rows], seen[-1][rows] = y, there
    return hs.Trajectories.from_arrays(times, values, states=data.states, observed=seen)


@pytest.fixture(scope="module")
def runs() -> list[hs.Run]:
    physics = hs.equations("dx = k*y", k=hs.Bounded.of(1.0, 0.1, 5.0))
    model = hs.HybridSDE(states=("x", "y"), physics=physics, hidden=(8,))
    return [hs.fit(model, with_blanks(wiggles(), count), training=TRAINING) for count in (0, 1, 5)]


def test_a_fit_is_the_same(runs):
    first, *others = (jax.tree.leaves(eqx.filter(r.forecaster, eqx.is_array)) for r in runs)
    for other in others:
        for a, b in zip(first, other, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5)


def test_forecasts_differ_by_chance_alone(runs):
    """Within three Monte-Carlo standard errors, of 400 draws over 6 series."""
    scores = [
        run.score(with_blanks(wiggles(seed=3), count), draws=400).loc["overall"]
        for run, count in zip(runs, (0, 1, 5), strict=True)
    ]
    repeats = [runs[0].score(wiggles(seed=3), draws=400, seed=n).loc["overall"] for n in range(6)]
    for name in ("crps", "rmse", "coverage90"):
        error = np.std([one[name] for one in repeats], ddof=1)
        for one in scores[1:]:
            assert abs(one[name] - scores[0][name]) < 3 * np.sqrt(2) * error + 1e-3
