"""Where the equations are all there is, nothing is trained, and no recording is kept from them."""

from dataclasses import replace

import numpy as np
import pytest

import hybridsde as hs
from hybridsde.project.split import Split
from hybridsde.run.windows import training_batch


def decays(count=6, rows=30, k=0.8, noise=0.05):
    rng = np.random.default_rng(0)
    times = np.linspace(0, 3, rows)
    values = [
        (a * np.exp(-k * times) + noise * rng.normal(size=rows))[:, None]
        for a in rng.uniform(1, 3, count)
    ]
    return hs.Trajectories.from_arrays([times] * count, values, states=("x",))


MODEL = hs.HybridSDE(
    states=["x"],
    physics=hs.equations("dx = -k*x", k=hs.Bounded.of(0.3, 0.01, 5.0)),
    exact=["x"],
)


@pytest.fixture(scope="module")
def run():
    return hs.fit(MODEL, decays())


def test_exact_equations_are_fitted_by_maximum_likelihood(run):
    assert MODEL.complete
    assert run.spec.name == "physics alone"
    assert run.metadata.kept_epoch is None
    found = run.metadata.parameters["k"]
    assert found["low"] < 0.8 < found["high"]
    assert found["error"] < 0.05


def test_noise_is_told_with_errors(run):
    sigma = run.metadata.noise["x"]
    assert sigma["low"] < 0.05 < sigma["high"]
    assert set(run.metadata.diffusion) == {"x"}


def test_no_recording_is_kept_for_a_choice_that_is_not_made():
    data = decays()
    assert Split.of(data, 0.0, seed=0).validation is not None
    assert Split.of(data, 0.0, seed=0, chooses=False).validation is None


def test_a_hidden_state_is_not_forgotten_along_a_long_recording():
    """A start of zero is that of the recording, and not of every window of it."""
    times = np.arange(400.0)
    data = hs.Trajectories.from_arrays([times], [np.ones((400, 1))], states=("x",))
    model = hs.HybridSDE(
        states=["x", "s"], observed=["x"], physics=hs.equations("ds = x", "dx = -x*s"),
        start={"s": 0.0}, learned="library",
    )  # fmt: skip
    for one in (model, replace(model, exact=["x", "s"])):
        assert training_batch(one, data, None).count == 1
    measured = hs.HybridSDE(states=["x"], learned="library")
    assert training_batch(measured, data, None).count > 1


def test_profile_intervals_agree_with_the_parabola_where_the_likelihood_is_one(run):
    """Of a rate that 180 rows settle: both are θ̂ ± 1.645 errors, but for what bends."""
    found, profile = run.metadata.parameters["k"], run.profile(decays()).loc["k"]
    width = found["high"] - found["low"]
    assert profile["low"] == pytest.approx(found["low"], abs=0.05 * width)
    assert profile["high"] == pytest.approx(found["high"], abs=0.05 * width)


def test_an_end_that_the_data_leave_open_is_said():
    """Growth that was recorded far below its capacity bounds it from below alone."""
    times, rng = np.linspace(0, 2, 20), np.random.default_rng(0)
    values = [(np.exp(times) + 0.1 * rng.normal(size=20))[:, None] for _ in range(3)]
    data = hs.Trajectories.from_arrays([times] * 3, values, states=("x",))
    physics = hs.equations("dx = x*(1 - x/K)", K=hs.Positive.of(100.0))
    model = hs.HybridSDE(states=["x"], physics=physics, exact=["x"], diffusion=0, noise=0.1)
    ends = hs.fit(model, data).profile(data).loc["K"]
    assert ends["low"] > 10
    assert np.isnan(ends["high"])
