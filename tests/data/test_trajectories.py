import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybridsde import Trajectories
from hybridsde.data import Batch


def ragged(lengths=(5, 3, 8), **kwargs) -> Trajectories:
    rng = np.random.default_rng(0)
    times = [np.cumsum(rng.uniform(0.1, 1, n)) for n in lengths]
    values = [rng.normal(size=(n, 2)) for n in lengths]
    return Trajectories.from_arrays(times, values, states=["x", "y"], **kwargs)


def test_padding_repeats_the_last_time_and_is_unobserved():
    data = ragged()
    assert data.times.shape == (3, 8)
    assert (np.diff(data.times[1, 2:]) == 0).all()
    assert not data.observed[1, 3:].any()
    assert data.observed[1, :3].all()
    assert (Batch.of(data).steps[1, 2:] == 0).all()


def test_steps_keep_double_precision():
    t = 1e9 + 0.01 * np.arange(4)
    batch = Batch.of(Trajectories.from_arrays([t], [np.zeros((4, 1))]))
    np.testing.assert_allclose(batch.steps, 0.01, rtol=1e-4)


def test_split_is_by_recording_and_repeats():
    data = ragged((12, 12, 12, 12)).windows(4)
    first, second = data.split(0.5, seed=3)
    assert set(first.origins).isdisjoint(second.origins)
    assert len(first) + len(second) == len(data)
    again, _ = data.split(0.5, seed=3)
    assert again.ids == first.ids


def test_windows_hold_what_the_series_held():
    data = ragged((10, 7))
    cut = data.windows(4, stride=3)
    assert cut.ids == ("0[0:4]", "0[3:7]", "0[6:10]", "1[0:4]", "1[3:7]")
    np.testing.assert_array_equal(cut.values[1], data.values[0, 3:7])
    np.testing.assert_array_equal(cut.times[4], data.times[1, 3:7])
    assert cut.origins == ("0", "0", "0", "1", "1")


def test_start_is_the_first_row():
    data = ragged()
    assert data.start().times.shape == (3, 1)
    np.testing.assert_array_equal(data.start().values, data.values[:, :1])


def test_take_by_position_or_truth_value():
    data = ragged()
    assert data.take([2, 0]).ids == ("2", "0")
    assert data.take(np.array([True, False, True])).ids == ("0", "2")
    assert data.take(1).ids == ("1",)
    assert data.take([-1]).ids == ("2",)


@pytest.mark.parametrize("indices", [[], [3], [-4], [0.5], [[0, 1]], [True]])
def test_bad_positions(indices):
    with pytest.raises(ValueError, match="`indices` must be positions"):
        ragged().take(indices)


def test_iterating_gives_single_series():
    assert [len(one) for one in ragged()] == [1, 1, 1]
    assert [one.times.shape[1] for one in ragged()] == [5, 3, 8]


@given(st.lists(st.integers(2, 9), min_size=1, max_size=5), st.integers(2, 4), st.integers(1, 3))
@settings(max_examples=30, deadline=None)
def test_windows_never_leave_their_series(lengths, length, stride):
    data = ragged(tuple(lengths))
    if max(lengths) < length:
        with pytest.raises(ValueError, match="shorter windows"):
            data.windows(length, stride=stride)
        return
    cut = data.windows(length, stride=stride)
    assert cut.observed.all()
    assert (np.diff(cut.times) > 0).all()
    assert len(cut) == sum(max(0, (n - length) // stride + 1) for n in lengths)


T, Y = np.arange(3.0), np.zeros((3, 2))


def nan_at(row, column):
    values = Y.copy()
    values[row, column] = np.nan
    return values


@pytest.mark.parametrize(
    ("times", "values", "kwargs", "message"),
    [
        ([[0, 2, 1]], [Y], {}, r"not after index 1 .*Sort each series by time first\.$"),
        ([[0, 1, 1]], [Y], {}, r"'0' does not after index 1 .*Merge rows of equal time first\.$"),
        ([T, [0, np.nan, 1]], [Y, Y], {}, "`times` of series '1' is nan at index 1"),
        ([T], [nan_at(2, 1)], {}, "`values` of series '0' is nan in 'x1' at index 2"),
        ([T], [np.full((3, 2), np.inf)], {}, "is inf in 'x0' at index 0"),
        ([T], [Y], {"states": ["x", "t"]}, "'t', which stands for the time"),
        ([T], [Y], {"states": ["x", "lambda"]}, "'lambda', which cannot stand in an equation"),
        ([T], [Y], {"states": "xy"}, "must be a list of names, but is the text 'xy'"),
        ([T], [[["a", "b"]] * 3], {}, "`values` of series '0' is not an array of numbers"),
        ([T], [[[1.0], [1.0, 2.0]]], {}, "`values` of series '0' is not an array of numbers"),
        (list(T), list(Y), {}, "Give a list with one array per series"),
        ([[]], [np.zeros((0, 2))], {}, "Series '0' is empty"),
        ([T], [np.zeros((2, 2))], {}, r"must have shape \(3, 2\).*has shape \(2, 2\)"),
        ([T], [Y], {"states": ["x"]}, r"must have shape \(3, 1\)"),
        ([T], [Y], {"states": ["x", "x"]}, "names 'x' twice"),
        ([T], [Y], {"states": ["x", "2y"]}, "'2y', which cannot stand in an equation"),
        ([T, T], [Y], {}, "`values` holds 1 series but `times` holds 2"),
        ([T, T], [Y, Y], {"ids": ["a", "a"]}, "names series 'a' twice"),
        ([], [], {}, "holds no series"),
        ([T], [Y], {"observed": [np.ones((2, 2), bool)]}, "`observed` of series '0'"),
        ([T], [Y], {"inputs": [np.full((3, 1), np.nan)]}, "`inputs` of series '0' is nan in 'u0'"),
        ([T], [Y], {"inputs": [np.zeros((3, 1))], "input_names": ["x0"]}, "names 'x0' twice"),
    ],
)
def test_bad_recordings_are_named(times, values, kwargs, message):
    with pytest.raises(ValueError, match=message):
        Trajectories.from_arrays(times, values, **kwargs)


def test_nan_under_the_mask_is_fine():
    observed = ~np.isnan(nan_at(2, 1))
    data = Trajectories.from_arrays([T], [nan_at(2, 1)], observed=[observed])
    assert np.isfinite(data.values).all()
    assert not data.observed[0, 2, 1]


@pytest.mark.parametrize("fraction", [0.0, 1.0, -1.0])
def test_split_fraction(fraction):
    with pytest.raises(ValueError, match="`fraction`"):
        ragged().split(fraction, seed=0)


def test_one_recording_cannot_be_split():
    with pytest.raises(ValueError, match="at least two recordings"):
        ragged((9,)).windows(3).split(0.5, seed=0)
