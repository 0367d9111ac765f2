"""Walkers that go round: what is found of them, and that forecasts know only what is given."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import hybridsde as hs
from hybridsde.forecast import evaluate
from hybridsde.paper import gait_shape
from hybridsde.paper.gait import GaitSDE
from hybridsde.paper.ridge import RidgeComponents

NAMES = tuple("abcdef")
STEP, PERIOD, GIVEN = 0.01, 60, 50
GAIT = GaitSDE(observed=NAMES, given=GIVEN, harmonics=3, shapes=2, sways=2, guesses=12)
RIDGE = RidgeComponents(observed=NAMES, given=GIVEN, components=4, lags=10, penalty=1.0)


def walkers(series, rows=150, seed=0, noise=0.1, jitter=0.0):
    """One cycle of two harmonics; each walker has a phase, a pace and a stride of its own."""
    rng = np.random.default_rng(seed)
    size = np.array([0, 4, 1, 4, 1])[:, None]
    cycle = np.random.default_rng(99).normal(size=(5, len(NAMES))) * size
    paces = 2 * np.pi / PERIOD * (1 + 0.03 * rng.normal(size=series))
    phases, strides = rng.uniform(0, 2 * np.pi, series), 1 + 0.1 * rng.normal(size=series)
    angles = phases[:, None] + paces[:, None] * np.arange(rows)
    angles += np.cumsum(jitter * np.sqrt(STEP) * rng.normal(size=angles.shape), 1)
    values = strides[:, None, None] * (gait_shape.basis(angles, 2) @ cycle)
    values += noise * rng.normal(size=values.shape)
    times = [STEP * np.arange(rows)] * series
    ids = [f"{seed} {n}" for n in range(series)]
    return hs.Trajectories.from_arrays(times, list(values), states=NAMES, ids=ids), phases, paces


@pytest.fixture(scope="module")
def fitted():
    return GAIT.estimate(GAIT.batch(walkers(10)[0]), ()).model


def test_phases_and_paces_are_found():
    data, phases, paces = walkers(10)
    found = gait_shape.rounds(data.values, 3)
    np.testing.assert_allclose(found.pace, paces, rtol=2e-3)
    shift = np.exp(1j * (found.along(150)[:, 0] - phases))
    np.testing.assert_allclose(shift, shift.mean(), atol=0.02)  # all turned by the same angle


def test_strides_are_the_first_shape_and_noise_is_left():
    found = gait_shape.estimate(walkers(10)[0].values, gait_shape.Sizes(3, 2, 2, 1e-4))
    size = np.sqrt((found.shapes**2).sum((1, 2)))
    assert size[0] == pytest.approx(0.1 * np.linalg.norm(found.cycle), rel=0.5)
    assert size[1] < 0.2 * size[0]
    assert found.noise.max() < 0.3


def test_slopes_are_those_of_the_basis():
    phase = np.linspace(0, 6, 7)
    change = gait_shape.basis(phase + 1e-6, 4) - gait_shape.basis(phase - 1e-6, 4)
    np.testing.assert_allclose(gait_shape.slope(phase, 4), change / 2e-6, atol=1e-6)


def test_what_fades_is_measured_with_its_error():
    """Autoregressions that keep 0.9 and 0.7 of themselves from row to row."""
    rng, kept = np.random.default_rng(0), np.array([0.9, 0.7])
    rows = [np.zeros((20, 2))]
    for _ in range(400):
        rows.append(kept * rows[-1] + rng.normal(size=(20, 2)))
    found, sd = gait_shape._fading(np.stack(rows, 1))
    assert (np.abs(found - kept) < 4 * sd).all()
    assert (sd < 0.1).all()


@pytest.mark.slow
def test_new_walkers_are_forecast_with_honest_bands():
    """Their phases wander as the model says; bands of a dozen walkers hold about nine tenths."""
    spec = replace(GAIT, phase_noise=0.3, noise_spread=1.0, pace_spreads=(1.0,))
    train, test = (walkers(12, seed=seed, jitter=0.3)[0] for seed in (0, 1))
    model = spec.estimate(spec.batch(train), ()).model
    scores = evaluate(model, spec.batch(test), 60, key=jr.key(0))
    ridge = RIDGE.estimate(RIDGE.batch(train), ()).model
    peer = evaluate(ridge, RIDGE.batch(test), 60, key=jr.key(0))
    assert scores["mse"][-1] < peer["mse"][-1]
    assert 0.8 < scores["coverage90"][-1] < 0.97


@pytest.mark.slow
@pytest.mark.parametrize("spec", [GAIT, RIDGE], ids=lambda spec: spec.name)
def test_forecasts_know_nothing_but_the_given_rows(spec):
    model = spec.estimate(spec.batch(walkers(10)[0]), ()).model
    batch = spec.batch(walkers(2, seed=1)[0])
    other = replace(batch, values=batch.values.at[:, GIVEN:].set(1e3))
    predict = jax.jit(lambda batch: model.predict(batch, 4, key=jr.key(0)).means)
    whole, blind = predict(batch), predict(other)
    np.testing.assert_array_equal(whole, blind)
    np.testing.assert_array_equal(whole[0, :, :GIVEN], batch.values[:, :GIVEN])
    moved = replace(batch, values=batch.values.at[:, :GIVEN].add(1.0))
    assert not np.allclose(predict(moved)[:, :, GIVEN:], whole[:, :, GIVEN:], atol=0.1)


@pytest.mark.slow
def test_a_longer_past_tells_more_of_the_pace(fitted):
    """The error of the pace after 120 rows is less than after 50."""
    data, _, _ = walkers(4, seed=2)
    batch = GAIT.batch(data)

    def doubt(rows):
        states, evidence = jax.vmap(fitted._ends)(GAIT.batch(data.start(rows)))
        best = jnp.argmax(evidence, 1)
        return jax.vmap(lambda p, k: p[k, 1, 1])(states.covariance, best)

    assert (doubt(120) < doubt(GIVEN)).all()
    past = replace(batch, past=GAIT.batch(data.start(120)))
    assert fitted.predict(past, 2, key=jr.key(0)).means.shape == (2, *batch.values.shape)


def test_ridge_continues_a_rotation():
    """Noiseless circles are linear: the regression continues them."""
    spec = replace(RIDGE, components=2, lags=2, penalty=1e-6)
    angle = 0.1 * np.arange(150)
    circle = np.stack([np.cos(angle), np.sin(angle)], -1) @ np.eye(2, len(NAMES))
    data = hs.Trajectories.from_arrays([STEP * np.arange(150)], [circle], states=NAMES)
    model = spec.estimate(spec.batch(data), ()).model
    found = model.predict(spec.batch(data), 1, key=jr.key(0)).means[0, 0]
    np.testing.assert_allclose(found, circle, atol=0.02)


def test_settings_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="`lags` is 60, but only 50 rows are given"):
        replace(RIDGE, lags=60)
    with pytest.raises(ValueError, match="phase_noise"):
        replace(GAIT, phase_noise=0.0)
