import jax.numpy as jnp
import pytest

from hybridsde import HybridSDE, known_drift
from hybridsde._parameters import Bounded

STATES = ("x", "y", "z")


def height(x, y, z, rho):
    return {"z": x * y - rho * z}


def test_rates_by_name():
    physics = known_drift(height, rho=2.0)
    assert physics.known(STATES, ()) == ("z",)
    h = dict(zip(STATES, jnp.array([2.0, 3.0, 4.0]), strict=True))
    assert physics(jnp.zeros(()), h, {})["z"] == -2.0


def test_time_and_inputs_by_name():
    physics = known_drift(lambda x, t, heat: {"x": heat - x + t})
    assert physics.known(("x",), ("heat",)) == ("x",)
    rates = physics(jnp.array(1.0), {"x": jnp.array(2.0)}, {"heat": jnp.array(5.0)})
    assert rates["x"] == 4.0


def test_a_parameter_may_be_learned():
    physics = known_drift(height, rho=Bounded.of(jnp.array(2.0), 1.0, 4.0))
    h = dict.fromkeys(STATES, jnp.array(1.0))
    assert jnp.isclose(physics(jnp.zeros(()), h, {})["z"], -1.0)


def test_defaults_need_not_be_given():
    physics = known_drift(lambda x, k=2.0: {"x": -k * x})
    assert physics.known(("x",), ()) == ("x",)
    assert physics(jnp.zeros(()), {"x": jnp.array(3.0)}, {})["x"] == -6.0


def forgets(x):
    return {"x": x * missing}  # type: ignore


def branches(x):
    return {"x": -x if x > 0 else x}


@pytest.mark.parametrize(
    ("physics", "message"),
    [
        (known_drift(height), "asks for 'rho'"),
        (known_drift(height, rho=1.0, rhoo=2.0), "'rhoo', which it does not take.*mean 'rho'"),
        (known_drift(lambda x, v: {"x": v}), "asks for 'v', but the states are x, y, z"),
        (known_drift(lambda x: {"w": x}), "returns a rate for 'w', which is not a state"),
        (known_drift(lambda x: x), "must return a dictionary"),
        (known_drift(lambda x: {"x": jnp.stack([x, x])}), "one number for 'x'"),
        (known_drift(branches), "cannot be compiled: .*jnp.where instead of if"),
        (known_drift(forgets), "cannot be compiled: NameError: name 'missing'"),
        (known_drift(lambda x: {"x": None}), "one number for 'x', but returns None"),
        (known_drift(lambda x, t: {"x": x}, t=1.0), "parameter 't'.*Rename"),
    ],
)
def test_bad_physics_is_told_when_the_model_is_declared(physics, message):
    with pytest.raises(ValueError, match=message):
        HybridSDE(states=STATES, physics=physics)
