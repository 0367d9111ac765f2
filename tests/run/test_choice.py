"""What is said of the choice between models."""

import warnings
from dataclasses import replace

import jax
import numpy as np
import pandas as pd
import pytest

import hybridsde as hs
from helpers import untrained_run, wiggles
from hybridsde.run import choice, fitting
from hybridsde.run.choice import better_of, say_contradiction, scaled_crps, set_apart
from hybridsde.run.windows import training_batch


@pytest.fixture
def scored(monkeypatch):
    """Makes runs whose forecasts of every observation have this CRPS."""

    def score(run, data):
        warnings.warn("about a candidate", hs.InputNotice, stacklevel=1)
        return pd.DataFrame({"crps": run.seed / 10}, [*data.states, "overall"])

    monkeypatch.setattr(hs.Run, "score", score)
    plain = untrained_run()
    return lambda crps: replace(plain, seed=round(10 * crps))


def test_equations_that_hinder_are_named(scored):
    with pytest.warns(hs.InputNotice, match="contradict these data"):
        say_contradiction(scored(1.0), scored(0.5), wiggles())


def test_equations_that_do_no_harm_are_not(scored):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        say_contradiction(scored(1.0), scored(0.9), wiggles())


def test_scores_are_in_spreads_of_the_data(scored):
    data = wiggles()
    twice = replace(data, values=2 * data.values)
    assert scaled_crps(scored(1.0), twice) == pytest.approx(scaled_crps(scored(0.5), data))


def test_the_better_one_is_kept_with_a_reason():
    data = wiggles(seed=5)
    first, second = untrained_run(seed=0), untrained_run(seed=1)
    found = better_of(first, second, data, "x", "the validation data")
    scores = [scaled_crps(one, data) for one in (first, second)]
    assert found.seed == int(scores[1] < scores[0])
    assert "since x, both were fitted" in (found.metadata.choice or "")


def test_what_is_set_apart_is_not_in_the_rest():
    data = wiggles(series=5)
    apart = set_apart(data, seed=0)
    assert apart is not None
    assert len(apart.recordings) == 1
    assert apart.rows.any(1).tolist() == [one in apart.recordings.ids for one in data.ids]
    assert set_apart(data.take([0]), seed=0) is None
    long = hs.Trajectories.from_arrays([np.arange(80.0)], [np.zeros((80, 1))], states=("x",))
    apart = set_apart(long, seed=0)
    assert apart is not None
    assert int(apart.recordings.lengths[0]) == 20
    assert apart.recordings.times[0, 0] == 60
    assert (apart.rows[0] == (np.arange(80) >= 60)).all()


def test_rows_that_are_set_apart_are_not_trained_on_in_arrays_of_the_same_shapes():
    rows = 300
    values = np.stack([np.sin(np.arange(rows) / 9), np.cos(np.arange(rows) / 9)], 1)
    seen = np.ones(values.shape, bool)
    seen[::7, 0] = False
    data = hs.Trajectories.from_arrays(
        [np.arange(float(rows))], [values], observed=[seen], states=("x", "y")
    )
    spec = hs.HybridSDE(states=("x", "y"), learned="network")
    apart = set_apart(data, seed=0)
    assert apart is not None
    whole = training_batch(spec, data, None)
    less = training_batch(spec, data, None, apart.rows)
    assert jax.tree.structure(whole) == jax.tree.structure(less)
    assert less.past is not None
    assert whole.past is not None
    for kept, all_of_it in ((less, whole), (less.past, whole.past)):
        told = np.asarray(all_of_it.times) < 225
        expected = np.asarray(all_of_it.observed) & told[..., None]
        np.testing.assert_array_equal(kept.observed, expected)
        np.testing.assert_array_equal(kept.values, all_of_it.values)


def test_a_trial_that_fails_leaves_the_library_but_not_where_another_fit_left_its_state(
    tmp_path, monkeypatch
):
    """A checkpoint of other settings must not be taken for networks that cannot be trained."""

    def fails(*args, **kwargs):
        raise hs.InputError("belongs to a fit with other settings")

    monkeypatch.setattr(fitting, "_fit", fails)
    library, data = untrained_run(), wiggles(series=5)
    same = {"checkpoint": tmp_path / "state", "seed": 0, "horizon": None}
    asked = (library, library.spec, data, None, "x", same)
    kept = fitting._judged_apart(*asked)
    assert "networks could not be tried (belongs to" in (kept.metadata.choice or "")
    (tmp_path / "state.trial").write_text("of another fit")
    with pytest.raises(hs.InputError, match="belongs to a fit with other settings"):
        fitting._judged_apart(*asked)


@pytest.mark.parametrize(("weight", "said"), [(0.5, "hang together"), (-0.5, None), (0.0, None)])
def test_only_errors_that_stay_on_one_side_speak_for_a_missing_term(weight, said, monkeypatch):
    """Those that alternate say that measurement noise is taken for motion."""
    noise = np.random.default_rng(0).normal(size=(6, 401, 2))
    errors = (noise[:, 1:] + weight * noise[:, :-1]) / np.hypot(1, weight)
    monkeypatch.setattr(choice, "about_fitted", lambda *asked: (None, None, None, None))
    monkeypatch.setattr(choice, "row_innovations", lambda about: errors)
    found = choice.doubt_about(untrained_run(), hs.HybridSDE(states=("x", "y")).batch(wiggles()))
    assert (found is None) == (said is None)
    assert said is None or said in str(found)


def test_forecasts_that_are_no_numbers_never_win(monkeypatch):
    crps = {0: np.nan, 1: 3.0}
    monkeypatch.setattr(choice, "scaled_crps", lambda run, windows: crps[run.seed])
    first, second = untrained_run(seed=0), untrained_run(seed=1)
    assert better_of(first, second, wiggles(), "x", "y").seed == 1
    assert better_of(second, first, wiggles(), "x", "y").seed == 1
