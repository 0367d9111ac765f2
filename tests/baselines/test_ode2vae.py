"""Second-order latent ODEs: the density along the flow, and every piece of the bound, by numpy."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm
from scipy.special import expit
from scipy.stats import multivariate_normal, norm

import hybridsde as hs
from helpers import oscillations
from hybridsde._parameters import Fixed
from hybridsde.baselines import ODE2VAE, Climatology
from hybridsde.baselines.ode2vae import log_normal, value_and_trace
from hybridsde.data import Batch
from hybridsde.fit import Training
from hybridsde.forecast import evaluate
from hybridsde.model import MLP
from hybridsde.model.network import Linear

pytestmark = pytest.mark.slow

NAMES = ("x", "v")
LENGTHS = (8, 5, 3)
CONTEXT, TOTAL, RATE = 3, 7, 1.7


def ragged():
    """Irregular times, two missing values, and series that need padding."""
    rng = np.random.default_rng(5)
    times = [np.cumsum(rng.uniform(0.05, 0.15, n)) for n in LENGTHS]
    values = [rng.normal([1.0, -2.0], [1.0, 3.0], size=(len(t), 2)) for t in times]
    seen = [np.ones((len(t), 2), bool) for t in times]
    seen[0][1, 0] = seen[0][4, 1] = False
    return hs.Trajectories.from_arrays(times, values, observed=seen, states=NAMES)


@pytest.fixture(scope="module")
def model():
    """Weights of which none is zero, and wide distributions of them."""
    declared = ODE2VAE(
        observed=NAMES,
        positions=2,
        hidden=(4,),
        latent=hs.Latent(CONTEXT, (3,), (5,), spread=0.4),
        initial_sd=0.1,
        prior_sd=0.8,
        samples=2,
    )
    found = declared.init(Batch.of(ragged()), key=jr.key(1))
    found = replace(found, rate=Fixed(jnp.asarray(RATE)))
    leaves, tree = jax.tree.flatten(found)
    free = jax.tree.leaves(hs.trainable(found))
    keys = jr.split(jr.key(2), len(leaves))
    moved = [
        leaf + 0.2 * jr.normal(key, leaf.shape) if learned else leaf
        for leaf, learned, key in zip(leaves, free, keys, strict=True)
    ]
    return jax.tree.unflatten(tree, moved)


@eqx.filter_jit
def loss_of(model, batch, key):
    return model.loss(batch, TOTAL, key=key)


def arrays(layers):
    return [(np.asarray(a.weight, float), np.asarray(a.bias, float)) for a in layers]


def network(layers, x):
    """Softplus between affine layers."""
    for depth, (weight, bias) in enumerate(arrays(layers)):
        x = (np.logaddexp(0, x) if depth else x) @ weight + bias
    return x


class Oracle:
    """The bound of one series, written out with numpy in double precision."""

    def __init__(self, model, data, n):
        self.model, rows = model, data.lengths[n]
        seen, values = data.observed, data.values
        self.mean = np.array([values[..., c][seen[..., c]].mean() for c in range(2)])
        self.sd = np.array([values[..., c][seen[..., c]].std() for c in range(2)])
        self.t, self.y, self.seen = data.times[n, :rows], values[n, :rows], seen[n, :rows]

    def encode(self, k):
        """Mean and spread of (s, v) from the rows that follow k."""
        standard = np.where(self.seen, (self.y - self.mean) / self.sd, 0.0)
        parts = []
        for part, rows in ((self.model.position, 1), (self.model.velocity, CONTEXT)):
            code = network(part.encoder.layers, standard[k : k + rows].reshape(-1))
            parts.append((code[:2], 0.4 * np.exp(code[2:])))
        (s, s_sd), (v, v_sd) = parts
        return np.concatenate([s, v]), np.concatenate([s_sd, v_sd])

    def flow(self, field, z, log_q):
        """(s, v, ln q) at every row; the trace by the derivative of softplus."""
        (first, bias), (second, shift) = arrays(field.layers)

        def change(_, phase):
            z, before = phase[:4], phase[:4] @ first + bias
            acceleration = np.logaddexp(0, before) @ second + shift
            slopes = first[2:] @ np.diag(expit(before)) @ second
            return RATE * np.concatenate([z[2:], acceleration, [-np.trace(slopes)]])

        start = np.concatenate([z, [log_q]])
        span = (self.t[0], self.t[-1])
        return solve_ivp(change, span, start, t_eval=self.t, rtol=1e-10, atol=1e-12).y.T

    def pieces(self, field, epsilon):
        """Log-likelihood, price of the path, and distance to the encoder, for one draw."""
        mean, sd = self.encode(0)
        z = mean + sd * epsilon
        path = self.flow(field, z, norm.logpdf(z, mean, sd).sum())
        decoded = self.mean + self.sd * network(self.model.observation.decoder.layers, path[:, :2])
        noise = np.asarray(self.model.observation.sd.value, float)
        logs = norm.logpdf(self.y, decoded, noise)[self.seen].sum()
        price = (path[:, 4] - norm.logpdf(path[:, :4]).sum(1)).sum()
        distance = 0.0
        for k in range(len(self.t) - CONTEXT + 1):
            distance += path[k, 4] - norm.logpdf(path[k, :4], *self.encode(k)).sum()
        return logs, price, distance


def expected_pieces(model, data, key):
    """Means over draws and series, with the random numbers that the model uses."""
    found = []
    for sample_key in jr.split(key, model.samples):
        weight_key, start_key = jr.split(sample_key)
        field = model.network.sample(key=weight_key)
        for n, series_key in enumerate(jr.split(start_key, len(data))):
            epsilon = np.asarray(jr.normal(series_key, (4,)), float)
            found.append(Oracle(model, data, n).pieces(field, epsilon))
    return np.mean(found, 0)


def test_value_and_trace_are_those_of_the_jacobian(getkey):
    weight = jr.normal(getkey(), (4, 4))

    def function(x):
        return jnp.tanh(x @ weight) * x[::-1]

    x = jr.normal(getkey(), (4,))
    value, trace = value_and_trace(function, x)
    np.testing.assert_allclose(value, function(x), rtol=1e-6)
    np.testing.assert_allclose(trace, np.trace(jax.jacobian(function)(x)), rtol=1e-5)


def test_the_standard_normal_density():
    x = np.array([0.3, -1.2, 2.0])
    np.testing.assert_allclose(log_normal(jnp.asarray(x)), norm.logpdf(x).sum(), rtol=1e-6)


@pytest.mark.parametrize("tolerance", [None, 1e-6], ids=["one step", "adaptive"])
def test_a_linear_flow_carries_a_gaussian_exactly(model, tolerance):
    """dv/dt = S s + V v: z(t) = M z₀ with M = e^{At}, q is N(M m, M Σ Mᵀ), ln q falls by t tr V."""
    rng = np.random.default_rng(0)
    weight = rng.normal(size=(4, 2))
    field = MLP((Linear(jnp.asarray(weight), jnp.zeros(2)),), jnp.tanh)
    mean, sd, z = rng.normal(size=4), rng.uniform(0.2, 1.5, 4), rng.normal(size=4)
    times = np.cumsum([0.5, 0.05, 0.1, 0.02, 0.08, 0.1])
    start = norm.logpdf(z, mean, sd).sum()
    path = replace(model, tolerance=tolerance).flow(
        field, jnp.asarray(z), jnp.asarray(start), jnp.asarray(times)
    )
    a = RATE * np.block([[np.zeros((2, 2)), np.eye(2)], [weight.T]])
    for k, t in enumerate(times - times[0]):
        m = expm(a * t)
        np.testing.assert_allclose(np.concatenate([path.s[k], path.v[k]]), m @ z, atol=2e-5)
        exact = multivariate_normal.logpdf(m @ z, m @ mean, m @ np.diag(sd**2) @ m.T)
        np.testing.assert_allclose(path.log_q[k], exact, atol=5e-5)
        np.testing.assert_allclose(exact, start - t * np.trace(a), atol=1e-8)


def test_the_bound_is_the_one_written_out(model, getkey):
    """Reconstruction, price of the path and of the weights; padding and gaps do not count."""
    data, key = ragged(), getkey()
    logs, price, _ = expected_pieces(model, data, key)
    q, prior_sd, kl = model.network.posterior, 0.8, 0.0
    pairs = zip(jax.tree.leaves(q.mean), jax.tree.leaves(q.log_sd), strict=True)
    for mean, log_sd in pairs:
        m, s = np.asarray(mean, float), np.exp(np.asarray(log_sd, float))
        kl += (np.log(prior_sd / s) + (s**2 + m**2) / (2 * prior_sd**2) - 0.5).sum()
    terms = loss_of(model, Batch.of(data), key)
    np.testing.assert_allclose(terms.log_likelihood, logs, rtol=1e-4)
    np.testing.assert_allclose(terms.path_kl, price, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(terms.weight_kl, kl, rtol=1e-4)
    np.testing.assert_allclose(terms.complexity, price + kl / TOTAL, rtol=1e-3)
    np.testing.assert_allclose(terms.loss, price + kl / TOTAL - logs, rtol=1e-4)


def test_the_penalty_is_the_distance_to_the_encoder(model, getkey):
    """γ Σ_k ln q(z_k | W) − ln q_enc(z_k | y_k …), over rows with a whole context after them."""
    data, key = ragged(), getkey()
    logs, price, distance = expected_pieces(model, data, key)
    assert abs(distance) > 0.1 * abs(price)
    terms = loss_of(replace(model, penalty=1.5), Batch.of(data), key)
    np.testing.assert_allclose(terms.path_kl, price + 1.5 * distance, rtol=1e-3)
    np.testing.assert_allclose(terms.log_likelihood, logs, rtol=1e-4)


def test_a_series_without_later_contexts_pays_no_penalty(model, getkey):
    """At its first row the flow is what the encoder says, so the distance is zero."""
    batch, key = Batch.of(ragged()).take(jnp.array([2, 2, 2])), getkey()
    assert batch.recorded.sum(1).tolist() == [CONTEXT] * 3
    with_penalty, without = (
        loss_of(replace(model, penalty=penalty), batch, key).loss for penalty in (1.5, 0.0)
    )
    np.testing.assert_allclose(with_penalty, without, rtol=1e-5)


def test_padding_does_not_count(model, getkey):
    """Other numbers on rows that pad a series change nothing."""
    batch, key = Batch.of(ragged()), getkey()
    penalised = replace(model, penalty=1.5)
    padded = replace(batch, values=jnp.where(batch.recorded[..., None], batch.values, 99.0))
    assert not np.array_equal(padded.values, batch.values)
    found, other = (loss_of(penalised, one, key).loss for one in (batch, padded))
    np.testing.assert_allclose(found, other, rtol=1e-6)


def test_forecasts_depend_on_the_given_rows_alone(model, getkey):
    batch, key = Batch.of(ragged()), getkey()
    predict = eqx.filter_jit(lambda batch: model.predict(batch, 4, key=key).means)
    found = predict(batch)
    assert found.shape == (4, 3, 8, 2)
    later = replace(batch, values=batch.values.at[:, CONTEXT:].set(99.0))
    np.testing.assert_array_equal(found, predict(later))
    earlier = replace(batch, values=batch.values.at[:, CONTEXT - 1].set(9.0))
    assert not np.allclose(found, predict(earlier))
    assert np.ptp(found, axis=0).min() > 0  # every draw has its own weights and start


def test_position_is_encoded_from_the_first_row_alone(model):
    data = ragged()
    values, seen = jnp.asarray(data.values[0]), jnp.asarray(data.observed[0])
    mean, sd = model.encode(values, seen)
    other_mean, other_sd = model.encode(values.at[2].add(1.0), seen)
    np.testing.assert_array_equal(mean[:2], other_mean[:2])
    np.testing.assert_array_equal(sd[:2], other_sd[:2])
    assert (np.abs(mean[2:] - other_mean[2:]) > 1e-4).all()


@pytest.mark.long
def test_a_damped_oscillator_is_learned():
    training = Training(epochs=200, batch_size=16, learning_rate=1e-2)
    train, test = Batch.of(oscillations(16, 20)), Batch.of(oscillations(8, 20, seed=1))
    latent = hs.Latent(CONTEXT, (16,), (16,), spread=0.1)
    declared = ODE2VAE(observed=NAMES, hidden=(16,), latent=latent)
    fitted = declared.inference(train, training=training).fit(train, key=jr.key(0))
    trivial = Climatology(observed=NAMES, given=declared.context).init(train)
    found, yardstick = (
        evaluate(model, test, 20, key=jr.key(1)) for model in (fitted.model, trivial)
    )
    assert found["mse"][-1] < 0.1 * yardstick["mse"][-1]
    assert found["nll"][-1] < yardstick["nll"][-1] - 0.5
    assert not fitted.diverged
