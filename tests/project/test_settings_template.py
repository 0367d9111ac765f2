"""Settings guessed from a first look at a table."""

import tomllib

import numpy as np
import pandas as pd
import pytest

from hybridsde import InputError
from hybridsde.project.guessing import guess_table
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
        ("run,note\na,b\na,c\nd,e\n", "no column looks like a time"),
        ("id,date\n1,2026-01-01\n2,2026-01-02\n3,2026-01-03\n", "no column holds numbers"),
        ("id\n1\n2\n3\n", "no column holds numbers"),
        (
            "year,month,day,x\n2000,1,1,3\n2000,1,2,7\n2000,2,1,9\n",
            "time seems to stand in several",
        ),
        ("date,time,x\n2026-01-01,10:00,3\n2026-01-01,11:00,7\n", "in several columns"),
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


def wavy(k):
    return f"{(k * 7) % 11 + k % 3 / 10:.1f}"


@pytest.mark.parametrize(
    ("header", "time"),
    [("time,L,T,J", "time"), ("t,T,L", "t"), ("T,L,t", "t"), ("L,T,Time", "Time")],
)
def test_a_temperature_is_no_time(header, time, tmp_path):
    """Not even one that rises."""
    names = header.split(",")
    for temperature in (wavy, lambda k: f"{20 + k**1.1:.2f}"):
        cell = {"T": temperature, time: str}
        rows = [",".join(cell.get(name, wavy)(k) for name in names) for k in range(30)]
        found = guess(tmp_path, "\n".join([header, *rows]))
        assert found["time"] == time
        assert "T" in found["states"]


def test_a_capital_t_alone_may_be_the_time(tmp_path):
    rows = "\n".join(f"{k * 0.5},{wavy(k)}" for k in range(30))
    assert guess(tmp_path, f"T,L\n{rows}")["time"] == "T"
    shaken = "\n".join(f"{wavy(k)},{wavy(k + 5)}" for k in range(30))
    with pytest.raises(InputError, match="no column looks like a time"):
        guess(tmp_path, f"T,L\n{shaken}")


def test_a_column_that_is_on_and_off_is_an_input(tmp_path):
    rows = [f"{k},{wavy(k)},{k // 4 % 2},{'AUF' if k % 8 < 4 else 'ZU'},7" for k in range(40)]
    text = "\n".join(["t,x,pump,valve,same", *rows])
    assert guess(tmp_path, text)["inputs"] == ["pump"]
    written = settings_template(tmp_path / "mine.csv", tmp_path)
    assert '# Not used: "valve" (words such as "AUF", "ZU"; write 0 and 1 to use it' in written
    assert '# Not used: "same" (always 7).' in written


DOSES = {
    "zero elsewhere": lambda k: "25" if k in (0, 20) else "0",
    "empty elsewhere": lambda k: "25" if k in (0, 20) else "",
    "once": lambda k: "25" if k == 0 else "",
}


@pytest.mark.parametrize("cell", DOSES.values(), ids=DOSES)
def test_doses_are_asked_about(cell, tmp_path):
    rows = [f"{s},{k},{wavy(k + s)},{cell(k)},{60 + s}" for s in (1, 2) for k in range(40)]
    found = guess(tmp_path, "\n".join(["subject,t,conc,given,wt", *rows]))
    assert found["states"] == ["conc"]
    assert found["inputs"] == ["wt"]
    written = settings_template(tmp_path / "mine.csv", tmp_path)
    assert "# Column 'given' is positive in some rows and zero or empty in others" in written
    assert (
        '#   an amount that a state has in the first row: name it in [start]: x = "given"'
        in written
    )


def test_what_is_measured_rarely_is_no_dose(tmp_path):
    rows = [f"{k},{wavy(k)},{1 + k**0.5 if k % 9 == 0 else ''}" for k in range(90)]
    assert guess(tmp_path, "\n".join(["t,x,lab", *rows]))["states"] == ["x", "lab"]


def test_tag_names_get_names_for_equations(tmp_path):
    header = 'Zeit;TI-101.PV;"CONC (mg/l)";2nd;exp;t'
    rows = [";".join([str(k / 2), *(wavy(k + n) for n in range(5))]) for k in range(30)]
    found = guess(tmp_path, "\n".join([header, *rows]))
    assert found["time"] == "Zeit"
    assert found["states"] == ["TI_101_PV", "CONC", "x_2nd", "exp_", "t_"]
    assert found["columns"] == {
        "TI_101_PV": "TI-101.PV",
        "CONC": "CONC (mg/l)",
        "x_2nd": "2nd",
        "exp_": "exp",
        "t_": "t",
    }


def test_decimal_commas_and_words_are_guessed(tmp_path):
    rows = [f"{k:02d}.03.2026 00:00;{wavy(k)};1.{k:03d},5" for k in range(1, 30)]
    rows[4] = rows[4].replace(";", ";Bad Input", 1).replace("Input5.4", "Input")
    rows[4] = rows[4].split(";")[0] + ";Bad Input;-"
    text = "\n".join(["Datum;x;y", *rows]).replace(".1;", ",1;").replace(".2;", ",2;")
    found = guess(tmp_path, text.replace(".0;", ",0;"))
    assert (found["separator"], found["decimal"]) == (";", ",")
    assert found["missing"] == ["Bad Input", "-"]
    assert (found["time"], found["unit"], found["states"]) == ("Datum", "day", ["x", "y"])


def test_angles_are_guessed_by_name_and_range(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "t": 0.1 * np.arange(60),
            "theta": np.sin(0.3 * np.arange(60)),
            "heading_deg": 90 * np.sin(0.2 * np.arange(60)),
            "T": 20 + rng.normal(size=60),
        }
    )
    frame.to_csv(tmp_path / "swing.csv", index=False)
    text = settings_template(tmp_path / "swing.csv", tmp_path)
    assert 'angles = ["theta"]' in text
    notes = " ".join(guess_table(tmp_path / "swing.csv").notes)
    assert "theta is an angle in radians" in notes
    assert "heading_deg may be an angle in degrees" in notes
