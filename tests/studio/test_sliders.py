"""What sliders change, and what they refuse."""

import numpy as np
import pytest

import hybridsde as hs
from helpers import tiny_model, untrained_run
from hybridsde import InputError
from hybridsde.project.split import Split
from hybridsde.studio.opened import OpenRun
from hybridsde.studio.sliders import BEYOND, forecasts_along, sliders_of

ROWS = 12


def driven(series=4):
    """Two states that follow an input."""
    t = 0.1 * np.arange(ROWS)
    values = [np.stack([np.sin(2 * t + p), np.cos(2 * t + p)], 1) for p in range(series)]
    push = [np.full((ROWS, 1), 1.0)] * series
    return hs.Trajectories.from_arrays(
        [t] * series, values, states=["x", "y"], inputs=push, input_names=["u"]
    )


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    data = driven()
    physics = hs.equations("dx = k*y + gain*u", k=hs.Bounded.of(2.0, 0.5, 9.0), gain=3.0)
    run = untrained_run(tiny_model(physics=physics, inputs=["u"]), data)
    return OpenRun(tmp_path_factory.mktemp("run"), run, Split.of(data, 0.25, 0.0, seed=0))


def medians(found, origin=0):
    return np.array(found["origins"][origin]["forecast"]["quantiles"][0][2])


def test_what_can_be_changed(opened):
    found = {one["name"]: one for one in sliders_of(opened.run)}
    assert found["u"] == {"kind": "input", "name": "u", "low": 0.0, "high": 2.0, "now": 1.0}
    assert (found["k"]["low"], found["k"]["high"]) == (0.5, 9.0)
    assert found["k"]["now"] == pytest.approx(2.0)
    assert (found["gain"]["low"], found["gain"]["high"]) == (0.0, 6.0)


def test_forecasts_begin_along_the_recording_and_go_on_after_it(opened):
    name = opened.recordings.ids[0]
    found = forecasts_along(opened, name, {})
    assert found["held"]  # the page says that the last inputs are kept
    given = [one["given"] for one in found["origins"]]
    assert (found["id"], found["part"]) == (name, "test")
    assert given == sorted(given)
    assert (given[0], given[-1]) == (1, ROWS)
    ends = [one["forecast"]["times"][-1] for one in found["origins"]]
    assert ends == pytest.approx([(1 + BEYOND) * 0.1 * (ROWS - 1)] * len(ends), abs=0.1)


def test_sliders_move_the_forecast_as_the_equations_say(opened):
    name = opened.recordings.ids[0]
    before = medians(forecasts_along(opened, name, {}))
    same = medians(forecasts_along(opened, name, {"inputs": {"u": 1.0}, "parameters": {}}))
    less = medians(forecasts_along(opened, name, {"inputs": {"u": 0.0}}))
    more = medians(forecasts_along(opened, name, {"parameters": {"gain": 6.0}}))
    np.testing.assert_array_equal(same, before)
    assert less[4] < before[4] < more[4]


@pytest.mark.parametrize(
    ("series", "changes", "message"),
    [
        ("nobody", {}, "no recording 'nobody'"),
        (None, {"inputs": {"w": 1.0}}, "no input 'w'"),
        (None, {"parameters": {"rho": 1.0}}, "no parameter 'rho'"),
        (None, {"inputs": {"u": "much"}}, "u must be a number"),
        (None, {"parameters": {"k": float("nan")}}, "k must be a number"),
    ],
)
def test_what_is_not_there_is_refused(opened, series, changes, message):
    with pytest.raises(InputError, match=message):
        forecasts_along(opened, series or opened.recordings.ids[0], changes)
