"""How recordings are divided and cut."""

import numpy as np
import pytest

import hybridsde as hs
from hybridsde.project.split import Split, read_split


def series(count, length=12):
    rng = np.random.default_rng(0)
    times = [np.arange(float(length))] * count
    values = [rng.normal(size=(length, 2)) for _ in range(count)]
    return hs.Trajectories.from_arrays(times, values, states=("x", "y"))


def test_parts_are_disjoint_and_complete():
    data = series(10)
    parts = Split.of(data, 0.2, 0.25, seed=0).parts()
    assert [len(part) for part in parts.values()] == [6, 2, 2]
    assert sorted(name for part in parts.values() for name in part.ids) == sorted(data.ids)


def test_few_recordings_are_not_spared_for_validation():
    parts = Split.of(series(4), 0.25, 0.25, seed=0).parts()
    assert list(parts) == ["train", "test"]


def test_one_recording_is_cut_in_time():
    split = Split.of(series(1, 20), 0.25, 0.2, seed=0)
    assert split.test is not None
    assert split.train.times[0, -1] < split.test.times[0, 0]
    assert split.train.lengths[0] + split.test.lengths[0] == 20
    with pytest.raises(hs.InputError, match="too few"):
        Split.of(series(1, 3), 0.25, 0.2, seed=0)


def test_a_split_comes_back_from_its_file(tmp_path):
    split = Split.of(series(6), 0.3, 0.3, seed=0)
    path = tmp_path / "data.csv"
    split.to_frame().to_csv(path, index=False)
    back = read_split(path, ("x", "y"), ())
    for name, part in split.parts().items():
        np.testing.assert_allclose(back.parts()[name].values, part.values)
        assert back.parts()[name].ids == part.ids


def test_windows_that_touch_use_every_step_once():
    data = series(2, 12)
    pieces = data.windows(5, 4, least=2)
    assert pieces.lengths.tolist() == [5, 5, 4] * 2
    assert pieces.times[1, 0] == data.times[0, 4]
    assert (pieces.lengths - 1).sum() == (data.lengths - 1).sum()
    assert pieces.origins == ("0",) * 3 + ("1",) * 3
    assert not pieces.observed[2, 4:].any()
    whole = data.windows(40, 39, least=2)
    assert whole.ids == data.ids
