"""What the page is given to draw."""

import json
from dataclasses import replace

import numpy as np
import pytest

import hybridsde as hs
from helpers import tiny_model, untrained_run, wiggles
from hybridsde._parameters import Bounded, Fixed, Free, Positive
from hybridsde.report.bands import plain
from hybridsde.report.html import embedded
from hybridsde.report.live import live_content
from hybridsde.report.whatif import moved_to, what_if


def test_nothing_in_the_data_can_end_the_script():
    hostile = {"id": "</script><script>alert(1)</script>&lt;", "value": [1.5, None]}
    text = str(embedded(hostile))
    assert "<" not in text
    assert "&" not in text
    assert json.loads(text) == hostile


def test_numbers_keep_five_digits_of_their_range_and_gaps_are_null():
    assert plain(np.array([[1.23456789, np.nan, 0.0], [np.inf, 1e9, 1e9 + 1.23456789]])) == [
        [1.2346, None, 0.0],
        [None, 1e9, 1e9 + 1.2346],
    ]
    stamps = 1.6e9 + np.arange(0, 3600, 0.25)
    assert plain(stamps, 8) == stamps.tolist()
    assert plain(np.array([7.0, 7.0])) == [7.0, 7.0]


@pytest.mark.parametrize(
    "parameter", [Bounded.of(2.0, 0.1, 2.5), Positive.of(2.0), Free(2.0), Fixed(np.array(2.0))]
)
def test_a_parameter_moves_inside_its_limits(parameter):
    assert float(moved_to(parameter, 1.5).value) == pytest.approx(1.5, rel=1e-5)
    high = float(moved_to(parameter, 9.0).value)
    assert high == pytest.approx(2.5 if isinstance(parameter, Bounded) else 9.0, rel=1e-2)


@pytest.mark.slow
def test_what_if_changes_what_it_says():
    """A parameter of the drift, the start and the input each move the forecast, one at a time."""
    data = wiggles(series=3)
    pushed = replace(data, inputs=np.ones((*data.times.shape, 1)), input_names=("u",))
    model = tiny_model(
        physics=hs.equations("dx = k*u", k=2.0), inputs=("u",), diffusion=0.05, noise=0.05
    )
    found = what_if(untrained_run(model, pushed), pushed)
    assert found is not None
    levers = {(one["kind"], one["name"]): one for one in found["levers"]}
    assert set(levers) == {("start", "x"), ("start", "y"), ("input", "u"), ("parameter", "k")}
    last = data.times[0, -1] - data.times[0, 0]

    def medians(lever):
        return np.array([one["quantiles"][0][2][-1] for one in lever["forecasts"]])

    pushes = np.diff(medians(levers["input", "u"]))
    np.testing.assert_allclose(pushes, 0.5 * 2.0 * last, atol=0.15)
    parameters = np.diff(medians(levers["parameter", "k"]))
    np.testing.assert_allclose(parameters, 0.25 * 2.0 * last, atol=0.15)
    starts = levers["start", "x"]
    np.testing.assert_allclose(np.diff(medians(starts)), np.diff(starts["values"]), atol=0.2)


@pytest.mark.slow
def test_shorter_recordings_end_where_they_end_and_an_unused_input_changes_nothing():
    data = wiggles(series=3)
    lengths = np.array([5, 8, data.times.shape[1]])
    seen = np.arange(data.times.shape[1]) < lengths[:, None]
    rows = np.minimum(np.arange(data.times.shape[1]), lengths[:, None] - 1)
    data = replace(
        data,
        times=np.take_along_axis(data.times, rows, 1),
        observed=data.observed & seen[..., None],
        lengths=lengths,
        inputs=np.ones((*data.times.shape, 1)),
        input_names=("u",),
    )
    sees = {"x": ("x",), "y": ("y",)}
    model = tiny_model(physics=hs.equations("dx = -x"), inputs=("u",), sees=sees, far="free")
    run = untrained_run(model, data)
    first = run.forecast(data.start(), data.times[:, 1:], inputs=data.inputs[:, 1:], draws=20)
    found = live_content(run, None, data, data, first, 3, "time")
    assert [len(one["forecast"]["times"]) for one in found["series"]] == [4, 7, lengths[2] - 1]
    assert [len(one["times"]) for one in found["series"]] == lengths.tolist()
    lever = next(one for one in found["whatif"]["levers"] if one["kind"] == "input")
    each = np.array([one["quantiles"] for one in lever["forecasts"]])
    np.testing.assert_allclose(each, np.broadcast_to(each[2], each.shape), atol=1e-4)
