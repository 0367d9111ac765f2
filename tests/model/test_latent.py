"""Latent states: encoded from the first rows, decoded into observations."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import hybridsde as hs
from helpers import one_series
from hybridsde.data import Batch
from hybridsde.estimate import filtered
from hybridsde.objective.base import log_likelihoods
from hybridsde.simulate import EulerMaruyama, simulate

NAMES = ("a", "b", "c")


def recordings(series=4, rows=9, seed=0):
    rng = np.random.default_rng(seed)
    values = [rng.normal([1.0, -2.0, 5.0], [1.0, 3.0, 0.0], size=(rows, 3)) for _ in range(series)]
    return hs.Trajectories.from_arrays([0.1 * np.arange(rows)] * series, values, states=NAMES)


def declare(**changes):
    given = {"states": ("z0", "z1"), "observed": NAMES, "latent": hs.Latent(3, (7,), (5,))}
    return hs.HybridSDE(**{**given, "hidden": (6,), "diffusion": 0.2, "noise": 0.5, **changes})


def test_shapes_and_scales(getkey):
    batch = Batch.of(recordings())
    model = declare().init(batch, key=getkey())
    assert model.start.encoder.layers[0].weight.shape == (9, 7)
    assert model.observation.decoder.layers[-1].weight.shape == (5, 3)
    np.testing.assert_allclose(model.observation.channels.value.sd[2], 1.0)  # never changes
    np.testing.assert_array_equal(model.scale.value.states.sd, 1.0)
    assert (model.context, model.first_scored_row) == (3, 0)


def test_the_start_depends_on_the_context_and_nothing_else(getkey):
    data = recordings()
    model = declare().init(Batch.of(data), key=getkey())
    epsilon = jnp.zeros(2)
    values, seen = jnp.asarray(data.values[0]), jnp.ones((9, 3), bool)
    start = model.initial_state(model.typical(), one_series(values, seen), epsilon)
    assert np.array_equal(
        start,
        model.initial_state(model.typical(), one_series(values.at[3:].set(7.0), seen), epsilon),
    )
    assert not np.allclose(
        start,
        model.initial_state(model.typical(), one_series(values.at[2].set(7.0), seen), epsilon),
    )
    hidden = seen.at[1].set(False)
    same = model.initial_state(model.typical(), one_series(values.at[1].set(99.0), hidden), epsilon)
    assert np.array_equal(
        same, model.initial_state(model.typical(), one_series(values, hidden), epsilon)
    )


def test_a_spread_start_has_the_declared_spread(getkey):
    data = recordings()
    latent = hs.Latent(3, (7,), (5,), spread=0.3)
    model = declare(latent=latent).init(Batch.of(data), key=getkey())
    values, seen = jnp.asarray(data.values[0]), jnp.ones((9, 3), bool)
    draws = jax.vmap(lambda e: model.initial_state(model.typical(), one_series(values, seen), e))(
        jr.normal(getkey(), (4000, 2))
    )
    np.testing.assert_allclose(draws.std(0), 0.3, rtol=0.5)


@pytest.mark.slow
def test_jitter_moves_what_the_encoder_sees(getkey):
    data = recordings()
    key = getkey()
    sharp = declare().init(Batch.of(data), key=key)
    blurred = declare(latent=hs.Latent(3, (7,), (5,), jitter=0.3)).init(Batch.of(data), key=key)
    assert (sharp.start_normals, blurred.start_normals) == (2, 2 + 9)
    values, seen = jnp.asarray(data.values[0]), jnp.ones((9, 3), bool)
    noise = jr.normal(getkey(), (9,))
    found = blurred.initial_state(
        blurred.typical(), one_series(values, seen), jnp.concatenate([jnp.zeros(2), noise])
    )
    sd = sharp.start.channels.value.sd
    moved = values.at[:3].add(0.3 * sd * noise.reshape(3, 3))
    np.testing.assert_allclose(
        found,
        sharp.initial_state(sharp.typical(), one_series(moved, seen), jnp.zeros(2)),
        rtol=1e-4,
    )
    starts = simulate(blurred, EulerMaruyama(), Batch.of(data), samples=6, key=getkey()).states
    assert np.unique(np.asarray(starts)[:, 0, 0, 0]).size == 6


@pytest.mark.slow
def test_the_likelihood_counts_every_row(getkey):
    batch = Batch.of(recordings())
    model = declare().init(batch, key=getkey())
    paths = simulate(model, EulerMaruyama(), batch, samples=2, key=getkey())
    found = log_likelihoods(model, paths, batch)
    one = model.observation.log_prob
    by_hand = jax.vmap(lambda h: one(batch.values, batch.observed, h))(paths.states).sum(-1)
    np.testing.assert_allclose(found, by_hand, rtol=1e-5)
    decoded = model.observation.mean(paths.states)
    assert decoded.shape == (2, 4, 9, 3)


def test_a_decoder_cannot_be_filtered(getkey):
    batch = Batch.of(recordings())
    model = declare().init(batch, key=getkey())
    with pytest.raises(ValueError, match="linear in the states"):
        filtered(model, EulerMaruyama(), batch, samples=1, key=getkey())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"observed": None}, "`observed` must list"),
        ({"observed": {"a": {"z0": 1.0}}}, "`observed` must list"),
        ({"start": "uncertain"}, "the start is encoded"),
        ({"positive": ("z0",)}, "not for latent"),
    ],
)
def test_what_does_not_go_together(changes, message):
    with pytest.raises(ValueError, match=message):
        declare(**changes)


@pytest.mark.parametrize(
    "wrong", [{"context": 0}, {"encoder": (0,)}, {"activation": "cube"}, {"spread": -1.0}]
)
def test_what_a_latent_cannot_be(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        hs.Latent(**wrong)
