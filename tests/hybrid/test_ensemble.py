"""An ensemble of small networks by second-order steps."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import hybridsde as hs
from hybridsde.hybrid.declaration import ENSEMBLE_MEMBERS
from hybridsde.model import MLP, MixtureMLP
from hybridsde.model.network import hinge
from hybridsde.project.settings import TrainSettings


def spirals(count=4, rows=40, step=0.1, seed=0):
    """dx = v, dv = −2x − tanh(2v)/2 + noise, with small measurement errors."""
    rng = np.random.default_rng(seed)
    x, v = rng.uniform(-1.5, 1.5, (2, count))
    kept = []
    for _ in range(rows):
        kept.append(np.stack([x, v], 1))
        for _ in range(10):
            shock = 0.05 * np.sqrt(step / 10) * rng.normal(size=(2, count))
            x, v = (
                x + step / 10 * v + shock[0],
                v + step / 10 * (-2 * x - 0.5 * np.tanh(2 * v)) + shock[1],
            )
    values = np.stack(kept, 1) + 0.02 * rng.normal(size=(count, rows, 2))
    return hs.Trajectories.from_arrays(
        [step * np.arange(rows)] * count, list(values), states=("x", "v")
    )


@pytest.fixture(scope="module")
def run():
    physics = hs.equations("dx = v", "dv = -k*x", k=hs.Bounded.of(1.0, 0.2, 8.0))
    model = hs.HybridSDE(states=("x", "v"), physics=physics, exact=("x",), learned="ensemble")
    return hs.fit(model, spirals(), seed=0)


@pytest.mark.slow
def test_every_network_climbs_and_forecasts_are_near_those_of_the_truth(run):
    """The damping is not among the known equations; without it errors are several times larger."""
    losses = run.history["loss"].to_numpy()
    assert np.all(np.diff(losses) <= 1e-9)  # a step that does not gain is not taken
    test = spirals(24, seed=1)
    scores = run.score(test)
    alone = hs.HybridSDE(
        states=("x", "v"), physics=hs.equations("dx = v", "dv = -2*x"), hidden=None
    )
    known = hs.fit(alone, spirals(), training=hs.Training(epochs=20)).score(test)
    assert scores.loc["overall", "crps"] < 0.5 * known.loc["overall", "crps"]
    assert 0.7 < scores.loc["overall", "coverage90"] <= 1


@pytest.mark.slow
def test_networks_have_parameters_and_diffusions_of_their_own(run):
    model = run.forecaster.model
    assert isinstance(model.network, MixtureMLP)
    assert model.network.count == model.own.count == ENSEMBLE_MEMBERS
    drawn = [model.draw(key=jr.key(0), number=jnp.asarray(n)) for n in range(3)]
    rates = [float(one.known.physics.parameters["k"].value) for one in drawn]
    spreads = [np.asarray(one.diffusion.sd.value) for one in drawn]
    assert len(set(rates)) == 3
    assert not np.allclose(spreads[0], spreads[1])
    errors = run.metadata.parameters["k"]["error"]
    assert errors > np.std(rates) / 2  # errors count what networks disagree about
    first = model.typical()
    np.testing.assert_allclose(first.known.physics.parameters["k"].value, rates[0])


@pytest.mark.slow
def test_an_ensemble_is_the_same_after_a_run_folder(run, tmp_path):
    run.save(tmp_path / "run")
    again = hs.Run.load(tmp_path / "run")
    for one, other in zip(
        jax.tree.leaves(run.forecaster), jax.tree.leaves(again.forecaster), strict=True
    ):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


def test_seeds_decide_where_networks_begin():
    physics = hs.equations("dx = v", "dv = -k*x", k=hs.Bounded.of(1.0, 0.2, 8.0))
    spec = hs.HybridSDE(states=("x", "v"), physics=physics, learned="ensemble")
    data = spec.batch(spirals(2, 10))
    first, same, other = (
        spec.init(data, key=jr.key(seed)).network.posterior.mean.layers[0].weight
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, same)
    assert not np.allclose(first, other)


def test_what_an_ensemble_cannot_be():
    for settings, message in (
        ({"learned": ("ensemble", "library")}, "cannot be learned together"),
        ({"learned": "ensemble", "weights": "local"}, "held along a path"),
    ):
        with pytest.raises(ValueError, match=message):
            hs.HybridSDE(states=("x",), **settings)


def test_settings_leave_an_ensemble_to_its_own_steps():
    """As in Python: an objective would train it by gradients instead."""
    spec = hs.HybridSDE(states=("x",), learned="ensemble")
    assert TrainSettings().build_objective(spec) is None
    assert TrainSettings(objective="bayes").build_objective(spec) is not None


def hidden_springs(count=5, rows=40, step=0.15, seed=0):
    """dx = v, dv = −4x − 0.8v + noise from random starts; the table has x alone."""
    rng = np.random.default_rng(seed)
    x, v = rng.uniform(-1, 1, (2, count))
    kept = []
    for _ in range(rows):
        kept.append(x)
        for _ in range(20):
            shock = 0.05 * np.sqrt(step / 20) * rng.normal(size=count)
            x, v = x + step / 20 * v, v + step / 20 * (-4 * x - 0.8 * v) + shock
    values = np.stack(kept, 1)[..., None] + 0.03 * rng.normal(size=(count, rows, 1))
    return hs.Trajectories.from_arrays(
        [step * np.arange(rows)] * count, list(values), states=("x",)
    )


@pytest.fixture(scope="module")
def hidden():
    """The damping is missing, and the guess of the spring is far off."""
    physics = hs.equations("dx = v", "dv = -k*x", k=hs.Bounded.of(1.0, 0.2, 12.0))
    model = hs.HybridSDE(
        states=("x", "v"), observed=("x",), physics=physics, exact=("x",), learned="ensemble"
    )
    return hs.fit(model, hidden_springs(), seed=0)


@pytest.mark.slow
def test_a_wrong_equation_of_an_unmeasured_state_is_mended(hidden):
    """The CRPS of the mean of the data is 0.14; simulated without damping it is no better."""
    scores = hidden.score(hidden_springs(seed=1))
    assert scores.loc["overall", "crps"] < 0.08
    assert 0.7 < scores.loc["overall", "coverage90"] <= 1


@pytest.mark.slow
def test_networks_begin_where_their_own_simulations_do(hidden, tmp_path):
    model = hidden.forecaster.model
    drawn = [model.draw(key=jr.key(0), number=jnp.asarray(n)) for n in range(3)]
    assert len({float(one.start.default.value[1]) for one in drawn}) == 3
    hidden.save(tmp_path / "run")
    again = hs.Run.load(tmp_path / "run")
    data = hidden_springs(seed=1)
    first, second = (run.score(data).loc["overall", "crps"] for run in (hidden, again))
    assert first == second


def test_what_is_tried_beside_a_library_depends_on_what_is_measured():
    measured = hs.HybridSDE(states=("x", "v"))
    assert measured.rival == "network"
    assert hs.HybridSDE(states=("x", "v"), observed=("x",)).rival == "ensemble"


def test_a_hinged_network_is_an_affine_map_and_a_few_bends():
    network = MLP.hinged(2, 3, 2, last=0.5, key=jr.key(0))
    assert not np.any(
        network(jnp.zeros(2)) - network.layers[1].weight[:3].T @ hinge(network.layers[0].bias)
    )
    slope = jnp.array([[1.0, 2.0], [3.0, 4.0]])
    flat = eqx.tree_at(
        lambda n: n.layers[1].weight, network, jnp.concatenate([jnp.zeros((3, 2)), slope])
    )
    x = jnp.array([0.3, -0.7])
    np.testing.assert_allclose(flat(x), x @ slope, rtol=1e-6)
    np.testing.assert_allclose(hinge(jnp.array([-5.0, 0.0, 5.0])), [0, np.log(2) / 4, 5], atol=1e-6)
