"""Temporal sigmoid belief networks: densities, gradients by enumeration, and a hidden chain."""

import itertools
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy.special import expit
from scipy.stats import bernoulli, norm

import hybridsde as hs
from helpers import assert_mean_close
from hybridsde.baselines import DTSBN
from hybridsde.baselines.dtsbn import Units
from hybridsde.data import Batch
from hybridsde.fit import Training
from hybridsde.forecast import evaluate

pytestmark = pytest.mark.slow

MAPS = ("top", "middle", "visible", "log_sd", "see_middle", "see_top")
RECOGNITION = MAPS[4:]
LEVELS, STAY, NOISE = np.array([2.0, 5.0]), 0.9, 0.3


def batch_of(rows, copies=1):
    """The same series many times."""
    values = np.asarray(rows, float).reshape(len(rows), -1)
    names = [f"y{c}" for c in range(values.shape[1])]
    times = np.arange(len(values), dtype=float)
    data = hs.Trajectories.from_arrays([times] * copies, [values] * copies, states=names)
    return Batch.of(data), names


def random_weights(model, scale, seed=0):
    """Weights and biases of which none is zero."""
    rng = np.random.default_rng(seed)
    flat, back = ravel_pytree([getattr(model, name) for name in MAPS])
    maps = back(jnp.asarray(scale * rng.normal(size=flat.shape), flat.dtype))
    return replace(model, **dict(zip(MAPS, maps, strict=True)))


def numbers(model):
    """All weights as numpy arrays in double precision."""
    found = {}
    for name in MAPS:
        layer = getattr(model, name)
        found[name] = np.asarray(layer.weight, float), np.asarray(layer.bias, float)
    return found


def affine(weights, name, *parts):
    weight, bias = weights[name]
    return np.concatenate(parts) @ weight + bias


def log_p(weights, past, now):
    """Ln p(v, h, z | past), as in the equations."""
    (v0, h0, z0), (v, h, z) = past, now
    log_sd = np.clip(affine(weights, "log_sd", h, v0), -5, 2)
    return (
        bernoulli.logpmf(z, expit(affine(weights, "top", z0, h0))).sum()
        + bernoulli.logpmf(h, expit(affine(weights, "middle", z, h0, v0))).sum()
        + norm.logpdf(v, affine(weights, "visible", h, v0), np.exp(log_sd)).sum()
    )


def log_q(weights, past, now):
    """Ln q(h, z | past, v)."""
    (v0, h0, z0), (v, h, z) = past, now
    return (
        bernoulli.logpmf(h, expit(affine(weights, "see_middle", v, h0, v0))).sum()
        + bernoulli.logpmf(z, expit(affine(weights, "see_top", h, z0, h0))).sum()
    )


def histories(weights, v):
    """All binary states of one middle and one top unit: ℓ_t and ln q_t of each, per row."""
    bound, logs = [], []
    for bits in itertools.product([0.0, 1.0], repeat=2 * len(v)):
        past = np.zeros(v.shape[1]), np.zeros(1), np.zeros(1)
        rows = []
        for row, (h, z) in zip(v, np.reshape(bits, (-1, 2)), strict=True):
            now = row, np.array([h]), np.array([z])
            q = log_q(weights, past, now)
            rows.append((log_p(weights, past, now) - q, q))
            past = now
        bound.append([one for one, _ in rows])
        logs.append([one for _, one in rows])
    return np.array(bound), np.array(logs)


def exact_bound(weights, v):
    bound, logs = histories(weights, v)
    return np.exp(logs.sum(1)) @ bound.sum(1)


def slopes(function, weights, small=1e-5):
    """Central differences with respect to every number."""
    found = {}
    for name, parts in weights.items():
        found[name] = []
        for part in parts:
            slope = np.zeros((part.size, *np.shape(function(weights))))
            for index in range(part.size):
                kept = part.flat[index]
                part.flat[index] = kept + small
                up = function(weights)
                part.flat[index] = kept - small
                slope[index] = (up - function(weights)) / (2 * small)
                part.flat[index] = kept
            found[name].append(slope)
    return {name: np.concatenate(parts) for name, parts in found.items()}


@pytest.fixture(scope="module")
def wide():
    """Two observations, three middle and two top units."""
    batch, names = batch_of(np.random.default_rng(1).normal(size=(6, 2)))
    model = DTSBN(observed=names, middle=3, top=2, baseline=4).init(batch, key=jr.key(0))
    return random_weights(model, 0.7)


@pytest.fixture(scope="module")
def tiny():
    """One unit of each kind, two rows: all states can be listed."""
    batch, names = batch_of([3.0, 7.0], copies=500)
    model = DTSBN(observed=names, middle=1, top=1, baseline=4).init(batch, key=jr.key(0))
    return random_weights(model, 0.4, seed=86), batch


def some_units(seed, middle=3, top=2):
    rng = np.random.default_rng(seed)
    bits = [rng.integers(0, 2, size).astype(float) for size in (middle, top)]
    return rng.normal(size=2), *bits


def test_the_generative_density_is_the_one_written_out(wide):
    weights = numbers(wide)
    for seed in range(3):
        past, now = some_units(seed), some_units(seed + 10)
        given = (Units(*(jnp.asarray(part) for part in units)) for units in (past, now))
        np.testing.assert_allclose(wide.density(*given), log_p(weights, past, now), rtol=1e-4)


def test_the_logarithm_of_the_noise_is_kept_in_bounds(wide):
    past, now = some_units(0), some_units(1)
    for bias in (-50.0, 50.0):
        model = replace(wide, log_sd=replace(wide.log_sd, bias=jnp.full(2, bias)))
        given = (Units(*(jnp.asarray(part) for part in units)) for units in (past, now))
        expected = log_p(numbers(model), past, now)
        np.testing.assert_allclose(model.density(*given), expected, rtol=1e-4)


def test_recognition_draws_what_it_says(wide, getkey):
    """Ln q of the drawn units, and their frequencies."""
    past, (v, *_) = some_units(0), some_units(1)
    weights = numbers(wide)
    keys = jr.split(getkey(), 4000)
    given = Units(*(jnp.asarray(part) for part in past))
    units, logs = jax.vmap(lambda key: wide.recognise(given, jnp.asarray(v), key=key))(keys)
    h, z = np.asarray(units.h, float), np.asarray(units.z, float)
    assert set(np.unique(h)) == set(np.unique(z)) == {0.0, 1.0}
    np.testing.assert_array_equal(units.v, np.broadcast_to(v.astype(np.float32), (4000, 2)))
    for n in range(5):
        np.testing.assert_allclose(logs[n], log_q(weights, past, (v, h[n], z[n])), rtol=1e-4)
    assert_mean_close(h, expit(affine(weights, "see_middle", v, past[1], past[0])))
    chances = [expit(affine(weights, "see_top", one, past[2], past[1])) for one in h]
    assert_mean_close(z - np.array(chances), np.zeros(2))


def test_generation_draws_what_the_density_says(tiny, getkey):
    """Mean and square of the second row given the first, over all states."""
    model, batch = random_weights(tiny[0], 1.5, seed=2), tiny[1]
    weights, v = numbers(model), np.array([-1.0])
    nothing = np.zeros(1), np.zeros(1), np.zeros(1)
    mean = square = 0.0
    for h0, z0, h, z in itertools.product([0.0, 1.0], repeat=4):
        first = v, np.array([h0]), np.array([z0])
        chance = np.exp(log_q(weights, nothing, first))
        chance *= bernoulli.pmf(z, expit(affine(weights, "top", *first[:0:-1])))[0]
        top = affine(weights, "middle", np.array([z]), first[1], v)
        chance *= bernoulli.pmf(h, expit(top))[0]
        level = affine(weights, "visible", np.array([h]), v)[0]
        sd = np.exp(np.clip(affine(weights, "log_sd", np.array([h]), v)[0], -5, 2))
        mean, square = mean + chance * level, square + chance * (level**2 + sd**2)
    one = batch.take(jnp.arange(1))
    found = eqx.filter_jit(lambda key: model.predict(one, 20_000, key=key))(getkey())
    np.testing.assert_allclose(found.means[:, 0, 0], 3.0, rtol=1e-5)  # as it was given
    levels = (np.asarray(found.means, float)[:, 0, 1, 0] - 5.0) / 2.0
    noise = np.asarray(found.sd, float)[:, 0, 1, 0] / 2.0
    assert_mean_close(levels, mean)
    assert_mean_close(levels**2 + noise**2, square)


def test_later_rows_are_drawn_from_noisy_ones(tiny, getkey):
    """The third row follows a draw of the second, noise included, not its mean."""
    model, _ = tiny
    steady = replace(
        model.visible, weight=jnp.array([[0.0], [1.0]]), bias=jnp.zeros(1)
    )  # a random walk
    model = replace(model, visible=steady, log_sd=jax.tree.map(jnp.zeros_like, model.log_sd))
    batch, _ = batch_of([5.0, 5.0, 5.0, 5.0])
    found = eqx.filter_jit(lambda key: model.predict(batch, 20_000, key=key))(getkey())
    z = (np.asarray(found.means, float)[:, 0, :, 0] - 5.0) / 2.0
    assert_mean_close(z[:, 1:] ** 2, [0.0, 1.0, 2.0])


def test_returns_are_discounted_sums_of_what_follows(wide):
    bound = np.random.default_rng(0).normal(size=(3, 5))
    for discount in (0.0, 0.6, 1.0):
        found = replace(wide, discount=discount).returns(jnp.asarray(bound))
        powers = discount ** np.maximum(np.arange(5) - np.arange(5)[:, None], 0.0)
        expected = bound @ np.triu(powers).T
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@eqx.filter_jit
def values_and_gradients(model, batch, keys):
    def one(key):
        def loss(maps):
            changed = replace(model, **dict(zip(MAPS, maps, strict=True)))
            return changed.loss(batch, 1, key=key).loss

        return jax.value_and_grad(loss)([getattr(model, name) for name in MAPS])

    values, gradients = jax.lax.map(one, keys)
    flat = [[layer.weight.reshape(len(keys), -1), layer.bias] for layer in gradients]
    return values, dict(zip(MAPS, [jnp.concatenate(parts, 1) for parts in flat], strict=True))


def test_the_mean_gradient_is_that_of_the_bound(tiny, getkey):
    """With λ = 1, over all 16 states of the units, for every weight of both networks.

    The signal spreads by less than one, so that it is not rescaled, and the centre is a mean over
    a thousand rows. The value of the loss is minus the bound, in raw units.
    """
    model, batch = replace(tiny[0], discount=1.0), tiny[1]
    weights, v = numbers(model), np.array([[-1.0], [1.0]])  # 3 and 7, standardised
    bound, logs = histories(weights, v)
    chances = np.exp(logs.sum(1))
    np.testing.assert_allclose(chances.sum(), 1.0, rtol=1e-10)
    baseline = np.asarray(jax.vmap(model.baseline)(jnp.asarray(v)), float)[:, 0]
    left = bound[:, ::-1].cumsum(1)[:, ::-1] - baseline
    assert np.sqrt(chances @ ((left - chances @ left.mean(1)) ** 2).mean(1)) < 0.9
    values, found = values_and_gradients(model, batch, jr.split(getkey(), 200))
    exact = exact_bound(weights, v)
    assert_mean_close(values, -(exact - 2 * np.log(2.0)))  # two rows, of spread two
    expected = slopes(lambda w: exact_bound(w, v), weights)
    for name in MAPS:
        assert np.abs(expected[name]).max() > 0.05
        assert_mean_close(found[name], -expected[name])


def test_without_discount_the_gradient_leaves_out_later_rows(tiny, getkey):
    """With λ = 0 the recognition network follows E Σ_t ℓ_t ∇ ln q_t."""
    model, batch = tiny
    weights, v = numbers(model), np.array([[-1.0], [1.0]])
    bound, logs = histories(weights, v)
    chances = np.exp(logs.sum(1))
    expected = slopes(lambda w: histories(w, v)[1], weights)
    _, found = values_and_gradients(model, batch, jr.split(getkey(), 200))
    whole = slopes(lambda w: exact_bound(w, v), weights)
    for name in RECOGNITION:
        signal = np.einsum("s,st,pst->p", chances, bound, expected[name])
        assert_mean_close(found[name], -signal)
        assert np.abs(signal - whole[name]).max() > 0.02


def test_a_wide_signal_is_centred_and_rescaled(wide, getkey):
    """(R − C − c)/max(1, s) weighs ∇ ln q, exactly, where s is above one; padding is left out."""
    rng = np.random.default_rng(4)
    times = [np.arange(n, dtype=float) for n in (6, 4, 6)]
    rows = [0.5 * rng.normal(size=(len(t), 2)) for t in times]
    batch = Batch.of(hs.Trajectories.from_arrays(times, rows, states=["y0", "y1"]))
    loud = jax.tree.map(lambda leaf: 5 * leaf, wide.baseline)
    model, key = random_weights(replace(wide, discount=0.5, baseline=loud), 0.2), getkey()
    v = model._standard(batch.values)
    keys = jr.split(key, 3)

    def signals(maps):
        changed = replace(model, **dict(zip(RECOGNITION, maps, strict=True)))
        return jax.vmap(lambda v, key: changed.signals(v, key=key))(v, keys)

    maps = [getattr(model, name) for name in RECOGNITION]
    bound, _ = jax.jit(signals)(maps)
    recorded = np.asarray(batch.recorded)
    bound = np.where(recorded, bound, 0.0)
    returns = np.zeros_like(bound)
    for t in reversed(range(6)):
        returns[:, t] = bound[:, t] + 0.5 * (returns[:, t + 1] if t < 5 else 0.0)
    left = returns - np.asarray(jax.vmap(jax.vmap(model.baseline))(v))[..., 0]
    spread = left[recorded].std()
    assert spread > 2
    assert (returns - left).std() > 0.5
    weight = np.where(recorded, (left - left[recorded].mean()) / spread, 0.0)

    def ascent(maps):
        return jnp.sum(jnp.asarray(weight) * signals(maps)[1]) / 3

    _, found = values_and_gradients(model, batch, key[None])
    expected = jax.jit(jax.grad(ascent))(maps)
    for name, layer in zip(RECOGNITION, expected, strict=True):
        flat = np.concatenate([layer.weight.reshape(-1), layer.bias])
        np.testing.assert_allclose(found[name][0], -flat, rtol=1e-3, atol=1e-4)


def test_padding_does_not_count(wide, getkey):
    times = [np.arange(n, dtype=float) for n in (6, 4, 6)]
    rows = [np.random.default_rng(n).normal(size=(len(t), 2)) for n, t in enumerate(times)]
    batch = Batch.of(hs.Trajectories.from_arrays(times, rows, states=["y0", "y1"]))
    other = replace(batch, values=jnp.where(batch.recorded[..., None], batch.values, 9.0))
    assert not np.array_equal(batch.values, other.values)
    key = getkey()[None]
    for one, two in zip(
        jax.tree.leaves(values_and_gradients(wide, batch, key)),
        jax.tree.leaves(values_and_gradients(wide, other, key)),
        strict=True,
    ):
        np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-6)


def chain(series, rows=30, seed=0):
    """A hidden state that stays with probability 0.9, seen as one of two levels with noise."""
    rng = np.random.default_rng(seed)
    flips = rng.random((series, rows)) > STAY
    flips[:, 0] = rng.random(series) < 0.5
    states = flips.cumsum(1) % 2
    values = LEVELS[states] + NOISE * rng.normal(size=states.shape)
    times = [np.arange(rows, dtype=float)] * series
    return hs.Trajectories.from_arrays(times, list(values[..., None]), states=["y"])


def forward_filter(values):
    """Exact ln p(y_t | past) and E[y_t | past] of a series."""
    stay = np.array([[STAY, 1 - STAY], [1 - STAY, STAY]])
    prior, logs, means = np.full(2, 0.5), [], []
    for y in values:
        joint = prior * norm.pdf(y, LEVELS, NOISE)
        logs.append(np.log(joint.sum()))
        means.append(prior @ LEVELS)
        prior = joint / joint.sum() @ stay
    return np.array(logs), np.array(means)


@pytest.mark.long
def test_a_hidden_chain_is_learned(getkey):
    """The bound comes near the exact likelihood, one-step forecasts near the exact filter.

    Some fits stay where the units explain nothing; the one with the best training loss is taken.
    """
    train, test = chain(24), chain(40, seed=1)
    training = Training(epochs=300, batch_size=24, learning_rate=0.1)
    declared = DTSBN(observed=["y"], middle=2, top=2, baseline=8)
    inference = declared.inference(Batch.of(train), training=training)
    fitted = inference.fit_many(Batch.of(train), keys=jr.split(jr.key(0), 4))
    best = fitted.history["loss"][-1].argmin()
    model = jax.tree.map(lambda leaf: leaf[best], fitted.model)
    batch, values = Batch.of(test), test.values[..., 0]
    filtered = [forward_filter(series) for series in values]
    logs, means = np.array([one for one, _ in filtered]), np.array([one for _, one in filtered])
    independent = norm.logpdf(values, train.values.mean(), train.values.std())
    loss = eqx.filter_jit(lambda key: model.loss(batch, 40, key=key).loss)
    bound = -np.mean([loss(key) for key in jr.split(getkey(), 5)]) / values.shape[1]
    assert logs.mean() - 0.05 < bound < logs.mean() + 0.02  # above by chance at most
    assert bound > independent.mean() + 1.0
    exact = ((means - values)[:, 1:] ** 2).mean()
    found = evaluate(model, batch.windows(2, 1), 100, key=getkey())
    assert found["mse"][-1] < 1.05 * exact < 0.5 * values.var()
    assert found["nll"][-1] < -logs[:, 1:].mean() + 0.05
