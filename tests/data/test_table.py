"""Tables: what is read, that it comes back, and one line for everything that is wrong."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import hybridsde as hs
from hybridsde import (
    Columns,
    InputError,
    InputNotice,
    Trajectories,
    from_frame,
    from_xarray,
    read_csv,
    read_table,
    to_frame,
    to_xarray,
)

GOOD = "run,t,x,y,u\na,0,1,2,0\na,1,2,,1\na,2.5,3,5,1\nb,0,4,1,0\nb,2,5,3,2\n"


def write(tmp_path, content, name="runs.csv"):
    path = tmp_path / name
    path.write_text(content)
    return path


def read(path, **changes):
    return read_csv(path, **{"id": "run", "states": ["x", "y"], "inputs": ["u"], **changes})


def test_rows_become_trajectories(tmp_path):
    data = read(write(tmp_path, GOOD))
    assert data.ids == ("a", "b")
    assert data.lengths.tolist() == [3, 2]
    assert data.times[0].tolist() == [0, 1, 2.5]
    assert data.values[1, :2].tolist() == [[4, 1], [5, 3]]
    assert data.observed[0].tolist() == [[True, True], [True, False], [True, True]]
    assert data.inputs[1, :2, 0].tolist() == [0, 2]


def test_rows_may_come_in_any_order_which_is_said(tmp_path):
    header, *rows = GOOD.splitlines()
    shuffled = "\n".join([header, *rows[::-1]])
    with pytest.warns(InputNotice, match="were sorted"):
        data = read(write(tmp_path, shuffled))
    assert data.times[0].tolist() == [0, 1, 2.5]


def test_comments_spaces_and_a_byte_order_mark_are_no_obstacle(tmp_path):
    content = "\ufeff# a comment\n# another\nYear, Lynx, Hare\n1900, 4.0, 30.0\n1901, 6.1, 47.2\n"
    data = read_csv(write(tmp_path, content), time="Year", states=["Lynx", "Hare"])
    assert data.values[0].tolist() == [[4.0, 30.0], [6.1, 47.2]]


def test_several_files_by_wildcard_are_several_trajectories(tmp_path):
    write(tmp_path, "t,x\n0,1\n1,2\n", "one.csv")
    write(tmp_path, "t,x\n0,3\n1,5\n2,6\n", "two.csv")
    data = read_csv(str(tmp_path / "*.csv"), states=["x"])
    assert data.lengths.tolist() == [2, 3]
    assert data.ids == (str(tmp_path / "one.csv"), str(tmp_path / "two.csv"))


def test_timestamps_count_in_the_declared_unit(tmp_path):
    content = "t,x\n2026-03-01 12:00,1\n2026-03-01 18:00,2\n2026-03-03 12:00,4\n"
    path = write(tmp_path, content)
    assert read_csv(path, states=["x"], unit="day").times[0].tolist() == [0, 0.25, 2]
    assert read_csv(path, states=["x"], unit="h").times[0].tolist() == [0, 6, 48]


def test_a_missing_input_keeps_the_value_before_it(tmp_path):
    with pytest.warns(hs.InputNotice, match="1 missing inputs of 'a' keep the value before"):
        data = read(write(tmp_path, GOOD.replace("a,2.5,3,5,1", "a,2.5,3,5,")))
    assert data.inputs[0, :, 0].tolist() == [0, 1, 1]


def test_parquet_is_read_like_csv(tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.read_csv(write(tmp_path, GOOD))
    frame.to_parquet(tmp_path / "runs.parquet")
    columns = Columns(("x", "y"), "t", "run", ("u",))
    ours = read_table(tmp_path / "runs.parquet", columns)
    theirs = read(tmp_path / "runs.csv")
    np.testing.assert_array_equal(ours.values, theirs.values)
    assert ours.ids == theirs.ids


BAD = [
    ("", {}, "is empty"),
    ("run,t,x,y,u\n", {}, "holds no rows"),
    (GOOD.replace(",", ";"), {}, "separator seems to be ';'"),
    (GOOD.replace("a,1,2,", "a,1,two,"), {}, r"line 3, column 'x': 'two' is not a number"),
    (GOOD.replace("a,1,2,", "a,1,inf,"), {}, r"line 3, column 'x': inf is infinite"),
    (GOOD.replace("a,1,", "a,0,"), {}, r"line 3: time 0 of 'a' is there twice"),
    (GOOD.replace("a,1,", "a,,"), {}, r"line 3: the time in column 't' is missing"),
    (GOOD.replace("a,1,", ",1,"), {}, r"line 3: column 'run' is empty"),
    (GOOD + "c,0,1,1,0\n", {}, r"line 7: trajectory 'c' has one row"),
    (GOOD, {"states": ["xx", "y"]}, "no column 'xx'.*Did you mean 'x'"),
    (GOOD, {"states": ["x", "u"]}, "'u' is named twice"),
    (GOOD, {"states": []}, "`states` is empty"),
    (GOOD, {"id": None}, "name the column that tells trajectories apart"),
    (GOOD.replace("b,0,4,1,0", "b,0,4,1,"), {}, "input 'u' has no value at the start"),
    (
        "run,t,x,y,u\na,0,1,7,0\na,1,2,7,0\n",
        {},
        r"state 'y' is constant \(7\)",
    ),
    ("run,t,x,y,u\na,0,1,,0\na,1,2,,0\n", {}, "state 'y' has no values at all"),
    ("run,t,x,y,u\na,Monday,1,1,0\na,Funday,2,3,0\n", {}, "neither a number nor a timestamp"),
    (
        "run,t,x,y,u\na,2026-01-01,1,1,0\na,2026-01-02,2,3,0\n",
        {},
        "are timestamps, but no unit is given",
    ),
    (
        "run,t,x,y,u\na,2026-01-01,1,1,0\na,2026-01-02,2,3,0\n",
        {"unit": "fortnight"},
        "the unit is 'fortnight'",
    ),
    ("run,t,x,y,u\na,0,1,1,0\na,2026-01-02,2,3,0\n", {}, "line 3, column 't'.*is not a number"),
    ('run,t,x,y,u\na,0,"1,1,0\n', {}, "is not a table"),
]


@pytest.mark.parametrize(("content", "changes", "message"), BAD)
def test_what_is_wrong_is_named_in_one_line(content, changes, message, tmp_path):
    with pytest.raises(InputError, match=message) as error:
        read(write(tmp_path, content), **changes)
    assert "\n" not in str(error.value)


def test_a_missing_file_and_a_binary_one(tmp_path):
    write(tmp_path, GOOD)
    with pytest.raises(InputError, match=r"no file .*run.csv.*Did you mean 'runs.csv'"):
        read(tmp_path / "run.csv")
    (tmp_path / "noise.csv").write_bytes(bytes(range(256)))
    with pytest.raises(InputError, match="is not text"):
        read(tmp_path / "noise.csv")


def test_a_parquet_file_that_is_none(tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "noise.parquet").write_bytes(bytes(range(256)))
    with pytest.raises(InputError, match="not a Parquet file"):
        read_table(tmp_path / "noise.parquet", Columns(("x",)))


@st.composite
def tables(draw):
    lengths = draw(st.lists(st.integers(2, 5), min_size=1, max_size=3))
    finite = st.floats(-1e6, 1e6, width=32)
    times = [np.cumsum(draw(hnp.arrays(float, n, elements=st.floats(0.125, 8)))) for n in lengths]
    values = [draw(hnp.arrays(float, (n, 2), elements=finite)) for n in lengths]
    seen = [draw(hnp.arrays(bool, (n, 2))) for n in lengths]
    inputs = [draw(hnp.arrays(float, (n, 1), elements=finite)) for n in lengths]
    return {"times": times, "values": values, "observed": seen, "inputs": inputs}


def build(table):
    return Trajectories.from_arrays(**table, states=("x", "y"), input_names=("u",))


def assert_same(ours, theirs):
    assert ours.ids == theirs.ids
    assert ours.states == theirs.states
    for name in ("times", "values", "observed", "inputs", "lengths"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))


@given(tables())
@settings(max_examples=50, deadline=None)
def test_a_frame_comes_back_unchanged(table):
    data = build(table)
    columns = Columns(("x", "y"), "t", "id", ("u",))
    assert_same(from_frame(to_frame(data), columns, strict=False), data)


@given(tables())
@settings(max_examples=20, deadline=None)
def test_a_csv_file_comes_back_unchanged(tmp_path_factory, table):
    data = build(table)
    path = tmp_path_factory.mktemp("csv") / "data.csv"
    to_frame(data).to_csv(path, index=False)
    columns = Columns(("x", "y"), "t", "id", ("u",))
    assert_same(read_table(path, columns, strict=False), data)


def test_a_labelled_dataset_comes_back_unchanged():
    rng = np.random.default_rng(0)
    data = Trajectories.from_arrays(
        [np.arange(4.0), np.arange(3.0)],
        [rng.normal(size=(4, 2)), rng.normal(size=(3, 2))],
        states=("x", "y"),
    )
    assert_same(from_xarray(to_xarray(data), time="time", id="series"), data)


@given(st.text(max_size=200) | st.text("rut,xy01.;\n- ", max_size=120))
@settings(max_examples=200, deadline=None)
def test_arbitrary_text_is_a_table_or_an_error(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("any") / "any.csv"
    path.write_text(content)
    try:
        read_csv(path, states=["x"])
    except InputError:
        return


LONG = """subject,hour,what,value,dose
a,0,conc,0,100
a,1,conc,5,100
a,1,effect,80,100
a,2,effect,90,100
b,0,conc,1,50
b,3,conc,7,50
b,3,effect,60,50
"""


def test_a_long_table_has_a_column_for_each_quantity(tmp_path):
    path = tmp_path / "long.csv"
    path.write_text(LONG)
    columns = Columns(
        ("conc", "effect"), "hour", "subject", ("dose",), quantity="what", value="value"
    )
    data = read_table(path, columns)
    np.testing.assert_array_equal(data.lengths, [3, 2])
    np.testing.assert_array_equal(data.values[0], [[0, 0], [5, 80], [0, 90]])
    np.testing.assert_array_equal(data.observed[0], [[1, 0], [1, 1], [0, 1]])
    np.testing.assert_array_equal(data.inputs[:, 0, 0], [100, 50])
    path.write_text(LONG + "b,3,effect,61,50\n")
    with pytest.raises(hs.InputError, match="'effect' has two values at time 3"):
        read_table(path, columns)
    path.write_text(LONG)
    wrong = Columns(("pain",), "hour", "subject", quantity="what", value="value")
    with pytest.raises(hs.InputError, match="never names 'pain'; it names conc, effect"):
        read_table(path, wrong)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_may_end_as_on_any_system(tmp_path, end):
    path = tmp_path / "runs.csv"
    path.write_bytes(end.join(["# by hand", "t,x", "0,1", "1,2", "2,z", ""]).encode())
    with pytest.raises(hs.InputError, match="line 5, column 'x'"):
        hs.read_csv(path, states=["x"])
