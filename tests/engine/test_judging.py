"""What a sweep judges on, and when it recommends other settings."""

import numpy as np
import pytest

from hybridsde import InputError, Trajectories
from hybridsde.engine.judging import FOLDS, blocks_in, folds_of, gain, row_losses, units_of
from hybridsde.engine.run_sweep import Trial, best_of
from hybridsde.engine.task import Outcome
from hybridsde.project.settings_file import check_settings


def recordings(count, rows):
    values = np.arange(count * rows, dtype=float).reshape(count, rows, 1)
    names = [f"r{number}" for number in range(count)]
    times = [np.arange(rows, dtype=float)] * count
    return Trajectories.from_arrays(times, list(values), states=["x"], ids=names)


def settings(**data):
    whole = {"data": {"files": "a.csv", "states": ["x"], "test": 0.0, **data}}
    return check_settings(whole, "a.toml")


def rows_of(data):
    return [float(v) for one in np.where(data.observed, data.values, np.nan) for v in one.ravel()]


def test_named_validation_recordings_are_the_only_judges():
    (fold,) = folds_of(settings(validation=["r1", "r4"]), recordings(6, 10))
    assert fold.scored.ids == ("r1", "r4")
    assert fold.validation is fold.scored
    assert not set(fold.train.ids) & set(fold.scored.ids)


def test_test_recordings_are_let_go():
    folds = folds_of(settings(test=["r0", "r5"]), recordings(8, 10))
    seen = {name for fold in folds for part in (fold.train, fold.scored) for name in part.ids}
    assert seen == {"r1", "r2", "r3", "r4", "r6", "r7"}


def test_recordings_take_turns():
    folds = folds_of(settings(), recordings(9, 10))
    assert len(folds) == FOLDS
    scored = [name for fold in folds for name in fold.scored.ids]
    assert sorted(scored) == [f"r{number}" for number in range(9)]
    for fold in folds:
        assert not set(fold.train.ids) & set(fold.scored.ids)
        assert fold.validation is fold.scored  # as the fit of these recordings has some


def test_blocks_of_one_record_take_turns_with_gaps():
    folds = folds_of(settings(), recordings(1, 200))
    scored = [value for fold in folds for value in rows_of(fold.scored)]
    assert scored == list(range(200))
    for fold in folds:
        apart = np.subtract.outer(rows_of(fold.train), rows_of(fold.scored))
        assert np.nanmin(np.abs(apart)) == 5  # a fiftieth of the rows lies between
        assert fold.validation is None
    assert blocks_in(folds) == 1


def test_short_recordings_are_left_out_one_by_one():
    folds = folds_of(settings(), recordings(3, 30))
    assert [fold.scored.ids for fold in folds] == [("r0",), ("r1",), ("r2",)]
    assert blocks_in(folds) == 2  # so that there are four units or more
    with pytest.raises(InputError, match="needs recordings to judge on"):
        folds_of(settings(), recordings(1, 100))


def test_units_are_recordings_or_blocks_of_them():
    losses = np.array([[1.0, 2.0], [3.0, np.nan], [5.0, 7.0]])
    assert units_of(losses, ["a", "a", "b"], 0, 1) == {"0/a/0": 2.0, "0/b/0": 6.0}
    assert units_of(losses, ["a", "a", "b"], 1, 2) == {
        "1/a/0": 1.5, "1/a/1": 3.0, "1/b/0": 5.0, "1/b/1": 7.0,
    }  # fmt: skip


def test_a_forecast_that_is_no_number_is_not_taken_for_a_gap():
    crps = np.array([[[1.0, 4.0], [np.nan, 2.0], [np.nan, 2.0], [np.nan, np.nan]]])
    observed = np.array([[[True, True], [False, True], [True, True], [False, False]]])
    found = row_losses(crps, observed, np.array([1.0, 2.0]))
    np.testing.assert_array_equal(found, [[1.5, 1.0, np.inf, np.nan]])
    assert units_of(found, ["a"], 0, 1) == {"0/a/0": np.inf}


def test_a_gain_has_the_error_of_paired_differences():
    random = np.random.default_rng(0)
    hard = random.random(6)  # what all trials find hard
    better = hard - 0.1 - 0.01 * random.random(6)
    names = "abcdef"
    found = gain([dict(zip(names, hard, strict=True))], [dict(zip(names, better, strict=True))])
    assert found is not None
    assert found.mean == pytest.approx(np.mean(hard - better))
    assert found.error == pytest.approx(np.std(hard - better, ddof=1) / np.sqrt(6))
    assert found.certain
    assert gain([{"a": 1.0}], [{"b": 1.0}]) is None
    one = gain([{"a": 1.0}], [{"a": 0.5}])
    assert one is not None
    assert not one.certain  # a single unit leaves every doubt


def test_seeds_add_to_the_doubt():
    before = [{"a": 1.0, "b": 1.0}, {"a": 1.0, "b": 1.0}]
    after = [{"a": 0.5, "b": 0.5}, {"a": 0.9, "b": 0.9}]
    found = gain(before, after)
    assert found is not None
    assert found.mean == pytest.approx(0.3)
    assert found.error == pytest.approx(np.std([0.5, 0.1], ddof=1) / np.sqrt(2))


def trial(number, units, whole=True):
    return Trial(number, {"a": number}, [Outcome([{"units": units, "whole": whole}])])


def test_settings_stay_unless_another_trial_is_better_beyond_doubt():
    first = trial(0, {"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0})
    lucky = trial(1, {"a": 1.1, "b": 2.1, "c": 3.1, "d": 0.1})
    sure = trial(2, {"a": 0.8, "b": 1.79, "c": 2.81, "d": 3.8})
    assert lucky.score < sure.score < first.score
    assert best_of([first, lucky]) is first
    assert best_of([first, lucky, sure]) is sure
    assert (
        best_of([first, trial(3, {"a": 0.0, "b": 0.0, "c": 0.0, "d": 0.0}, whole=False)]) is first
    )
    failed = Trial(0, {}, [Outcome([{"failure": "no"}])])
    assert best_of([failed, lucky]) is lucky
