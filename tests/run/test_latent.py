"""Latent models through the whole way: fit, forecast, score, save, certify."""

import dataclasses

import numpy as np
import pytest

import hybridsde as hs
from helpers import bayes, plain_fit

pytestmark = pytest.mark.slow

ROWS, SERIES = 24, 10


def swings(series=SERIES, seed=0):
    """A rotation in two dimensions, seen through three curved channels."""
    rng = np.random.default_rng(seed)
    times = 0.1 * np.arange(ROWS)
    values = []
    for phase in rng.uniform(0, 2 * np.pi, series):
        x, y = np.cos(2 * times + phase), np.sin(2 * times + phase)
        seen = np.stack([x + y, x**3, np.tanh(2 * y)], -1)
        values.append(seen + 0.02 * rng.normal(size=seen.shape))
    return hs.Trajectories.from_arrays([times] * series, values, states=("a", "b", "c"))


@pytest.fixture(scope="module")
def run():
    model = hs.HybridSDE(
        states=("z0", "z1"),
        observed=("a", "b", "c"),
        latent=hs.Latent(3, (20,), (20,)),
        hidden=(20,),
        diffusion=0.05,
        noise=0.1,
    )
    return hs.fit(
        model,
        swings(),
        objective=bayes(),
        training=hs.Training(epochs=250, batch_size=10, learning_rate=1e-2),
    )


def test_it_learns_the_rotation(run):
    test = swings(seed=1)
    scores = run.score(test)
    spread = test.values[:, 3:].std()
    assert scores.loc["overall", "rmse"] < 0.5 * spread
    assert list(scores.index) == ["a", "b", "c", "overall"]


def test_forecasts_begin_after_the_context(run):
    test = swings(seed=1)
    forecast = run.forecast(test.start(3), test.times[:, 3:], draws=8)
    assert forecast.observations.shape == (8, SERIES, ROWS - 3, 3)
    assert forecast.states.shape == (8, SERIES, ROWS - 3, 2)
    with pytest.raises(ValueError, match="looks back at 3 rows"):
        run.forecast(test.start(), test.times[:, 3:], draws=8)
    with pytest.raises(ValueError, match=r"entry 0 is 0\.1 after 0\.2"):
        run.forecast(test.start(3), test.times[:, 1:], draws=8)
    with pytest.raises(ValueError, match="3 points, so there is nothing"):
        run.score(test.start(3))


def test_a_latent_run_survives_its_folder(run, tmp_path):
    run.save(tmp_path / "run")
    back = hs.Run.load(tmp_path / "run")
    assert back.spec.latent == run.spec.latent
    test = swings(seed=1)
    one, two = (r.score(test).loc["overall", "mse"] for r in (run, back))
    np.testing.assert_allclose(one, two, rtol=1e-5)


def test_a_latent_run_can_be_certified(run):
    found = run.certify(swings(series=30, seed=2), loss="error")
    assert not found.vacuous


def test_what_was_learned_is_physics_for_another(run, tmp_path):
    """With nothing learned on top, the frozen drift forecasts as its source does."""
    model = dataclasses.replace(run.spec, physics=hs.frozen_drift(run), hidden=None)
    other = plain_fit(
        model,
        swings(series=4, seed=5),
        training=hs.Training(epochs=1, learning_rate=1e-9),
        start_from=run,
    )
    test = swings(seed=1)
    one, two = (r.score(test).loc["overall", "mse"] for r in (run, other))
    np.testing.assert_allclose(one, two, rtol=0.1)
    other.save(tmp_path / "other")
    back = hs.Run.load(tmp_path / "other")
    np.testing.assert_allclose(back.score(test).loc["overall", "mse"], two, rtol=1e-4)


def test_training_leaves_frozen_drifts_alone(run):
    model = dataclasses.replace(run.spec, physics=hs.frozen_drift(run))
    after = plain_fit(
        model,
        swings(series=4, seed=5),
        training=hs.Training(epochs=2, learning_rate=0.02),
        start_from=run,
    )
    before = run.forecaster.model.network.posterior.mean.layers[0].weight
    frozen = after.forecaster.model.known.physics.sde.value.learned.network.layers[0].weight
    np.testing.assert_array_equal(frozen, before)
    moved = after.forecaster.model.observation.decoder.layers[0].weight
    assert not np.allclose(moved, run.forecaster.model.observation.decoder.layers[0].weight)


def test_what_cannot_be_transferred(run):
    plain = hs.HybridSDE(states=("a", "b", "c"), hidden=(4,))
    with pytest.raises(hs.InputError, match="run of a latent model"):
        hs.fit(plain, swings(), start_from=run)
    with pytest.raises(ValueError, match="'z0' is not a state here"):
        dataclasses.replace(plain, physics=hs.frozen_drift(run))
