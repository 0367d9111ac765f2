"""Who is trained on, who chooses the epoch, and who is kept for scores."""

import numpy as np
import pytest

import hybridsde as hs
from hybridsde import InputNotice
from hybridsde.project.split import Period, Split


def recordings(count=6, rows=30) -> hs.Trajectories:
    return hs.Trajectories.from_arrays(
        [np.arange(float(rows))] * count,
        [np.arange(float(rows))[:, None]] * count,
        ids=[f"run{n}" for n in range(count)],
    )


def test_by_name():
    split = Split.of(recordings(), ["run4", "run1"], ["run0"], seed=0)
    assert split.test is not None
    assert split.validation is not None
    assert split.test.ids == ("run1", "run4")
    assert split.validation.ids == ("run0",)
    assert split.train.ids == ("run2", "run3", "run5")


@pytest.mark.parametrize(
    ("test", "message"),
    [
        (["run9"], "names 'run9', but the recordings are run0"),
        ([f"run{n}" for n in range(6)], "none is left to learn from"),
        (Period(100.0), "no recording has two rows in it"),
        (Period(), "nothing is left to learn from"),
    ],
)
def test_what_cannot_be_split_is_said(test, message):
    with pytest.raises(hs.InputError, match=message):
        Split.of(recordings(), test, 0, seed=0)


def test_by_time():
    split = Split.of(recordings(2), Period(20.0), Period(10.0, 14.0), seed=0)
    assert split.test is not None
    assert split.validation is not None
    np.testing.assert_array_equal(split.test.times[:, 0], 20.0)
    np.testing.assert_array_equal(split.validation.times[0], np.arange(10.0, 15.0))
    assert len(split.train) == 4
    assert split.train.times.max() == 19


def test_by_name_beside_a_period():
    """Validation cities, and the last years of all of them for the test."""
    split = Split.of(recordings(3), Period(20.0), ["run1"], seed=0)
    assert split.validation is not None
    assert split.validation.origins == ("run1",)
    assert split.validation.times.max() == 19
    assert set(split.train.origins) == {"run0", "run2"}


def test_a_single_long_recording_spares_a_block_after_a_gap():
    split = Split.of(recordings(1, 300), 0.2, 0.15, seed=0)
    assert split.test is not None
    assert split.validation is not None
    assert split.test.times[0, 0] == 240
    gap = split.validation.times[0, 0] - split.train.ends[0]
    assert gap > 1
    assert split.validation.ends[0] == 239


def test_a_single_short_recording_spares_none():
    with pytest.warns(InputNotice, match="validation is 0.15, but there is 1 recording"):
        split = Split.of(recordings(1, 60), 0.2, 0.15, seed=0)
    assert split.validation is None


@pytest.mark.parametrize(("count", "spared"), [(3, None), (10, 2)])
def test_left_open_validation_is_a_share_of_four_or_more(count, spared):
    split = Split.of(recordings(count, 300), 0, seed=0)
    assert spared == (None if split.validation is None else len(split.validation))
