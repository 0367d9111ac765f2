"""Flows: what leaves one state arrives in another, known or learned once."""

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import hybridsde as hs
from hybridsde.hybrid.parameters import same_work


def epidemic(count=6, rows=40, seed=0):
    """dS = −1.5 S I, dI = 1.5 S I − 0.5 I, dR = 0.5 I, in small steps, with a little noise."""
    rng = np.random.default_rng(seed)
    times, values = np.linspace(0, 12, rows), []
    for _ in range(count):
        state = np.array([0.95, 0.05, 0.0]) + rng.uniform(0, 0.1) * np.array([-1, 1, 0])
        path, fine = [state], 100
        for gap in np.diff(times):
            for _ in range(fine):
                new, gone = 1.5 * state[0] * state[1], 0.5 * state[1]
                state = state + np.array([-new, new - gone, gone]) * gap / fine
            path.append(state)
        values.append(np.array(path) + 0.01 * rng.normal(size=(rows, 3)))
    return hs.Trajectories.from_arrays([times] * count, values, states=("S", "I", "R"))


KNOWN = hs.equations(flows=["recovery: I -> R = g*I"], g=0.5)


def test_a_known_flow_stands_in_both_equations():
    flows = ["recovery: I -> R = g*I", "births: -> S = m"]
    given = hs.equations("dI = -m*I", flows=flows, g=0.5, m=2)
    state = {"S": jnp.array(1.0), "I": jnp.array(3.0), "R": jnp.array(0.0)}
    rates = given(jnp.zeros(()), state, {})
    assert {name: float(rate) for name, rate in rates.items()} == {"I": -7.5, "R": 1.5, "S": 2.0}


def test_what_leaves_one_state_arrives_in_the_other():
    data = epidemic(2)
    model = hs.HybridSDE(
        states=("S", "I", "R"), flows=("infection: S -> I",), learned="network", last_layer=1.0
    )
    sde = model.init(model.batch(data), key=jr.key(0)).draw(key=jr.key(1))
    drift = sde.learned(jnp.zeros(()), jnp.array([0.8, 0.1, 0.1]), jnp.zeros(0), None)
    assert float(drift[0]) != 0
    assert float(drift[0]) == -float(drift[1])
    assert float(drift[2]) != 0  # nothing says that it keeps still


def test_the_order_of_flows_does_not_matter():
    for flows in (("a: S -> I", "b: -> I"), ("b: -> I", "a: S -> I")):
        model = hs.HybridSDE(states=("S", "I"), flows=flows)
        assert {flow.place for flow in model.learned_flows} == {0, 1}


def test_a_parameter_that_a_learned_flow_can_replace_is_said():
    physics = hs.equations(flows=["k1: S -> I = k*S"], k=hs.Free(0.3))
    model = hs.HybridSDE(states=("S", "I"), physics=physics, flows=("a: S -> I",))
    assert same_work(model, ("k",)) == ("k",)


def test_a_chain_passes_on():
    model = hs.HybridSDE(states=("S", "I", "R"), flows=("a: S -> I", "b: I -> R"))
    assert model.learned_flows == ((1, 0, 1), (2, 1, 2))


@pytest.mark.slow
def test_an_infection_is_read_off_once_for_both_equations():
    model = hs.HybridSDE(
        states=("S", "I", "R"), physics=KNOWN, flows=("infection: S -> I",), exact=("R",),
        learned="library", degree=2,
    )  # fmt: skip
    run = hs.fit(model, epidemic())
    discovered = run.equations(epidemic())
    terms = [one for one in discovered.terms if one.written]
    found = {one.state: one.value for one in terms}
    assert len(terms) == 2
    assert found["S"] == -found["I"]
    assert found["I"] == pytest.approx(1.5, rel=0.05)
    assert discovered.lines()[0].endswith("*S*I")
    again = hs.equations(*discovered.equations(), flows=(), **discovered.parameters)
    assert len(again.equations) == 3


@pytest.mark.parametrize(
    ("flows", "more", "message"),
    [
        (("S -> I",), {}, "cannot be read"),
        (("a: S -> E",), {}, "names 'E'"),
        (("a: S -> I", "a: I -> R"), {}, "Two flows are called 'a'"),
        (("a: S -> I", "b: I -> S", "c: S -> I"), {}, "one too many"),
        (("a: S -> I = 2*S",), {}, "belongs to the equations"),
        (("a: S -> I",), {"positive": ("S",)}, "which is `positive`"),
    ],
)
def test_what_is_wrong_is_said(flows, more, message):
    with pytest.raises(ValueError, match=message):
        hs.HybridSDE(states=("S", "I", "R"), flows=flows, **more)
