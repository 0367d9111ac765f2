"""Tables as instruments and spreadsheets leave them: a good guess, or one line that says why."""

import numpy as np
import pytest

from hybridsde import InputError, InputNotice
from hybridsde.project.look import look

ROWS = 40
X = np.round(np.cumsum(np.random.default_rng(0).normal(size=ROWS)), 2)
Y = np.round(5 + np.random.default_rng(1).normal(size=ROWS), 2)


def table(header, row, separator=",", above="") -> str:
    rows = [separator.join(map(str, row(k))) for k in range(ROWS)]
    return "\n".join([above + header, *rows]) + "\n"


def half(k):
    return k / 2


def comma(value) -> str:
    return str(value).replace(".", ",")


def german(value) -> str:
    return f"{value:,.1f}".replace(",", "_").replace(".", ",").replace("_", ".")


READ = {
    "byte-order mark": table("t,x", lambda k: (half(k), X[k]), above="\ufeff"),
    "tabs": table("t\tx", lambda k: (half(k), X[k]), "\t"),
    "spaces": table("t  x", lambda k: (half(k), X[k]), "  "),
    "quoted": table('"t"; "x"', lambda k: (f'"{comma(half(k))}"', comma(X[k])), ";"),
    "commas in a name": table('t;"x, left"', lambda k: (comma(half(k)), comma(X[k])), ";"),
    "spaces in names": table(" t , x ", lambda k: (half(k), X[k])),
    "a unit": table("t [s],x (°C)", lambda k: (half(k), X[k])),
    "a row of units": table("t,x\ns,°C", lambda k: (half(k), X[k])),
    "errors of Excel": table("t,x", lambda k: (half(k), "#DIV/0!" if k == 3 else X[k])),
    "not a number": table("t,x", lambda k: (half(k), "#N/A" if k == 3 else X[k])),
    "endless": table("t,x", lambda k: (half(k), "inf" if k == 3 else X[k])),
    "thousands": table("t;x", lambda k: (german(half(k)), german(1000 * X[k])), ";"),
    "English thousands": table("t,x", lambda k: (half(k), f'"{1000 * X[k]:,.1f}"')),
    "empty columns": table("t,,x,", lambda k: (half(k), "", X[k], "")),
    "unsorted": table("t,x", lambda k: (half((7 * k) % ROWS), X[k])),
    "separator of Excel": table("t;x", lambda k: (comma(half(k)), comma(X[k])), ";", "sep=;\n"),
    "row numbers": table(",t,x", lambda k: (k, half(k), X[k])),
    "long minus": table("t,x", lambda k: (half(k), str(X[k]).replace("-", "−"))),
}


@pytest.mark.filterwarnings("ignore::hybridsde.InputNotice")
@pytest.mark.parametrize("text", READ.values(), ids=READ)
def test_it_is_read(text, tmp_path, request):
    (tmp_path / "a.csv").write_text(text)
    data = look(tmp_path / "a.csv").data
    np.testing.assert_allclose(np.diff(data.times[0]), 0.5)
    assert len(data.states) == 1
    values = data.values[0, data.observed[0, :, 0], 0]
    assert len(values) >= ROWS - 1
    size = 1000 if "thousands" in request.node.callspec.id else 1
    assert np.abs(values).max() == pytest.approx(size * np.abs(X).max())


REFUSED = {
    "two columns called 'x'": table("t,x,x", lambda k: (half(k), X[k], Y[k])),
    "Remove a cell or name its column": table("t,x", lambda k: (half(k), X[k], "")),
    "the first row has '00.03.2026'. Write all times alike": table(
        "t,x", lambda k: (f"{k:02d}.03.2026" if k < 20 else "2026-03-01", X[k])
    ),
    "year of two digits": table("t,x", lambda k: (f"{k % 28 + 1:02d}.03.26", X[k])),
    "time of day without a date": table("t,x", lambda k: (f"{k // 6:02d}:{k % 6}0", X[k])),
    "several columns, 'date' and 'hour'": table(
        "date,hour,x", lambda k: (f"2026-03-{k // 24 + 1:02d}", k % 24, X[k])
    ),
    "no column looks like a time": table("a,b", lambda k: (X[k], Y[k])),
    "'x' is words such as \"0.13 °C\"": table("t,x", lambda k: (half(k), f"{X[k]} °C")),
    "column 'x' have a comma, as in": table("t;x", lambda k: (half(k), comma(X[k])), ";"),
    "line 1, 'Logger 7', does not name": table(
        "t;x", lambda k: (half(k), X[k]), ";", "Logger 7\n\n"
    ),
    "line 42, column 't': 'mean' is not": table("t,x", lambda k: (half(k), X[k])) + "mean,3\n",
    "is empty": "# nothing here\n",
}


@pytest.mark.parametrize(("message", "text"), REFUSED.items())
def test_it_is_refused_in_one_line(message, text, tmp_path):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(InputError) as error:
        look(tmp_path / "a.csv")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_names_that_differ_in_their_case_alone_are_two_columns(tmp_path):
    (tmp_path / "a.csv").write_text(table("T,t,x,X", lambda k: (Y[k], half(k), X[k], Y[-k])))
    found = look(tmp_path / "a.csv")
    assert found.settings.data.time == "t"
    assert found.data.states == ("T", "x", "X")


def test_a_row_of_units_is_said(tmp_path):
    (tmp_path / "a.csv").write_text(READ["a row of units"])
    with pytest.warns(InputNotice, match="line 2: read as a row of units"):
        look(tmp_path / "a.csv")
