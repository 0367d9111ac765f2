"""Equations while they are typed."""

import pytest

from hybridsde.studio.equations import read_equations


def one(line, states=("x", "y")):
    found = read_equations([line], states, ["u"])
    return found["lines"][0], found["parameters"]


def test_names_that_nobody_knows_are_parameters():
    line, parameters = one("dx = growth*x - eaten*x*y + u*sin(t) + pi")
    assert parameters == ["growth", "eaten"]
    assert line["state"] == "x"
    assert line["mathml"].startswith("<math")


@pytest.mark.parametrize(
    ("line", "column", "words"),
    [
        ("dx = k*(x", 8, "never closed"),
        ("dx = 2 x", 8, "product"),
        ("dz = x", 1, "not a state"),
        ("dx = sin*x", 6, "brackets"),
        ("dx = import(x)", 6, "no function"),
        ("x = 1", 1, "dSTATE"),
        ("dx =", 5, "ends too early"),
    ],
)
def test_errors_have_their_place(line, column, words):
    found, _ = one(line)
    assert found["error"]["column"] == column
    assert words in found["error"]["message"]


def test_a_state_has_one_equation():
    found = read_equations(["dx = 1", "", "# note", "dx = 2"], ["x"], [])["lines"]
    assert [("error" in line) for line in found] == [False, False, False, True]


def test_names_are_words_not_markup():
    line, _ = one("dx = a_b*x", ("x",))
    assert "<msub>" in line["mathml"]
    assert "error" in one("dx = <script>", ("x",))[0]
