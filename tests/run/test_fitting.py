"""How recordings are cut for training and for forecasts, and what a system asks of them."""

import numpy as np
import pytest

import hybridsde as hs
from hybridsde.baselines import Climatology, LinearGaussian, NpODE, Persistence
from hybridsde.run.windows import forecast_windows, training_windows

NAMES = ("a", "b")


def walks(series, rows, step=0.25, seed=0, columns=NAMES):
    rng = np.random.default_rng(seed)
    values = [rng.normal(size=(rows, len(columns))).cumsum(0) for _ in range(series)]
    times = [step * np.arange(rows)] * series
    return hs.Trajectories.from_arrays(times, values, states=columns)


def test_long_recordings_are_cut_unless_a_system_takes_them_whole():
    data, hybrid = walks(1, 300), hs.HybridSDE(states=NAMES)
    assert training_windows(hybrid, data, None).lengths.tolist() == [120, 120, 62]
    assert len(training_windows(hybrid, data, hs.Training(longest=None))) == 1
    assert len(training_windows(hybrid, data, hs.Training(windows=((1, 10),)))) == 1
    whole = hs.fit(Climatology(observed=NAMES), data)
    np.testing.assert_allclose(whole.forecaster.mean.value, data.values[0].mean(0), rtol=1e-5)


def test_windows_of_a_forecast_hold_the_given_rows_and_the_horizon():
    data = walks(2, 12)
    assert forecast_windows(data, None) is data
    assert forecast_windows(data, 5).lengths.tolist() == [6, 6, 2] * 2
    assert forecast_windows(data, 5, context=3).lengths.tolist() == [8, 7] * 2
    run = hs.fit(
        Persistence(observed=NAMES, given=3), data, validation=walks(4, 12, seed=1), horizon=5
    )
    assert run.metadata.calibration is not None


def test_another_step_of_time_is_refused_by_every_question():
    run = hs.fit(LinearGaussian(observed=NAMES, states=2, iterations=2), walks(4, 8))
    slow = walks(4, 8, step=0.5, seed=1)
    asked = (run.score, run.certify, run.conformal, lambda data: hs.calibrate(run, data))
    for question in asked:
        with pytest.raises(ValueError, match=r"equal steps of time, here of 0\.25"):
            question(slow)


def test_a_certified_fit_needs_weights_with_a_prior():
    with pytest.raises(hs.InputError, match="persistence has no weights with a prior"):
        hs.fit_certified(Persistence(observed=NAMES), walks(8, 12))
    run = hs.fit(Persistence(observed=NAMES), walks(8, 12))
    with pytest.raises(hs.InputError, match=r"recordings that the fit did not use\.$"):
        run.certify(walks(8, 12))


@pytest.mark.slow
def test_many_components_survive_a_folder(tmp_path):
    columns = tuple(f"c{k}" for k in range(9))
    spec = NpODE(observed=columns, components=9, inducing=5)
    run = hs.fit(spec, walks(3, 6, columns=columns), training=hs.Training(epochs=1))
    run.save(tmp_path / "many")
    assert hs.Run.load(tmp_path / "many").spec.components == 9
