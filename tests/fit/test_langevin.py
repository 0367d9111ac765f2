"""Langevin sampling against a posterior that is known in closed form."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import hybridsde as hs
from helpers import PLAIN, assert_mean_close, assert_variance_close
from hybridsde.fit.langevin import langevin_step, steepest
from hybridsde.model import SampledNetworks

NOISE, SERIES = 0.5, 40


def regression():
    """One step y₁ = y₀ + (w y₀ + b) + ε: the weights (w, b) are those of a linear regression."""
    rng = np.random.default_rng(0)
    first = rng.normal(size=SERIES)
    last = first - 0.7 * first + 0.4 + NOISE * rng.normal(size=SERIES)
    values = np.stack([first, last], 1)[..., None]
    data = hs.Trajectories.from_arrays([np.array([0.0, 1.0])] * SERIES, list(values), states=("x",))
    design = np.stack([first, np.ones(SERIES)], 1)
    precision = design.T @ design / NOISE**2 + np.eye(2)
    mean = np.linalg.solve(precision, design.T @ (last - first) / NOISE**2)
    return data, mean, np.linalg.inv(precision)


MODEL = hs.HybridSDE(
    states=("x",),
    hidden=(),
    diffusion=1e-4,
    noise=NOISE,
    standardise=False,
    weights="local",
    start="first",
)
TRAINING = hs.Training(epochs=60, batch_size=SERIES, learning_rate=0.05)
LOSS, LANGEVIN = hs.LogPosterior(**PLAIN, samples=1), hs.Langevin(steps=18, keep=3)


def weights_of(run):
    layer = run.forecaster.model.network.samples.layers[0]
    return np.stack([np.asarray(layer.weight)[:, 0, 0], np.asarray(layer.bias)[:, 0]], 1)


@pytest.mark.slow
@pytest.mark.long
def test_samples_follow_the_posterior_of_a_linear_regression():
    data, mean, covariance = regression()
    langevin = hs.Langevin(steps=40_000, step_size=1.0, keep=1000)
    run = hs.fit(MODEL, data, objective=LOSS, langevin=langevin, training=TRAINING)
    found = weights_of(run)
    sd = np.sqrt(np.diag(covariance))
    # Steps of at least 0.08/λ, 20 apart: neighbours correlate by e^(−1.6) at most along the steep
    # direction and by e^(−0.8) along any, as the condition number is below 2: 1000 samples are
    # worth 300 or more.
    assert np.linalg.cond(covariance) < 2
    assert np.abs((found.mean(0) - mean) / sd).max() < 4 / np.sqrt(300)
    assert found.std(0) == pytest.approx(sd, rel=4 / np.sqrt(2 * 300))


@pytest.mark.slow
def test_training_finds_the_most_probable_weights():
    data, mean, _ = regression()
    found = hs.fit(
        MODEL,
        data,
        objective=LOSS,
        langevin=hs.Langevin(steps=2, step_size=1e-9, keep=1),
        training=replace(TRAINING, epochs=400),
    )
    assert weights_of(found)[0] == pytest.approx(mean, abs=2e-3)


def test_the_steepest_curvature_of_a_quadratic():
    matrix = jnp.diag(jnp.array([1.0, 30.0, 4.0]))
    found = steepest(lambda x: -matrix @ x, jnp.array([1.0, 2.0, 3.0]), key=jr.key(0))
    assert found == pytest.approx(30, rel=1e-3)


@pytest.mark.long
def test_many_fits_equal_single_ones_and_the_key_decides(swing):
    data = swing
    model = replace(MODEL, hidden=(4,))
    training = hs.Training(epochs=2)
    batch = model.batch(data)
    keys = jr.split(jr.key(0), 2)
    models = jax.vmap(lambda key: model.init(batch, key=key))(keys)
    both = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), batch)
    settings = {"training": training, "langevin": LANGEVIN}
    many = hs.train_many(models, both, LOSS, **settings, keys=keys)
    one = hs.train(model.init(batch, key=keys[1]), batch, LOSS, **settings, key=keys[1])
    assert isinstance(many.model.network, SampledNetworks)
    for stacked, single in zip(
        jax.tree.leaves(many.model.network), jax.tree.leaves(one.model.network), strict=True
    ):
        assert stacked.shape == (2, *single.shape)
        assert np.allclose(stacked[1], single, rtol=1e-3, atol=1e-4)
        assert not np.allclose(stacked[0], single, rtol=1e-3, atol=1e-4)


@pytest.fixture
def swing():
    times = np.linspace(0, 1, 8)
    values = [np.sin(3 * times + phase)[:, None] for phase in range(4)]
    return hs.Trajectories.from_arrays([times] * 4, values, states=("x",))


@pytest.mark.slow
def test_a_run_is_saved_forecasts_and_draws_what_was_kept(swing, tmp_path):
    model = replace(MODEL, hidden=(4,))
    told = []
    run = hs.fit(
        model,
        swing,
        objective=LOSS,
        langevin=LANGEVIN,
        training=hs.Training(epochs=2),
        callbacks=[told.append],
    )
    assert [step.epoch for step in told] == list(range(1, 2 + 6 + 1))
    assert {step.epochs for step in told} == {8}
    run.save(tmp_path / "run")
    again = hs.Run.load(tmp_path / "run")
    assert run.score(swing).equals(again.score(swing))
    ends = run.forecast(swing.start(), [1.0], draws=60, paths_per_weight=1).states.values[:, 0]
    assert len(np.unique(np.round(ends, 2))) >= 2


def test_visited_networks_cannot_be_a_pac_bayes_posterior(swing):
    with pytest.raises(hs.InputError, match="holdout"):
        hs.fit_certified(replace(MODEL, weights="path"), swing, objective=LOSS, langevin=LANGEVIN)


def test_steps_follow_the_log_posterior_alone(swing):
    with pytest.raises(ValueError, match="objective=LogPosterior"):
        hs.fit(MODEL, swing, langevin=LANGEVIN)


def test_a_step_is_gradient_and_noise():
    """θ + ε g + √(2ε) η: mean and variance over many coordinates, within five standard errors."""
    count, size = 40_000, 0.02
    weights = {"a": jnp.ones(count // 2), "b": jnp.ones(count // 2)}
    gradient = jax.tree.map(lambda leaf: 3.0 * leaf, weights)
    moved = langevin_step(weights, gradient, jnp.array(size), key=jr.key(0))
    change = np.concatenate([np.asarray(moved[name]) for name in weights]) - 1 - 3 * size
    assert_mean_close(change, 0.0)
    assert_variance_close(change, 2 * size)


@pytest.mark.filterwarnings("ignore::hybridsde.InputNotice")
@pytest.mark.slow
def test_no_network_leaves_nothing_to_sample(swing):
    physics = hs.equations("dx = -x")
    model = hs.HybridSDE(states=("x",), physics=physics, hidden=None)
    training = hs.Training(epochs=1)
    run = hs.fit(model, swing, objective=LOSS, langevin=LANGEVIN, training=training)
    assert np.isfinite(run.score(swing)["mse"]["overall"])


@pytest.mark.parametrize("wrong", [{"keep": 0}, {"steps": 5, "keep": 4}, {"step_size": -1.0}])
@pytest.mark.slow
def test_settings_are_checked(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        hs.Langevin(**wrong)
