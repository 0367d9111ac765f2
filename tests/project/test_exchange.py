"""Tables as other forecasting libraries write and read them."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from hybridsde import InputError
from hybridsde.data.dates import Calendar
from hybridsde.forecast import Forecast
from hybridsde.project.exchange import check_layout, long_frame, write_long_frame
from hybridsde.project.settings_file import read_settings
from hybridsde.project.settings_template import settings_template


def forecast(names):
    draws = np.random.default_rng(0).normal(size=(400, 2, 3, len(names)))
    clock = np.array([[1.0, 2.0, 3.0], [5.0, 6.0, 7.0]])
    coordinates = {
        "trajectory": ["b", "a"],
        "time": [0, 1, 2],
        "clock": (("trajectory", "time"), clock),
        "elapsed": (("trajectory", "time"), clock - clock[:, :1]),
    }
    dims = ("draw", "trajectory", "time")
    found = xr.DataArray(draws, coordinates | {"obs": names}, (*dims, "obs"))
    return Forecast(found.rename(obs="state"), found, 1)


def test_one_row_per_series_and_time(tmp_path):
    found = forecast(["y"])
    table = long_frame(found)
    intervals = [f"hybridsde-{end}" for end in ("lo-50", "hi-50", "lo-90", "hi-90")]
    assert list(table.columns) == ["unique_id", "ds", "hybridsde", *intervals]
    assert list(table["unique_id"]) == ["a"] * 3 + ["b"] * 3
    assert list(table["ds"]) == [5.0, 6.0, 7.0, 1.0, 2.0, 3.0]
    first = found.observations.sel(trajectory="a").isel(time=0, obs=0).values
    np.testing.assert_allclose(table["hybridsde"][0], first.mean())
    np.testing.assert_allclose(table["hybridsde-lo-90"][0], np.quantile(first, 0.05))
    np.testing.assert_allclose(table["hybridsde-hi-90"][0], np.quantile(first, 0.95))
    write_long_frame(found, tmp_path / "f.csv")
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "f.csv"), table)
    dated = long_frame(found, Calendar("day", "2026-01-01T00:00:00+00:00"))
    assert str(dated["ds"][3]).startswith("2026-01-02")


def test_several_measurements_are_several_series():
    table = long_frame(forecast(["x", "y"]))
    assert list(table["unique_id"].unique()) == ["a/x", "a/y", "b/x", "b/y"]


def test_layouts_that_there_are(tmp_path):
    check_layout("nixtla", tmp_path / "f.parquet")
    with pytest.raises(InputError, match="no format 'wide'"):
        check_layout("wide", tmp_path / "f.csv")
    with pytest.raises(InputError, match="is a table"):
        check_layout("nixtla", tmp_path / "f.nc")


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_long_frames_are_recognised(tmp_path, suffix):
    rows = 24
    table = pd.DataFrame(
        {
            "unique_id": np.repeat(["m1", "m2"], rows // 2),
            "ds": np.tile(pd.date_range("2026-01-01", periods=rows // 2, freq="h"), 2).astype(str),
            "y": np.random.default_rng(0).normal(size=rows),
            "price": np.random.default_rng(1).normal(size=rows),
            "promotion": np.tile([0, 1, 1], 8),
        }
    )
    path = tmp_path / f"mine.{suffix}"
    table.to_csv(path, index=False) if suffix == "csv" else table.to_parquet(path, index=False)
    (tmp_path / "mine.toml").write_text(settings_template(path, tmp_path))
    settings = read_settings(tmp_path / "mine.toml")
    data = settings.data
    assert (data.id, data.time, data.states) == ("unique_id", "ds", ["y"])
    assert data.inputs == ["price", "promotion"]
    assert settings.read_data(tmp_path).ids == ("m1", "m2")
