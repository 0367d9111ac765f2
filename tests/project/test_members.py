"""Members of a fleet in tables and in folders of Parquet files."""

import numpy as np
import pandas as pd
import pytest

from hybridsde import InputError
from hybridsde.data import to_frame
from hybridsde.datasets import machines
from hybridsde.project.members import Recordings, in_groups
from hybridsde.project.parquet_folder import read_folder
from hybridsde.project.settings_file import check_settings

DATA = {"files": "m.csv", "id": "machine", "states": ["x"], "inputs": ["u"]}


@pytest.fixture(scope="module")
def frame():
    table = to_frame(machines.load(seed=0, count=6, rows=9), id="machine")
    return table.assign(hall=table["machine"].str[-1].isin(["0", "1"]).map({True: "a", False: "b"}))


def recordings(folder, **data):
    return Recordings(check_settings({"data": {**DATA, **data}}, "settings"), folder)


def test_members_of_a_table(frame, tmp_path):
    text = "# made up\n" + frame.to_csv(index=False)
    (tmp_path / "m.csv").write_text(text)
    found = recordings(tmp_path)
    names = list(frame["machine"].unique())
    assert found.members() == {name: (name,) for name in names}
    assert found.members("hall") == {"a": tuple(names[:2]), "b": tuple(names[2:])}
    two = found.of([names[4], names[1]])
    assert two.ids == (names[4], names[1])
    np.testing.assert_allclose(two.values[0, :, 0], frame[frame["machine"] == names[4]]["x"])
    with pytest.raises(InputError, match="no trajectory 'machine9'"):
        found.of(["machine9"])
    with pytest.raises(InputError, match="no column 'halls'"):
        found.members("halls")


def test_a_trajectory_has_one_owner(frame, tmp_path):
    torn = frame.assign(hall=np.where(frame["t"] > 1, "a", "b"))
    torn.to_csv(tmp_path / "m.csv", index=False)
    with pytest.raises(InputError, match="belongs to 'b' and to 'a'"):
        recordings(tmp_path).members("hall")


def test_files_are_members_where_nothing_names_them(frame, tmp_path):
    for name in ("p", "q"):
        part = frame[frame["machine"] == "machine00000"].drop(columns=["machine"])
        part.to_csv(tmp_path / f"{name}.csv", index=False)
    found = recordings(tmp_path, files="*.csv", id=None)
    members = found.members()
    assert [name[-5:] for name in members] == ["p.csv", "q.csv"]
    assert len(found.of(list(members))) == 2


@pytest.mark.parametrize("key", ["machine", "hall"])
def test_hive_partitions_are_read_in_part(frame, tmp_path, key):
    numbered = frame.assign(machine=frame["machine"].str[-1].astype(int))
    numbered.to_parquet(tmp_path / "parts", partition_cols=[key])
    found = recordings(tmp_path, files="parts/")
    assert list(found.members()) == list("012345")
    assert found.members("hall")["a"] == ("0", "1")
    one = found.of(["3"])
    assert one.ids == ("3",)
    np.testing.assert_allclose(one.values[0, :, 0], numbered[numbered["machine"] == 3]["x"])
    rows = read_folder(tmp_path / "parts", found.settings.columns, ["3"])
    assert set(rows["machine"].astype(str)) == {"3"}
    whole = found.settings.read_data(tmp_path)
    assert len(whole) == 6


def test_an_empty_folder_is_named(tmp_path):
    (tmp_path / "none").mkdir()
    with pytest.raises(InputError, match="no Parquet files"):
        recordings(tmp_path, files="none").of(["a"])
    (tmp_path / "none" / "x.parquet").write_text("no table")
    with pytest.raises(InputError, match="no folder of Parquet files"):
        recordings(tmp_path, files="none").of(["a"])


def test_groups_depend_on_names_alone():
    names = [f"m{n}" for n in range(7)]
    assert list(in_groups(names, 3)) == [("m0", "m1", "m2"), ("m3", "m4", "m5"), ("m6",)]
    assert pd.Series(names).tolist() == [one for group in in_groups(names, 2) for one in group]


@pytest.mark.parametrize("files", ["m.csv", "parts"])
def test_columns_may_have_other_names(frame, tmp_path, files):
    renamed = frame.rename(columns={"machine": "Asset ID", "x": "TI-1"})
    renamed.to_csv(tmp_path / "m.csv", index=False)
    (tmp_path / "parts").mkdir()
    if files == "parts":
        pytest.importorskip("pyarrow")
        renamed.to_parquet(tmp_path / "parts" / "all.parquet")
    columns = {"machine": "Asset ID", "x": "TI-1"}
    found = recordings(tmp_path, files=files, columns=columns)
    names = list(frame["machine"].unique())
    assert list(found.members()) == names
    assert list(found.members("hall")) == ["a", "b"]
    one = found.of([names[2]])
    np.testing.assert_allclose(one.values[0, :, 0], frame[frame["machine"] == names[2]]["x"])
