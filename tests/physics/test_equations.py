"""Text equations: what is read, what is refused, and where the error points."""

import jax
import jax.numpy as jnp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybridsde import Bounded, HybridSDE, InputError, equations, known_drift
from hybridsde.hybrid.build import known_drift_of
from hybridsde.physics.expression import FUNCTIONS, Call, Name, Number, mathml, text
from hybridsde.physics.grammar import parse


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("x*y - rho*z", 2 * 3 - 0.5 * 4),
        ("-x^2", -4),
        ("(-x)^2", 4),
        ("2^3^2", 512),
        ("2^-x", 0.25),
        ("x - y - z", -5),
        ("x - (y - z)", 3),
        ("x/y/z", 2 / 3 / 4),
        ("x/(y/z)", 2 / (3 / 4)),
        ("-x*y", -6),
        ("x**2 + 1.5e1", 19),
        ("min(x, y, z) + max(x, y)", 5),
        ("sin(pi/2) + cos(0*x) + abs(-y) + sign(-z)", 1 + 1 + 3 - 1),
        ("sqrt(z) + exp(0*x) + log(1) + tanh(0) + tan(0*t)", 3),
        ("+x", 2),
    ],
)
def test_values_follow_the_usual_rules(formula, expected):
    physics = equations(f"dz = {formula}", **({"rho": 0.5} if "rho" in formula else {}))
    states = {"x": jnp.array(2.0), "y": jnp.array(3.0), "z": jnp.array(4.0)}
    rate = jax.jit(lambda: physics(jnp.array(0.3), states, {})["z"])()
    assert rate == pytest.approx(expected, rel=1e-6)


def test_equal_to_the_same_physics_in_python():
    def lorenz(x, y, z, rho):
        return {"z": x * y - rho * z}

    states = {"x": jnp.array(1.5), "y": jnp.array(-2.0), "z": jnp.array(0.7)}
    ours = equations("dz/dt = x*y - rho*z", rho=2.67)(jnp.array(0.0), states, {})
    theirs = known_drift(lorenz, rho=2.67)(jnp.array(0.0), states, {})
    assert ours.keys() == theirs.keys()
    assert ours["z"] == theirs["z"]


def test_a_whole_power_has_a_gradient_at_negative_numbers():
    physics = equations("dx = x^3")
    gradient = jax.grad(lambda x: physics(jnp.array(0.0), {"x": x}, {})["x"])(jnp.array(-2.0))
    assert gradient == pytest.approx(12)


def test_only_the_given_states_are_known_and_the_gate_follows():
    model = HybridSDE(states=("x", "z"), physics=equations("dz = -z + u"), inputs=("u",))
    assert model.physics.known(("x", "z"), ("u",)) == ("z",)
    assert known_drift_of(model).gate.value.tolist() == [0.0, 1.0]


def test_a_learned_parameter_stays_one():
    physics = equations("dx = -k*x", k=Bounded.of(0.5, 0.1, 2.0))
    assert isinstance(physics.parameters["k"], Bounded)


HOSTILE = [
    ("z = 3", "dSTATE", 1),
    ("", "dSTATE", 1),
    ("dz = ", "ends too early", 5),
    ("dz = x +", "ends too early", 9),
    ("dz = x +* y", "'*' is not expected", 9),
    ("dz = foo(x)", "no function 'foo'", 6),
    ("dz = sni(x)", "Did you mean 'sin'", 6),
    ("dz = x y", "Write a product with *", 8),
    ("dz = x[0]", "'[' has no meaning", 7),
    ("dz = x.real", "'.' has no meaning", 7),
    ("dz = __import__('os').system('id')", "no meaning", 17),
    ("dz = 9^9^9", "not a number", 6),
    ("dz = 1/(1 - 1)", "not a number", 6),
    ("dz = log(-1)", "not a number", 6),
    ("dz = (-1)^0.5", "not a number", 6),
    ("dz = 1e999", "not a number", 6),
    ("dz = min(x)", "at least two arguments", 6),
    ("dz = sin(x, x)", "one argument", 6),
    ("dz = (x", "never closed", 6),
    ("dz = x)", "never opened", 7),
    ("dz = " + 61 * "(" + "x" + 61 * ")", "brackets inside each other", 66),
    ("dz = " + 1500 * "-" + "x", "operations inside each other", 1),
    ("dz = 2^" + "^".join(300 * "x"), "operations inside each other", 1),
    ("dz = x = y", "'=' is not expected", 8),
]


@pytest.mark.parametrize(("source", "cause", "column"), HOSTILE)
def test_what_is_not_an_equation_is_refused_with_a_caret(source, cause, column):
    with pytest.raises(InputError) as error:
        parse(source)
    first, shown, caret = str(error.value).split("\n")
    assert cause in first
    assert f"column {column}:" in first
    if column < 60:
        assert caret.index("^") - 4 == column - 1
        assert shown[4:].startswith(source[:40])


def test_ten_thousand_brackets_are_refused():
    with pytest.raises(InputError, match="characters, more than"):
        parse("dz = " + 10_000 * "(" + "x" + 10_000 * ")")


@pytest.mark.parametrize(
    ("texts", "parameters", "message"),
    [
        (("dz = x - rhoo*z",), {"rho": 1.0}, "column 10: 'rhoo' is not a state.*mean 'rho'"),
        (("dq = x",), {}, "'q' is not a state"),
        (("dz = sin",), {}, "needs its argument in brackets"),
        (("dz = x", "dz = -z"), {}, "two equations"),
        (("dz = x",), {"b": 1.0}, "'b' appears in no equation"),
        (("dz = x",), {"x": 1.0}, "'x' is also a state"),
        ((), {}, "No equation"),
    ],
)
def test_names_that_do_not_fit(texts, parameters, message):
    with pytest.raises(InputError, match=message):
        HybridSDE(states=("x", "z"), physics=equations(*texts, **parameters))


names = st.sampled_from(["x", "y", "rho", "alpha_1"]).map(Name)
numbers = st.floats(0, 1e6, allow_nan=False).map(Number)
formulas = st.recursive(
    names | numbers,
    lambda inner: (
        st.tuples(st.sampled_from("+-*/^"), st.tuples(inner, inner))
        | st.tuples(st.just("neg"), st.tuples(inner))
        | st.tuples(st.sampled_from(["sin", "abs", "sqrt"]), st.tuples(inner))
        | st.tuples(st.sampled_from(["min", "max"]), st.tuples(inner, inner))
    ).map(lambda parts: Call(*parts)),
    max_leaves=12,
)


@given(formulas)
@settings(max_examples=300, deadline=None)
def test_text_and_tree_are_the_same_thing(formula):
    try:
        read = parse(f"dx = {text(formula)}")
    except InputError as error:
        if "not a number" in str(error):
            return
        raise
    assert read.rate == formula


@given(formulas)
@settings(max_examples=100, deadline=None)
def test_typeset_formulas_are_balanced(formula):
    written = mathml(formula)
    assert written.count("<mrow>") == written.count("</mrow>")
    assert written.count("<mo>(</mo>") == written.count("<mo>)</mo>")


@given(st.text(max_size=80) | st.text("dxyz=+-*/^(), .0123456789sincoel_'\"\n", max_size=80))
@settings(max_examples=500, deadline=None)
def test_arbitrary_text_is_read_or_refused(source):
    try:
        parse(source)
    except InputError:
        return


def test_functions_of_the_grammar_are_those_of_the_docs():
    assert equations.__doc__ is not None
    for name in FUNCTIONS:
        assert name in equations.__doc__
