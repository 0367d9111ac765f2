"""Which recordings had which part in a model."""

import numpy as np
import pytest

import hybridsde as hs
from helpers import wiggles
from hybridsde.certify import UsedData
from hybridsde.certify.used_data import POSTERIOR, check_dependence

TRAIN, OTHER = wiggles(series=3, seed=0), wiggles(series=2, seed=1)


def test_recordings_are_found_by_their_rows():
    used = UsedData.of(train=TRAIN, validation=None)
    mixed = TRAIN.take([1]).join(
        hs.Trajectories.from_arrays(
            list(OTHER.times), list(OTHER.values), states=OTHER.states, ids=["new", "newer"]
        )
    )
    np.testing.assert_array_equal(used.any_of(mixed), [True, False, False])
    np.testing.assert_array_equal(used.which(TRAIN.windows(4), "train"), [True] * 9)
    assert used.count("train") == 3
    assert used.count("validation") == 0


def test_parts_add_up_and_survive_json():
    used = UsedData.of(train=TRAIN).add(calibration=OTHER)
    back = UsedData.from_dict(used.to_dict())
    assert back == used
    assert back.any_of(OTHER).all()
    assert not back.any_of(OTHER, except_for=("calibration",)).any()


def test_refusals_name_the_recording_the_part_and_a_remedy():
    used = UsedData.of(train=TRAIN)
    with pytest.raises(hs.InputError, match=r"3 of 3 .*'0' was seen before .*`fit_certified`"):
        used.require_unused(TRAIN)
    with pytest.raises(hs.InputError, match=r"recordings that the fit did not use\.$"):
        used.require_unused(TRAIN, set_apart=False)
    moved = used.add(**{POSTERIOR: OTHER})
    moved.require_unused(OTHER, except_for=(POSTERIOR,))
    with pytest.raises(hs.InputError, match="the weights were fitted to it"):
        moved.require_unused(OTHER)


def test_windows_of_a_used_recording_are_dependent_or_past():
    long = wiggles(series=1, steps=20)
    early, late = long.windows(10)
    used = UsedData.of(train=early)
    with pytest.raises(hs.InputError, match="not independent"):
        used.require_no_windows(late, "iid")
    used.require_no_windows(late, "sequential")
    with pytest.raises(hs.InputError, match="must come later"):
        UsedData.of(train=late).require_no_windows(early, "sequential")


def test_dependent_trajectories_are_recognised():
    windows = wiggles(series=1, steps=20).windows(5)
    check_dependence(windows, "sequential")
    for data, kind, message in (
        (windows, "iid", "windows of one recording"),
        (wiggles(series=1, steps=20).windows(5, 3), "sequential", "overlap"),
        (windows, "perhaps", "iid or sequential"),
    ):
        with pytest.raises(hs.InputError, match=message):
            check_dependence(data, kind)
