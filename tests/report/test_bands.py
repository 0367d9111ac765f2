"""What an axis of time says, and when recordings are drawn from their own beginnings."""

import numpy as np
import pytest

import hybridsde as hs
from hybridsde.report.bands import clock_label, lie_apart


def test_labels_of_time():
    assert clock_label(None) == "time"
    assert clock_label("years") == "time, years"
    assert clock_label("h", "2026-11-02T09:00:00+00:00") == "time, h since 2026-11-02 09:00"


@pytest.mark.parametrize(("begins", "apart"), [((0.0, 1.0), False), ((0.0, 300.0), True)])
def test_recordings_that_follow_each_other_lie_apart(begins, apart):
    grid = np.arange(10) * 0.5
    data = hs.Trajectories.from_arrays(
        [begin + grid for begin in begins], [np.zeros((10, 1))] * 2, states=["x"]
    )
    assert lie_apart([data]) is apart
    assert not lie_apart([data.take([0])])
