"""Neural ODEs: the likelihood against scipy, and a system that can be learned."""

from dataclasses import replace

import jax
import jax.random as jr
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.stats import norm

import hybridsde as hs
from helpers import oscillations
from hybridsde.baselines import Climatology, NeuralODE
from hybridsde.data import Batch
from hybridsde.fit import Training
from hybridsde.forecast import evaluate

pytestmark = pytest.mark.slow

NAMES = ("x", "v")


def ragged():
    """Irregular times, one missing value, and a series that needs padding."""
    rng = np.random.default_rng(5)
    times = [np.cumsum(rng.uniform(0.05, 0.15, n)) for n in (8, 5)]
    values = [rng.normal([1.0, -2.0], [1.0, 3.0], size=(len(t), 2)) for t in times]
    seen = [np.ones((len(t), 2), bool) for t in times]
    seen[0][1, 0] = seen[0][4, 1] = False
    return hs.Trajectories.from_arrays(times, values, observed=seen, states=NAMES)


def network(layers, x):
    """Softplus between affine layers."""
    for depth, layer in enumerate(layers):
        x = np.logaddexp(0, x) if depth else x
        x = x @ np.asarray(layer.weight, float) + np.asarray(layer.bias, float)
    return x


def paths_by_scipy(model, data):
    """Decoded means at the recorded rows of every series, from the equations alone."""
    seen, values = data.observed, data.values
    mean = np.array([values[..., c][seen[..., c]].mean() for c in range(2)])
    sd = np.array([values[..., c][seen[..., c]].std() for c in range(2)])
    found = []
    for y, mask, t, rows in zip(values, seen, data.times, data.lengths, strict=True):
        first = np.where(mask, (y - mean) / sd, 0.0)[:2].reshape(-1)
        h = solve_ivp(
            lambda _, h: float(model.rate.value) * network(model.network.layers, h),
            (t[0], t[rows - 1]),
            network(model.start.encoder.layers, first),
            t_eval=t[:rows],
            rtol=1e-10,
            atol=1e-12,
        ).y.T
        found.append(mean + sd * network(model.observation.decoder.layers, h))
    return found


@pytest.fixture(scope="module")
def tiny():
    """Weights of which none is zero."""
    declared = NeuralODE(observed=NAMES, states=2, hidden=(4,), latent=hs.Latent(2, (3,), (5,)))
    model = declared.init(Batch.of(ragged()), key=jr.key(1))
    leaves, tree = jax.tree.flatten(model)
    free = jax.tree.leaves(hs.trainable(model))
    keys = jr.split(jr.key(2), len(leaves))
    moved = [
        leaf + 0.2 * jr.normal(key, leaf.shape) if learned else leaf
        for leaf, learned, key in zip(leaves, free, keys, strict=True)
    ]
    return jax.tree.unflatten(tree, moved)


@pytest.mark.parametrize("tolerance", [None, 1e-6], ids=["one step", "adaptive"])
def test_the_loss_is_minus_the_mean_log_likelihood(tiny, tolerance):
    """By scipy's solver; padding and missing values do not count."""
    data = ragged()
    model = replace(tiny, tolerance=tolerance)
    sd = np.asarray(model.observation.sd.value, float)
    logs = []
    for n, mean in enumerate(paths_by_scipy(model, data)):
        rows = data.lengths[n]
        density = norm.logpdf(data.values[n, :rows], mean, sd)
        logs.append(density[data.observed[n, :rows]].sum())
    terms = model.loss(Batch.of(data), 2, key=jr.key(0))
    np.testing.assert_allclose(terms.loss, -np.mean(logs), rtol=1e-4)
    np.testing.assert_allclose(terms.log_likelihood, np.mean(logs), rtol=1e-4)
    assert (terms.path_kl, terms.weight_kl, terms.complexity) == (0, 0, 0)


def test_forecasts_are_one_path_that_depends_on_the_given_rows_alone(tiny):
    data = ragged()
    batch = Batch.of(data)
    found = tiny.predict(batch, 3, key=jr.key(0))
    assert found.means.shape == (3, 2, 8, 2)
    np.testing.assert_array_equal(found.means[0], found.means[2])
    for n, mean in enumerate(paths_by_scipy(tiny, data)):
        np.testing.assert_allclose(found.means[0, n, : len(mean)], mean, rtol=1e-3, atol=1e-4)
    assert np.isfinite(found.means).all()  # on padding too
    other = replace(batch, values=batch.values.at[:, 2:].set(99.0))
    np.testing.assert_array_equal(found.means, tiny.predict(other, 3, key=jr.key(9)).means)


def test_a_damped_oscillator_is_learned():
    training = Training(epochs=150, batch_size=16, learning_rate=2e-2)
    train, test = Batch.of(oscillations(16)), Batch.of(oscillations(8, seed=1))
    declared = NeuralODE(observed=NAMES, hidden=(16,), latent=hs.Latent(3, (16,), (16,)))
    fitted = declared.inference(train, training=training).fit(train, key=jr.key(0))
    trivial = Climatology(observed=NAMES, given=declared.context).init(train)
    found, yardstick = (
        evaluate(model, test, 20, key=jr.key(1)) for model in (fitted.model, trivial)
    )
    assert found["mse"][-1] < 0.05 * yardstick["mse"][-1]
    assert found["nll"][-1] < yardstick["nll"][-1] - 1.0
    assert not fitted.diverged
