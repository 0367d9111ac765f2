import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers import tiny_model, wiggles
from hybridsde import (
    Bounded,
    Free,
    HybridSDE,
    Positive,
    Trajectories,
    equations,
    known_drift,
)
from hybridsde.data import Batch
from hybridsde.model import LearnedDrift, Scale
from hybridsde.model.network import ZeroNetwork

XY = ["x", "y"]
DECAY = known_drift(lambda x: {"x": -x})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"states": []}, "`states` is empty"),
        ({"states": ["x", "x"]}, "names 'x' twice"),
        ({"diffusion": [1.0, 1.0, 1.0]}, "2 numbers or a 2×2 matrix"),
        ({"diffusion": -1.0}, "must be zero or more"),
        ({"gate": {"x": 2.0}, "physics": DECAY}, r"must lie in \[0, 1\]"),
        ({"observed": ["x", "w"]}, "`observed` uses 'w', but the states are x, y"),
        ({"observed": []}, "`observed` is empty"),
        ({"noise": 0.0}, "`noise` must be positive"),
        ({"noise": [1.0, 1.0, 1.0]}, "`noise` must be a number or 2 numbers"),
        ({"activation": "step"}, "`activation` must be one of softplus"),
        ({"weights": "global"}, "`weights` must be one of path, local"),
        ({"hidden": (10, 0)}, "`hidden` must be a whole number of at least 1"),
        ({"initial_sd": 0.0}, "`initial_sd` must be a positive number"),
        ({"states": "xy"}, "must be a list of names"),
        ({"observed": ["x", "x"]}, "names 'x' twice"),
        ({"observed": {"sum": {"x": 0.0}}}, "none may be missing"),
        ({"gate": 0.5}, "gives no equation for it, only for none"),
        ({"noise": Positive.of([0.1, 0.1])}, "bounded below when it is learned"),
        ({"noise": Free(0.1)}, "bounded below when it is learned"),
        ({"noise": Positive.of([0.1] * 3, floor=0.01)}, "number or 2 numbers"),
        ({"diffusion": Positive.of([0.1] * 3)}, "must hold 2 numbers"),
    ],
)
def test_bad_declarations(settings, message):
    with pytest.raises(ValueError, match=message):
        HybridSDE(**{"states": XY, **settings})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"states": ["x", "z"], "physics": DECAY}, "observes x, z, but the data hold x, y"),
        ({"states": ["x", "y", "z"], "physics": DECAY}, "observes x, y, z"),
        ({"inputs": ["u"]}, "inputs u, but the data hold none"),
    ],
)
def test_data_and_model_must_agree(settings, message):
    with pytest.raises(ValueError, match=message):
        tiny_model(**settings).check(wiggles())


def test_a_column_that_is_never_observed():
    t, y = np.arange(3.0), np.zeros((3, 2))
    seen = np.array([[True, False]] * 3)
    data = Trajectories.from_arrays([t], [y], states=XY, observed=[seen])
    with pytest.raises(ValueError, match="'y' is never observed"):
        tiny_model().check_training(data)
    tiny_model().check(data)


def test_network_sees_standardised_numbers_and_physics_raw_ones(getkey):
    """Shifting and stretching the data must not change what the network sees."""
    data = wiggles()
    moved = Trajectories.from_arrays(
        list(data.times), [100 + 7 * series for series in data.values], states=data.states
    )
    one, two = (Scale.of(Batch.of(d), jnp.eye(2)) for d in (data, moved))
    h = jnp.asarray(data.values[0, 3])
    np.testing.assert_allclose(one.states(h), two.states(100 + 7 * h), atol=1e-4)
    np.testing.assert_allclose(two.rate, 7 * one.rate, rtol=1e-3)
    physics = known_drift(lambda x: {"x": x})
    model = tiny_model(physics=physics).init(Batch.of(moved), key=getkey())
    raw = jnp.asarray(moved.values[0, 0])
    assert model.known(jnp.zeros(()), raw, jnp.zeros(0))[0] == raw[0]


def test_padding_does_not_move_the_scales():
    t = np.linspace(0, 5, 101)
    u = np.sin(t)[:, None]
    long = Trajectories.from_arrays([t], [np.cos(t)[:, None]], states=["x"], inputs=[u])
    both = Trajectories.from_arrays(
        [t, t[:3]], [np.cos(t)[:, None], np.ones((3, 1))], states=["x"], inputs=[u, u[:3]]
    )
    one, two = (Scale.of(Batch.of(d), jnp.eye(1)) for d in (long, both))
    np.testing.assert_allclose(one.inputs.mean, two.inputs.mean, atol=0.02)
    np.testing.assert_allclose(one.time.sd, two.time.sd, rtol=0.03)


def test_sensors_that_take_turns_have_the_units_of_sensors_that_do_not():
    t = np.linspace(0, 10, 401)
    values = 1e4 * np.stack([np.sin(2 * t), np.cos(2 * t)], 1)
    turns = np.stack([np.arange(401) % 2 == 0, np.arange(401) % 2 == 1], 1)
    whole = Trajectories.from_arrays([t], [values], states=XY)
    halved = Trajectories.from_arrays([t], [values], states=XY, observed=[turns])
    one, two = (Scale.of(Batch.of(d), jnp.eye(2)) for d in (whole, halved))
    np.testing.assert_allclose(one.rate, two.rate, rtol=0.02)
    np.testing.assert_allclose(one.rate, 2e4 / np.sqrt(2), rtol=0.05)


def test_a_hidden_state_has_units_of_its_own(getkey):
    data = wiggles()
    big = Trajectories.from_arrays(
        list(data.times), [1e4 * series for series in data.values], states=XY
    )
    models = [
        HybridSDE(states=["x", "y", "z"], observed=XY).init(Batch.of(d), key=getkey())
        for d in (data, big)
    ]
    small, large = (model.diffusion.sd.value for model in models)
    np.testing.assert_allclose(small[2], large[2], rtol=1e-3)
    np.testing.assert_allclose(1e4 * small[:2], large[:2], rtol=1e-3)


def test_rate_leaves_out_the_noise(getkey):
    """Drift of size one under noise that makes raw slopes ten times as large."""
    key, noise_key = jax.random.split(getkey())
    dt, steps = 0.01, 20_000
    increments = dt * jnp.ones(steps) + 0.5 * jnp.sqrt(dt) * jax.random.normal(key, (steps,))
    values = jnp.cumsum(increments) + 0.05 * jax.random.normal(noise_key, (steps,))
    batch = Batch.of(Trajectories.from_arrays([dt * np.arange(steps)], [values[:, None]]))
    raw = float(jnp.sqrt(jnp.mean((jnp.diff(values) / dt) ** 2)))
    assert raw > 8
    assert float(Scale.of(batch, jnp.eye(1)).rate[0]) < 2


def test_guessed_diffusion_is_right_without_observation_noise(getkey):
    dt, steps = 0.01, 20_000
    noise = 0.5 * jnp.sqrt(dt) * jax.random.normal(getkey(), (steps,))
    path = jnp.cumsum(noise + dt * jnp.sin(dt * jnp.arange(steps, dtype=float)))
    data = Trajectories.from_arrays([dt * np.arange(steps)], [path[:, None]], states=["x"])
    model = HybridSDE(states=["x"], diffusion="guess").init(Batch.of(data), key=getkey())
    np.testing.assert_allclose(model.diffusion.sd.value, 0.5, rtol=0.02)


def test_raw_units_on_request(getkey):
    model = tiny_model(standardise=False).init(Batch.of(wiggles()), key=getkey())
    np.testing.assert_array_equal(model.scale.value.states.mean, [0, 0])
    np.testing.assert_array_equal(model.scale.value.rate, [1, 1])


def test_unobserved_states_get_units_of_order_one(getkey):
    data = wiggles()
    model = HybridSDE(states=["x", "y", "z"], observed=["x", "y"]).init(
        Batch.of(data), key=getkey()
    )
    scale = model.scale.value
    assert scale.states.sd[2] == 1
    assert jnp.isfinite(scale.rate).all()
    assert (model.diffusion.sd.value > 0).all()


def test_physics_alone_learns_nothing(getkey):
    model = tiny_model(hidden=None).init(Batch.of(wiggles()), key=getkey())
    sde = model.draw(key=getkey())
    assert isinstance(sde.learned, LearnedDrift)
    assert isinstance(sde.learned.network, ZeroNetwork)
    learned, known = sde.drift(jnp.zeros(()), jnp.array([1.0, 3.0]), jnp.zeros(0), None)
    np.testing.assert_array_equal(learned, [0, 0])
    np.testing.assert_array_equal(known, [6, 0])
    assert model.network.kl_to_prior() == 0


def test_time_is_seen_only_on_request(getkey):
    batch = Batch.of(wiggles())
    for autonomous in (True, False):
        sde = tiny_model(autonomous=autonomous).init(batch, key=getkey()).draw(key=getkey())
        h, u = jnp.ones(2), jnp.zeros(0)
        early, late = (sde.learned(jnp.array(t), h, u, None) for t in (0.0, 1.0))
        assert bool((early == late).all()) == autonomous


def test_learned_noise_stays_above_its_floor(getkey):
    noise = Positive.of(jnp.full(2, 0.2), floor=0.05)
    model = tiny_model(noise=noise).init(Batch.of(wiggles()), key=getkey())
    np.testing.assert_allclose(model.observation.sd.value, 0.2, rtol=1e-5)
    sunk = eqx.tree_at(lambda m: m.observation.sd.raw, model, jnp.full(2, -80.0))
    np.testing.assert_allclose(sunk.observation.sd.value, 0.05, rtol=1e-5)


def test_a_model_is_shown_as_it_was_declared():
    physics = equations("dx = k*y - c", k=Bounded.of(2.0, 1.0, 3.0), c=1.5)
    model = HybridSDE(states=("x", "y"), physics=physics, members=2)
    assert repr(model) == (
        "HybridSDE(states=('x', 'y'), physics=equations('dx = k*y - c', k=Bounded(2), c=1.5), "
        "members=2)"
    )
