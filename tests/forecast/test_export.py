"""Forecasts as files: times, inputs, quantiles."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import hybridsde as hs
from helpers import untrained_run, wiggles
from hybridsde.forecast.export import future_of, summary, write_forecast
from hybridsde.forecast.inputs import driven as along
from hybridsde.forecast.inputs import kept_on


@pytest.fixture(scope="module")
def forecast():
    data = wiggles(series=3)
    return untrained_run().forecast(data.start(), data.times[:, 1:5], draws=40)


def test_the_summary_is_that_of_the_draws(forecast):
    table = summary(forecast)
    assert len(table) == 3 * 4 * 2
    row = table[(table["trajectory"] == "1") & (table["obs"] == "y")].iloc[2]
    draws = forecast.observations.sel(trajectory="1", obs="y").isel(time=2).values
    np.testing.assert_allclose(row["mean"], draws.mean(), rtol=1e-5)
    np.testing.assert_allclose(row["q95"], np.quantile(draws, 0.95), rtol=1e-5)
    np.testing.assert_allclose(row["elapsed"], 0.3, rtol=1e-6)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".nc"])
def test_every_kind_of_file_comes_back(suffix, forecast, tmp_path):
    path = tmp_path / f"forecast{suffix}"
    write_forecast(forecast, path)
    if suffix == ".nc":
        with xr.open_dataset(path) as back:
            np.testing.assert_array_equal(back["states"], forecast.states)
        return
    back = pd.read_csv(path) if suffix == ".csv" else pd.read_parquet(path)
    np.testing.assert_allclose(back["q50"], summary(forecast)["q50"], rtol=1e-5)


def test_other_kinds_are_refused(forecast, tmp_path):
    with pytest.raises(hs.InputError, match=r"\.csv, \.parquet or \.nc"):
        write_forecast(forecast, tmp_path / "forecast.xlsx")


def driven():
    t = np.array([0.0, 1.0, 2.0])
    return hs.Trajectories.from_arrays(
        [t], [t[:, None]], states=["x"], inputs=[10 * t[:, None]], input_names=["u"]
    )


@pytest.mark.parametrize(
    ("kind", "expected"), [("held", [0, 10, 10, 20]), ("linear", [5, 10, 15, 20])]
)
def test_inputs_at_other_times(kind, expected):
    clock = future_of(driven(), np.array([0]), 4, None, interval=0.5)
    np.testing.assert_allclose(clock, [[0.5, 1.0, 1.5, 2.0]])
    spec = hs.HybridSDE(states=["x"], inputs=["u"], interpolation=kind)
    found = along(spec, driven().start(), clock, driven())
    np.testing.assert_allclose(found.inputs[0, :, 0], expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\n0.5\n", "increase"),
        ("one\n", "line 1: 'one'"),
        ("", "increase"),
        ("-1\n", "from the start"),
    ],
)
def test_bad_times_are_named(text, message, tmp_path):
    path = tmp_path / "times.txt"
    path.write_text(text)
    with pytest.raises(hs.InputError, match=message):
        future_of(driven(), np.array([0]), None, path, interval=1.0)


def test_rows_without_values_at_the_end_are_the_future():
    data = driven()
    clock = future_of(data, np.array([0]), None, None, interval=1.0)
    np.testing.assert_allclose(clock[0], data.times[0, 1:])
    last = data.lengths - 1
    with pytest.raises(hs.InputError, match="no rows after"):
        future_of(data, last, None, None, interval=1.0)
    clock = future_of(data, last, 2, None, interval=1.0)
    np.testing.assert_allclose(clock[0], data.ends[0] + np.array([1.0, 2.0]))
    spec = hs.HybridSDE(states=["x"], inputs=["u"])
    with pytest.raises(hs.InputError, match="from 0 to 2, but the forecast goes from 2 to 4"):
        along(spec, data, clock, data)
    held = along(spec, data, clock, kept_on(data, clock))
    np.testing.assert_allclose(held.inputs[0, :, 0], data.inputs[0, -1, 0])


def test_inputs_between_the_times_that_are_asked_for_count():
    spec = hs.HybridSDE(states=["x"], inputs=["u"])
    found = along(spec, driven().start(), np.array([[1.5, 2.0]]), driven())
    np.testing.assert_allclose(found.clock, [[1.0, 1.5, 2.0]])
    np.testing.assert_allclose(found.inputs[0, :, 0], [10, 10, 20])
    np.testing.assert_array_equal(found.asked, [[1, 2]])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, r"driven by u: say what it is .* inputs=record .* inputs=\"hold\""),
        ("keep", "must be numbers, a record or 'hold'"),
        (np.zeros(3), r"shape \(1, 2, 1\)"),
        (wiggles(), "holds none"),
    ],
)
def test_inputs_are_never_held_silently(given, message):
    spec = hs.HybridSDE(states=["x"], inputs=["u"])
    with pytest.raises(hs.InputError, match=message):
        along(spec, driven().start(), np.array([[1.0, 2.0]]), given)
