"""Settings guessed from a first look at a table."""

import tomllib

import pandas as pd
import pytest

from hybridsde import InputError
from hybridsde.project.settings_template import settings_template


def guess(tmp_path, text):
    table = tmp_path / "mine.csv"
    table.write_text(text)
    return tomllib.loads(settings_template(table, tmp_path))["data"]


def test_columns_are_guessed(tmp_path):
    rows = "\n".join(f"a,{k},{k**2},{k % 3},same" for k in range(5))
    found = guess(tmp_path, f"run,time,x,speed,note\n{rows}\n")
    assert found == {"files": "mine.csv", "id": "run", "time": "time", "states": ["x", "speed"]}


def test_another_separator_and_a_time_without_a_name(tmp_path):
    rows = "\n".join(f"{k};{(k * 7) % 5}" for k in range(8))
    found = guess(tmp_path, f"clock;level\n{rows}\n")
    assert found["separator"] == ";"
    assert found["time"] == "clock"
    assert found["states"] == ["level"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name,x\na,3\nb,1\nc,2\n", "no column looks like a time"),
        ("t,x\n0,1\n1,1\n", "no column holds"),
        ("t,x\n0,1\n1,oops\n2,2\n", "row 2 below the header, column 'x': 'oops' is not a number"),
        ("a,x\n3,2\n1,oops\n2,9\n", "row 2 below the header, column 'x'"),
    ],
)
def test_what_cannot_be_guessed_is_said(text, message, tmp_path):
    with pytest.raises(InputError, match=message):
        guess(tmp_path, text)


def test_inputs_ids_and_row_numbers_are_recognised(tmp_path):
    rows = ["row,batch_name,hours,valve,level"]
    rows += [
        f"{n},{'first' if n < 30 else 'second'},{(n % 30) * 0.5},{n // 15},{1 + 0.1 * n**1.5:.3f}"
        for n in range(60)
    ]
    found = guess(tmp_path, "\n".join(rows))
    assert found["time"] == "hours"
    assert found["id"] == "batch_name"
    assert found["inputs"] == ["valve"]
    assert found["states"] == ["level"]


def test_a_long_table_is_recognised(tmp_path):
    rows = ["subject,t,what,value"]
    rows += [f"{s},{t},{q},{t * 1.5 + s}" for s in (1, 2) for t in range(8) for q in ("a", "b")]
    found = guess(tmp_path, "\n".join(rows))
    assert (found["quantity"], found["value"]) == ("what", "value")
    assert found["states"] == ["a", "b"]
    assert found["id"] == "subject"


def test_a_long_table_may_hold_what_stays_the_same_in_a_recording(tmp_path):
    """As drug studies do: dose and weight of a subject beside what was measured."""
    rows = ["id,time,amt,dv,dvid,wt"]
    rows += [
        f"{s},{t},{100 * s if t == 0 else ''},{t * 1.5 + s},{q},{60 + s}"
        for s in (1, 2)
        for t in range(8)
        for q in ("conc", "effect")
    ]
    found = guess(tmp_path, "\n".join(rows))
    assert (found["quantity"], found["value"]) == ("dvid", "dv")
    assert found["states"] == ["conc", "effect"]
    rows = [one.replace("dv,", "level,", 1) for one in rows[:1]] + rows[1:]
    rows = [",".join(cell for k, cell in enumerate(one.split(",")) if k != 2) for one in rows]
    found = guess(tmp_path, "\n".join(rows))
    assert (found["quantity"], found["value"]) == ("dvid", "level")


@pytest.mark.parametrize("header", ["time,mouse,x,y", "time,mouse,x,value"])
def test_a_word_that_tells_recordings_apart_is_no_quantity(header, tmp_path):
    rows = [f"{t},{m},{t * k},{t + k}" for t in range(8) for k, m in enumerate(("m1", "m2"), 1)]
    found = guess(tmp_path, "\n".join([header, *rows]))
    assert "quantity" not in found
    assert found["states"] == header.split(",")[2:]


def test_one_word_among_the_times_does_not_hide_them(tmp_path):
    """Reading names the cell; another column must not be taken for the time instead."""
    rows = [f"{'oops' if k == 7 else k * 0.5},{k**2},{(k * 7) % 5}" for k in range(20)]
    assert guess(tmp_path, "\n".join(["clock,x,y", *rows]))["time"] == "clock"


@pytest.mark.parametrize(
    ("step", "unit"), [("100ms", "s"), ("1min", "min"), ("15min", "h"), ("1D", "day")]
)
def test_the_unit_of_timestamps_suits_their_gaps(step, unit, tmp_path):
    moments = pd.date_range("2026-03-01", periods=20, freq=step)
    rows = "\n".join(f"{moment},{(k * 7) % 5}" for k, moment in enumerate(moments))
    assert guess(tmp_path, f"t,x\n{rows}\n")["unit"] == unit
