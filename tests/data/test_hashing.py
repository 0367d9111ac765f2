"""Hashes that tell recordings apart, however they were cut and named."""

from dataclasses import replace

import numpy as np

from helpers import wiggles
from hybridsde.data.hashing import pack, row_hashes, series_hashes, step_hashes, unpack


def test_a_series_is_known_by_times_values_and_inputs():
    data = wiggles(series=2)
    first = series_hashes(data)
    assert first == series_hashes(data)
    assert len(set(first.values())) == 2
    for change in (
        {"values": data.values + 1e-12},
        {"times": data.times + 1.0},
        {"observed": np.zeros_like(data.observed)},
    ):
        assert series_hashes(replace(data, **change))["0"] != first["0"]
    renamed = replace(data, ids=("a", "b"))
    assert list(series_hashes(renamed).values()) == list(first.values())


def test_windows_share_the_steps_of_the_whole():
    data = wiggles(series=1, steps=12)
    whole = step_hashes(data)[0]
    assert len(whole) == 11
    for window in step_hashes(data.windows(4, 2)):
        assert len(window) == 3
        assert window <= whole


def test_rows_without_values_leave_nothing():
    data = wiggles(series=1, steps=6)
    data.observed[0, 2:4] = False
    assert len(row_hashes(data)[0]) == 4
    assert len(step_hashes(data)[0]) == 3


def test_packed_steps_come_back():
    steps = step_hashes(wiggles(series=3))
    assert unpack(pack(steps)) == set().union(*steps)
    assert unpack(pack([])) == set()
