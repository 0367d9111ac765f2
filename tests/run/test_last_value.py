"""A last value that is beyond belief is said, and does not move a forecast."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import hybridsde as hs


def record(rows=60, seed=0):
    rng = np.random.default_rng(seed)
    x = np.zeros(rows)
    for k in range(1, rows):
        x[k] = 0.9 * x[k - 1] + 0.1 * rng.normal()
    return 20 + x + 0.05 * rng.normal(size=rows)


def data_of(*records):
    return hs.Trajectories.from_arrays(
        [np.arange(float(len(one))) for one in records],
        [one[:, None] for one in records],
        states=("T",),
    )


@pytest.fixture(scope="module")
def run():
    model = hs.HybridSDE(
        states=["T"],
        physics=hs.equations("dT = k*(20 - T)", k=hs.Bounded.of(0.2, 0.01, 2.0)),
        exact=["T"],
    )
    return hs.fit(model, data_of(*(record(seed=n) for n in range(4))))


def spiked(by=30.0):
    found = record(seed=9)
    found[-1] += by
    return found


def test_a_spike_in_the_last_row_is_said_and_set_aside(run):
    with pytest.warns(hs.InputNotice, match="last value of 'T' of '0' is beyond belief"):
        wild = run.forecast(data_of(spiked()), steps=3)
    kept = run.forecast(data_of(record(seed=9)[:-1]), elapsed=[2.0, 3.0, 4.0])
    np.testing.assert_allclose(wild.mean(), kept.mean(), atol=0.1)


def test_what_can_be_believed_is_used(run):
    with warnings.catch_warnings():
        warnings.simplefilter("error", hs.InputNotice)
        after_step = run.forecast(data_of(spiked(0.4)), steps=1)
    before = run.forecast(data_of(record(seed=9)), steps=1)
    assert float(after_step.mean().squeeze()) > float(before.mean().squeeze()) + 0.1


def test_a_jump_is_believed_when_the_next_row_confirms_it(run):
    follower = run.follow(data_of(record(seed=9)))
    rows = replace(data_of(np.array([26.0])), times=np.array([[60.0]]))
    follower = follower.update(rows)
    assert follower.set_aside.all()
    assert abs(follower.mean().item() - 20) < 1
    again = replace(data_of(np.array([26.0])), times=np.array([[61.0]]))
    assert follower.update(again).mean().item() > 22


def test_where_nothing_is_ever_right_nothing_is_beyond_belief(run):
    """A record that moves twenty times as much as was learned: forecasts and followers go along."""
    wild = 20 + 20 * (record(seed=5) - 20)
    follower = run.follow(data_of(wild))
    assert not follower.set_aside.any()
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*beyond belief")
        run.forecast(data_of(wild), steps=1)


def test_following_row_by_row_is_filtering_at_once(run):
    whole = data_of(record(seed=3))
    follower = run.follow(whole.cut([(0, 0, 40)]).named(whole.ids))
    for row in range(40, 60):
        follower = follower.update(whole.cut([(0, row, row + 1)]).named(whole.ids))
    np.testing.assert_allclose(follower.mean(), run.follow(whole).mean(), rtol=1e-5)
