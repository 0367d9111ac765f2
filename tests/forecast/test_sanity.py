"""Nonsense is counted, cut off and said."""

import warnings

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import hybridsde as hs
from hybridsde.forecast.plausible import cut_off, implausible
from hybridsde.forecast.sanity import say_nonsense

RANGE = jnp.array([[-1.0, 1.0], [0.0, jnp.inf]])


def test_draws_outside_are_counted_and_cut_off():
    draws = jnp.array([[0.5, 3.0], [5.0, -1.0], [jnp.nan, 1.0]])
    np.testing.assert_array_equal(implausible(draws, RANGE), [[0, 0], [1, 1], [1, 0]])
    np.testing.assert_array_equal(cut_off(draws, RANGE), [[0.5, 3.0], [1.0, 0.0], [np.nan, 1.0]])


DATA = hs.Trajectories.from_arrays(
    [np.arange(600.0)], [np.sin(np.arange(600.0))[:, None]], states=("x",)
)


@pytest.mark.parametrize(
    ("rmse", "coverage", "share", "message"),
    [
        (np.nan, 0.9, 0.0, "are not numbers"),
        (5.0, 0.9, 0.0, "far worse than the mean"),
        (0.1, 0.2, 0.0, "far too narrow"),
        (0.1, 1.0, 0.0, "far too wide"),
        (0.1, 0.9, 0.02, "2.00% of the draws left"),
    ],
)
def test_it_speaks_up(rmse, coverage, share, message):
    scores = pd.DataFrame({"rmse": [rmse], "coverage90": [coverage]}, ["x"])
    with pytest.warns(hs.InputNotice, match=message):
        say_nonsense(scores, share, DATA, 1)


@pytest.mark.parametrize("calibrated", [False, True])
def test_validation_is_not_asked_for_where_it_was_given(calibrated):
    scores = pd.DataFrame({"rmse": [0.1], "coverage90": [0.2]}, ["x"])
    with pytest.warns(hs.InputNotice, match="far too narrow") as said:
        say_nonsense(scores, 0.0, DATA, 1, calibrated=calibrated)
    assert ("Validation recordings let" in str(said[0].message)) is not calibrated


def test_it_is_quiet_where_all_is_well():
    scores = pd.DataFrame({"rmse": [0.2], "coverage90": [0.9]}, ["x"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        say_nonsense(scores, 0.0, DATA, 1)
