"""Steps of a solver follow time, not rows."""

import jax
import numpy as np
import pytest

import hybridsde as hs
from hybridsde.data import Batch, Clock, Grid


def series(times, inputs=None) -> hs.Trajectories:
    values = np.arange(len(times), dtype=float)[:, None]
    u = None if inputs is None else [np.asarray(inputs, float)[:, None]]
    return hs.Trajectories.from_arrays([times], [values], inputs=u)


def of_one(batch: Batch) -> Grid:
    return jax.tree.map(lambda leaf: leaf[0], batch).grid(1)


def test_long_gaps_get_more_steps_and_short_ones_fewer():
    grid = of_one(Batch.of(series([0.0, 1.0, 1.1, 4.1]), Clock(step=0.5)))
    np.testing.assert_allclose(grid.dt, [0.5, 0.5, 0.1, *[0.5] * 6], rtol=1e-6)
    np.testing.assert_array_equal(grid.row, [0, 1, 2, 0, 0, 0, 0, 0, 3])
    np.testing.assert_array_equal(grid.ends(4), [1, 2, 8])
    assert float(grid.dt.sum()) == pytest.approx(4.1)


def test_gaps_of_a_million_to_one_have_their_own_steps():
    counts = Clock(step=1.0).counts(np.array([[0.0, 1e-6, 100.0, 100.000001]]))
    np.testing.assert_array_equal(counts, [[1, 100, 1]])


def test_an_origin_is_subtracted_in_double_precision():
    times = 1.7e9 + np.array([0.0, 0.25, 0.5])
    batch = Batch.of(series(times), Clock(origin=1.7e9, step=0.25))
    np.testing.assert_array_equal(batch.times[0], [0.0, 0.25, 0.5])
    np.testing.assert_array_equal(of_one(batch).t, [0.0, 0.25])


def test_inputs_are_held_or_change_linearly_within_a_gap():
    data = series([0.0, 1.0, 2.0], [0.0, 4.0, 8.0])
    held, linear = (
        of_one(Batch.of(data, Clock(step=0.5, interpolation=how))).u[:, 0]
        for how in ("held", "linear")
    )
    np.testing.assert_allclose(held, [0, 0, 4, 4])
    np.testing.assert_allclose(linear, [1, 3, 5, 7])


def test_a_shorter_series_stays_at_its_end():
    data = hs.Trajectories.from_arrays(
        [[0.0, 1.0, 2.0], [0.0, 1.0]], [np.zeros((3, 1)), np.zeros((2, 1))]
    )
    batch = Batch.of(data, Clock(step=0.5))
    assert batch.fine is not None
    np.testing.assert_allclose(batch.fine.dt[1], [0.5, 0.5, 0.0, 0.0])
    short = jax.tree.map(lambda leaf: leaf[1], batch).grid(1)
    np.testing.assert_array_equal(short.ends(3)[:1], [1])
    assert float(short.dt[int(short.ends(3)[1])]) == 0


def test_a_time_that_is_asked_for_twice_is_one_step_of_length_zero():
    counts = Clock(step=1.0).counts(np.array([[0.0, 1.0, 1.0, 2.0, 2.0]]))
    np.testing.assert_array_equal(counts, [[1, 1, 1, 0]])


def test_cutting_steps_keeps_rows_and_time():
    grid = of_one(Batch.of(series([0.0, 1.0, 1.1]), Clock(step=0.5)))
    fine = grid.cut(3)
    np.testing.assert_allclose(fine.dt.reshape(-1, 3).sum(1), grid.dt, rtol=1e-6)
    np.testing.assert_array_equal(fine.row[2::3], grid.row)
    np.testing.assert_array_equal(fine.ends(3), 3 * grid.ends(3) + 2)


def test_absurdly_many_steps_are_refused():
    with pytest.raises(hs.InputError, match="more than 1,000,000"):
        Clock(step=1e-9).counts(np.array([[0.0, 1.0]]))


def test_rows_that_say_nothing_are_left_out():
    data = hs.Trajectories.from_arrays(
        [[0.0, 1.0, 2.0, 3.0], [0.0, 1.0]],
        [np.ones((4, 1)), np.ones((2, 1))],
        observed=[[[True], [False], [False], [True]], [[True], [True]]],
        inputs=[[[0.0], [0.0], [5.0], [5.0]], [[0.0], [0.0]]],
    )
    told = data.told()
    np.testing.assert_array_equal(told.lengths, [3, 2])
    np.testing.assert_array_equal(told.times[0], [0.0, 2.0, 3.0])
    np.testing.assert_array_equal(told.inputs[0, :, 0], [0.0, 5.0, 5.0])
    np.testing.assert_array_equal(told.observed[:, :, 0], [[1, 0, 1], [1, 1, 0]])


def test_a_row_between_linear_inputs_says_where_they_begin_to_change():
    data = hs.Trajectories.from_arrays(
        [[0.0, 1.0, 2.0]],
        [np.ones((3, 1))],
        observed=[[[True], [False], [True]]],
        inputs=[[[0.0], [0.0], [4.0]]],
    )
    assert data.told("held").lengths[0] == 2
    assert data.told("linear").lengths[0] == 3


def test_gaps_are_bridged_by_straight_lines():
    data = hs.Trajectories.from_arrays(
        [[0.0, 1.0, 4.0, 5.0]],
        [[[0.0, 1.0], [9.0, 3.0], [8.0, 9.0], [9.0, 9.0]]],
        observed=[[[True, True], [False, True], [True, False], [False, False]]],
    )
    lines = Batch.of(data).bridged()[0]
    np.testing.assert_allclose(lines[:, 0], [0.0, 2.0, 8.0, 8.0])
    np.testing.assert_allclose(lines[:, 1], [1.0, 3.0, 3.0, 3.0])
