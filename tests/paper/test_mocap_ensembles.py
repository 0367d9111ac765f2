"""Models of walking that forecast together, and the noise that their errors leave."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import hybridsde as hs
from helpers import STANDARD_ERRORS, linear_model
from hybridsde._devices import same_for_seeds
from hybridsde.data import Batch
from hybridsde.fit import Fitted
from hybridsde.forecast import evaluate_many
from hybridsde.paper import mocap_sde
from hybridsde.paper.mocap_data import Walking
from hybridsde.paper.table import RowKey

pytestmark = pytest.mark.long

STATES = ("x", "y", "z")


def stack(trees):
    """Several trees as one whose arrays have a leading axis."""
    return jax.tree.map(
        lambda *leaves: jnp.stack(leaves) if eqx.is_array(leaves[0]) else leaves[0], *trees
    )


def still(diffusion):
    """Three states without drift."""
    model = linear_model(np.zeros((3, 3)), diffusion=diffusion, noise=np.full(3, 7.0))
    return replace(model, context=2)


def of_residuals(models, data):
    """σ of every channel, by model."""
    given = stack([Batch.of(one) for one in data])
    found = mocap_sde._with_residuals(stack(models), given, jr.split(jr.key(0), len(models)))
    return np.asarray(found.observation.sd.value)


def recorded(values):
    times = [np.arange(values.shape[1]) / 10] * len(values)
    return hs.Trajectories.from_arrays(times, list(values), states=STATES)


def test_noise_is_the_error_of_forecasts_after_the_given_rows():
    """Without diffusion paths stay where they begin; a channel that does too has the least σ."""
    rng = np.random.default_rng(0)
    many = []
    for _ in range(2):
        values = rng.normal(size=(4, 6, 3)) * [1.0, 30.0, 1.0]
        values[:, 1] += 1000  # given, so no forecast is judged on it
        values[:, 2:, 2] = values[:, :1, 2]
        many.append(values)
    found = of_residuals([still(1e-6)] * 2, [recorded(values) for values in many])
    for sd, values in zip(found, many, strict=True):
        rms = np.sqrt(((values[:, 2:] - values[:, :1]) ** 2).mean((0, 1)))
        np.testing.assert_allclose(sd, [*rms[:2], mocap_sde.SMALLEST_NOISE], rtol=1e-4)


def test_what_paths_vary_is_not_noise():
    """Brownian paths of variance G²t whose recordings are offsets c: σ² = c² − (1 − 1/S) mean G²t.

    The mean of S paths is off by G²t/S itself. Offsets that paths explain leave the least σ.
    """
    series, diffusion, offsets = 400, np.array([1.0, 2.0, 2.0]), np.array([1.5, 3.0, 0.1])
    values = np.zeros((series, 5, 3))
    values[:, 1:] = offsets
    (found,) = of_residuals([still(diffusion)], [recorded(values)])
    variance = diffusion**2 * np.arange(2, 5).mean() / 10
    left = offsets**2 - (1 - 1 / mocap_sde.DRAWS) * variance
    assert left[2] < 0
    # Errors of a series are those of its mean, 2c √(v/S) in its square; variances are averaged
    # over as many series, and the rows of a series count as one.
    most, draws = diffusion**2 * 0.4, mocap_sde.DRAWS
    error = (2 * offsets * np.sqrt(most / draws) + most * np.sqrt(2 / draws)) / np.sqrt(series)
    assert (np.abs(found**2 - left)[:2] < STANDARD_ERRORS * error[:2]).all()
    assert found[2] == pytest.approx(mocap_sde.SMALLEST_NOISE)


def swings(series, seed):
    """Three channels that swing together, each sequence at its own phase."""
    times = np.arange(12) / 12
    phases = np.random.default_rng(seed).uniform(0, 6, series)
    values = np.sin(6 * times[:, None] + np.arange(3) + phases[:, None, None])
    ids = [f"{seed} {n}" for n in range(series)]
    return hs.Trajectories.from_arrays([times] * series, list(values), states=STATES, ids=ids)


PRESET = replace(
    mocap_sde.PAPER,
    model=replace(
        mocap_sde.PAPER.model,
        states=("z0", "z1"),
        observed=STATES,
        latent=hs.Latent(3, (), ()),
        hidden=(),
        diffusion=1e-5,
        initial_sd=1e-5,
        standardise=False,
    ),
    iterations=((2, 8),),
    choose_epoch=False,
    hybrid_last_layer=0.1,
    members=2,
    noise_of_residuals=True,
)
DATA = Walking(swings(4, seed=1), swings(2, seed=2), swings(3, seed=3))


@pytest.fixture
def trainer():
    return mocap_sde.Trainer(PRESET, DATA, swings(4, seed=4), 2, 0, lambda name: ())


def affine(layer, x, number):
    """One of several affine maps x ↦ x W + b."""
    return x @ np.asarray(layer.weight[number]) + np.asarray(layer.bias[number])


def forecast(model, number, drifts):
    """The path of one model without its noise: all its maps are affine, all drifts add up."""
    channels = jax.tree.map(lambda leaf: np.asarray(leaf[number]), model.start.channels.value)
    values, times = DATA.test.values, DATA.test.times[0]
    seen = (values[:, :3] - channels.mean) / channels.sd
    h = [affine(model.start.encoder.layers[0], seen.reshape(len(seen), -1), number)]
    for dt in np.diff(times):
        h.append(h[-1] + dt * sum(affine(drift, h[-1], number) for drift in drifts))
    out = affine(model.observation.decoder.layers[0], np.stack(h, 1), number)
    return channels.mean + channels.sd * out


def check_members(trainer, model, drifts):
    """Repetition r is scored by the mean forecast of models 2r and 2r + 1."""
    test = same_for_seeds(PRESET.model.batch(DATA.test), 2)
    draws, keys = mocap_sde.DRAWS, jr.split(jr.key(0), 2)
    scores = evaluate_many(trainer.ensembles(model), test, draws, keys)
    truth = DATA.test.values
    assert scores["mse"].shape == (2, 4)
    for repetition in range(2):
        pair = [forecast(model, 2 * repetition + k, drifts) for k in range(2)]
        error = (np.mean(pair, 0) - truth) ** 2
        np.testing.assert_allclose(scores["mse"][repetition, -1], error[:, 3:].mean(), rtol=1e-3)
        np.testing.assert_allclose(scores["mse_all"][repetition, 0], error.mean(), rtol=1e-3)


def layer_of(model):
    return model.network.mean().layers[0]


def test_members_train_and_a_row_has_one_score_per_repetition(trainer, monkeypatch):
    fitted = trainer.fit(mocap_sde.NONE, "e-bayes", "test")
    assert fitted.model.observation.sd.value.shape == (4, 3)
    check_members(trainer, fitted.model, [layer_of(fitted.model)])
    monkeypatch.setattr(trainer, "fit", lambda *_: fitted)
    row = trainer.row(RowKey(mocap_sde.NONE, "e-bayes", "test", "centred", 2, 0, "mark"))
    assert len(set(row.mse_each)) == row.repetitions == 2
    assert row.mse_mean == pytest.approx(np.mean(row.mse_each))
    assert row.mse_sample_mean > row.mse_mean
    assert np.isfinite([row.nll_mean, row.crps_mean, row.mse_all_mean]).all()


def test_every_member_begins_with_what_one_model_of_the_walkers_knows(trainer, monkeypatch):
    """Encoder, decoder and drift, beside a learned part of a tenth of its size; all untrained."""

    def untrained(models, *_, keys, **__):
        none = np.zeros(len(keys), int)
        return Fitted(models, {}, none.astype(bool), none, none)

    monkeypatch.setattr(mocap_sde, "train_many", untrained)
    rows = (mocap_sde.WALKERS, mocap_sde.NONE)
    hybrid, plain = (trainer.fit(known, "e-bayes", "").model for known in rows)
    source = trainer._source()
    drifts = [layer_of(hybrid), layer_of(source)]
    check_members(trainer, hybrid, drifts)
    own, learned = (m.start.encoder.layers[0].weight for m in (hybrid, source))
    np.testing.assert_array_equal(own, learned)
    assert len(np.unique(np.asarray(own)[:, 0, 0])) == 4
    np.testing.assert_allclose(drifts[0].weight, 0.1 * layer_of(plain).weight, rtol=1e-5)
