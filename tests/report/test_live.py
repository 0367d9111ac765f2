"""What the page is given to draw."""

import json
from dataclasses import replace

import numpy as np
import pytest

import hybridsde as hs
from helpers import tiny_model, untrained_run, wiggles
from hybridsde._parameters import Bounded, Fixed, Free, Positive
from hybridsde.report.html import embedded
from hybridsde.report.live import _moved, _what_if, plain


def test_nothing_in_the_data_can_end_the_script():
    hostile = {"id": "</script><script>alert(1)</script>&lt;", "value": [1.5, None]}
    text = str(embedded(hostile))
    assert "<" not in text
    assert "&" not in text
    assert json.loads(text) == hostile


def test_numbers_are_short_and_gaps_are_null():
    assert plain(np.array([[1.23456789, np.nan], [np.inf, -1e-9]])) == [
        [1.2346, None],
        [None, -1e-9],
    ]


@pytest.mark.parametrize(
    "parameter", [Bounded.of(2.0, 0.1, 2.5), Positive.of(2.0), Free(2.0), Fixed(np.array(2.0))]
)
def test_a_parameter_moves_inside_its_limits(parameter):
    assert float(_moved(parameter, 1.5).value) == pytest.approx(1.5, rel=1e-5)
    high = float(_moved(parameter, 9.0).value)
    assert high == pytest.approx(2.5, rel=1e-2) if isinstance(parameter, Bounded) else 9.0


@pytest.mark.slow
def test_what_if_changes_what_it_says():
    """A parameter of the drift, the start and the input each move the forecast, one at a time."""
    data = wiggles(series=3)
    pushed = replace(data, inputs=np.ones((*data.times.shape, 1)), input_names=("u",))
    model = tiny_model(
        physics=hs.equations("dx = k*u", k=2.0), inputs=("u",), diffusion=0.05, noise=0.05
    )
    found = _what_if(untrained_run(model, pushed), pushed)
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
