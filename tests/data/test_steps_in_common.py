"""What makes two recordings the same, and what does not."""

import numpy as np

import hybridsde as hs
from hybridsde.data.hashing import step_hashes


def recording(values, inputs) -> hs.Trajectories:
    values, inputs = (np.asarray(one, float)[:, None] for one in (values, inputs))
    return hs.Trajectories.from_arrays([np.arange(float(len(values)))], [values], inputs=[inputs])


def test_inputs_are_part_of_what_makes_rows_the_same():
    one = step_hashes(recording([1, 2, 3], [0, 0, 0]))[0]
    assert one == step_hashes(recording([1, 2, 3], [0, 0, 0]))[0]
    assert not one & step_hashes(recording([1, 2, 3], [5, 5, 5]))[0]


def test_saturated_stretches_are_not_shared_rows():
    one = step_hashes(recording([1, 10, 10, 10, 4], [0] * 5))[0]
    other = step_hashes(recording([2, 10, 10, 10, 3], [0] * 5))[0]
    assert not one & other
    assert len(one) == 2
