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


TAGS = "zeit;TI-101.PV;CONC (mg/l);y\n0;1,5;1.234,5;7\n0,5;Bad Input;999;-\n1;2,5;-3;8\n"


@pytest.mark.filterwarnings("ignore:.*missing inputs")
def test_a_table_of_a_plant_is_read_by_its_settings(tmp_path):
    """Other names, decimal commas, points between thousands, words for what is missing."""
    data = read_csv(
        write(tmp_path, TAGS),
        states=["T", "c"],
        inputs=["y"],
        columns={"T": "TI-101.PV", "c": "CONC (mg/l)", "t": "zeit"},
        separator=";",
        decimal=",",
        missing=["Bad Input", "-"],
    )
    np.testing.assert_array_equal(data.times[0], [0, 0.5, 1])
    np.testing.assert_array_equal(data.values[0], [[1.5, 1234.5], [0, 999], [2.5, -3]])
    np.testing.assert_array_equal(data.observed[0], [[1, 1], [0, 1], [1, 1]])
    np.testing.assert_array_equal(data.inputs[0, :, 0], [7, 7, 8])
    assert data.states == ("T", "c")


def test_names_may_change_places():
    frame = pd.DataFrame({"t": [0.0, 1.0, 2.0], "a": [1.0, 2.0, 4.0], "b": [5.0, 6.0, 8.0]})
    data = from_frame(frame, Columns(("a", "b"), columns={"a": "b", "b": "a"}))
    np.testing.assert_array_equal(data.values[0, 0], [5, 1])
    data = from_frame(frame.assign(c=frame["a"] + 1), Columns(("a",), columns={"a": "c"}))
    np.testing.assert_array_equal(data.values[0, :, 0], [2, 3, 5])


def test_a_number_may_stand_for_missing():
    frame = pd.DataFrame({"t": [0.0, 1.0, 2.0], "x": [1.0, -999.0, 4.0]})
    data = from_frame(frame, Columns(("x",), missing=["-999"]))
    assert data.observed[0, :, 0].tolist() == [True, False, True]


def test_quantities_of_a_long_table_may_have_other_names(tmp_path):
    path = write(tmp_path, "t,tag,value\n0,TI-1.PV,3\n1,TI-1.PV,5\n1,LI-2,7\n2,LI-2,9\n")
    tags = {"T": "TI-1.PV", "L": "LI-2"}
    columns = Columns(("T", "L"), quantity="tag", value="value", columns=tags)
    np.testing.assert_array_equal(read_table(path, columns).values[0], [[3, 0], [5, 7], [0, 9]])


NAMED = {"states": ["T", "y"], "time": "zeit", "inputs": [], "id": None, "separator": ";"}
EUROPEAN = {**NAMED, "decimal": ","}


@pytest.mark.parametrize(
    ("content", "changes", "message"),
    [
        (TAGS, {**EUROPEAN, "columns": {"T": "ti_101_pv"}}, r"no column 'ti_101_pv' \(for 'T' in "),
        (TAGS, {**EUROPEAN, "columns": {"T": "ti_101_pv"}}, "Did you mean 'TI-101.PV'"),
        (TAGS, {**EUROPEAN, "columns": {"T": "y", "y": "y"}}, "'y' two names"),
        (TAGS, {**NAMED, "columns": {"T": "TI-101.PV"}}, r"'0,5' is not .*say decimal = \",\""),
        (
            TAGS,
            {**EUROPEAN, "columns": {"T": "TI-101.PV"}},
            r"line 3, column 'TI-101.PV': 'Bad Input' is not .*missing = \[\"Bad Input\"\]",
        ),
        ("zeit;T;y\n0;1.234;1\n1;2.345;2\n", EUROPEAN, "'1.234' is not .*may be 1234 or 1.234"),
        ("zeit;T;y\n0;1,234;1\n1;2,345;2\n", NAMED, "'1,234' is not .*may be 1234 or 1.234"),
        ("zeit;T;y\n0;1,5;1\n1;2.5;2\n", EUROPEAN, r"'2.5' is not .*say decimal = \".\""),
        ("zeit,T,y\n0,1,5,1\n", {**NAMED, "separator": ","}, "written as 0,5.*semicolons"),
        ("zeit;T;y\n10:00;1;1\n10:05;2;2\n", NAMED, "time of day without a date"),
        ("zeit;T;y\n01.03.26;1;1\n02.03.26;2;2\n", NAMED, "year of two digits"),
        (
            "zeit;T;y\n2026-10-25 02:30;1;1\n2026-10-25 02:30;2;2\n",
            {**NAMED, "unit": "h"},
            r"line 3: time 2026-10-25 02:30 is there twice. Clocks that are set back",
        ),
    ],
)
def test_what_is_wrong_in_a_table_of_a_plant(content, changes, message, tmp_path):
    with pytest.raises(InputError, match=message) as error:
        read(write(tmp_path, content), **changes)
    assert "\n" not in str(error.value)


def test_thousands_are_read_where_the_column_shows_what_groups_them(tmp_path):
    path = write(tmp_path, "t;x\n0;1,234\n1;12.5\n2;1 234.5\n3;1,234,567\n")
    data = read_csv(path, states=["x"], separator=";")
    assert data.values[0, :, 0].tolist() == [1234, 12.5, 1234.5, 1234567]


def test_a_row_of_units_is_left_out_and_said(tmp_path):
    path = write(tmp_path, "t,x,note\ns,°C,\n0,1.5,\n1,2,a\n2,2.5,b\n")
    with pytest.warns(InputNotice, match=r"line 2: read as a row of units \(s, °C\)"):
        data = read_csv(path, states=["x"])
    assert data.values[0, :, 0].tolist() == [1.5, 2, 2.5]
    write(tmp_path, "t,x\n0,bad\n1,2\n2,2.5\n")
    with pytest.raises(InputError, match="line 2, column 'x': 'bad'"):
        read_csv(path, states=["x"])


def test_timestamps_keep_their_zone(tmp_path):
    rows = [f"2026-10-25T0{h}:00{zone},{k}" for k, (h, zone) in enumerate(
        [(1, "+02:00"), (2, "+02:00"), (2, "+01:00"), (3, "+01:00")])]  # fmt: skip
    data = read_csv(write(tmp_path, "\n".join(["t,x", *rows])), states=["x"], unit="h")
    assert data.times[0].tolist() == [0, 1, 2, 3]
    assert data.epoch == "2026-10-25T01:00:00+02:00"


def test_dates_with_points_have_the_day_first(tmp_path):
    path = write(tmp_path, "t,x\n01.02.2026,1\n02.02.2026,2\n")
    assert read_csv(path, states=["x"], unit="day").times[0].tolist() == [0, 1]


def test_a_single_recording_is_called_as_its_file(tmp_path):
    assert read_csv(write(tmp_path, "t,x\n0,1\n1,2\n", "tank.csv"), states=["x"]).ids == ("tank",)
