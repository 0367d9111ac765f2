"""Algorithm 1 of Haussmann et al. 2021, written down a second time from the paper alone.

Nothing between the two lines below knows the library. Both get the same random numbers, in double
precision, and must agree in every term of the loss and in the gradient of every number.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import hybridsde as hs
from helpers import wiggles
from hybridsde._random import path_normals
from hybridsde.data import Batch
from hybridsde.model.bayesian import _normal_like

# ------------------------------------------------------------------------------------------------


def drift_local(phi, h, epsilon):
    """Activations are drawn instead of weights, anew at every step (Kingma et al. 2015)."""
    for depth, ((mean, log_sd), noise) in enumerate(zip(phi, epsilon, strict=True)):
        x = h if depth == 0 else jnp.log(1 + jnp.exp(h))
        variance = x**2 @ jnp.exp(log_sd[0]) ** 2 + jnp.exp(log_sd[1]) ** 2
        h = x @ mean[0] + mean[1] + jnp.sqrt(variance) * noise
    return h


def drift_held(phi, h, epsilon):
    """θ_f ~ p_φ(θ_f), one for a path."""
    for depth, ((mean, log_sd), noise) in enumerate(zip(phi, epsilon, strict=True)):
        x = h if depth == 0 else jnp.log(1 + jnp.exp(h))
        weight, bias = (m + jnp.exp(s) * e for m, s, e in zip(mean, log_sd, noise, strict=True))
        h = x @ weight + bias
    return h


def kl_to_standard_normal(phi):
    """KL(p_φ ‖ N(0, 1))."""
    total = 0.0
    for means, log_sds in phi:
        for mean, log_sd in zip(means, log_sds, strict=True):
            total += jnp.sum(0.5 * (jnp.exp(2 * log_sd) + mean**2 - 1) - log_sd)
    return total


def algorithm_1(phi, drift, known, gamma, g, sigma, data, epsilon, wiener, trajectories, delta):
    """(mll, kl of paths, kl of weights, E-PAC-Bayes loss, E-Bayes loss) of a mini-batch.

    `data` are pairs of times and observations; `epsilon[n][s][k]` and `wiener[n][s][k]` standard
    normals. The batch stands for all N trajectories, so that its sum over n counts N/B times.
    """
    mll, path_kl, evidence = 0.0, 0.0, 0.0
    share = 1 / len(data)
    for n, (t, y) in enumerate(data):
        samples, likelihoods = len(wiener[n]), []
        for s in range(samples):
            h, log_p = y[0], 0.0
            for k in range(1, len(t)):
                f, r = drift(phi, h, epsilon[n][s][k - 1]), known(h)
                dt = t[k] - t[k - 1]
                h_next = h + (f + gamma * r) * dt + g @ (jnp.sqrt(dt) * wiener[n][s][k - 1])
                path_kl += f @ jnp.linalg.inv(g @ g.T) @ f * dt / (2 * samples)
                h = h_next
                log_p += jnp.sum(
                    -0.5 * ((y[k] - h) / sigma) ** 2 - jnp.log(sigma) - 0.5 * jnp.log(2 * jnp.pi)
                )
            mll += share / samples * log_p
            likelihoods.append(log_p)
        largest = max(likelihoods)
        mean = sum(jnp.exp(one - largest) for one in likelihoods) / samples
        evidence += share * (largest + jnp.log(mean))
    weight_kl = kl_to_standard_normal(phi)
    kl = trajectories * share * path_kl + weight_kl
    confidence = jnp.log(4 * jnp.sqrt(trajectories) / delta)
    pac = -mll + jnp.sqrt((kl + confidence) / (2 * trajectories))
    return {"pac-bayes": pac, "bayes": -evidence}, (mll, share * path_kl, weight_kl)


# ------------------------------------------------------------------------------------------------

K = 1.7
CASES = [
    # known equations, weights, samples, batch, trajectories
    pytest.param(False, "local", 1, 1, 1, marks=pytest.mark.slow),
    pytest.param(False, "local", 3, 2, 7, marks=pytest.mark.slow),
    (True, "local", 2, 3, 7),
    pytest.param(True, "path", 3, 2, 5, marks=pytest.mark.slow),
]


def network_of(posterior):
    """φ as pairs (means, log standard deviations) of weight and bias, layer by layer."""
    return [
        ((mean.weight, mean.bias), (log_sd.weight, log_sd.bias))
        for mean, log_sd in zip(posterior.mean.layers, posterior.log_sd.layers, strict=True)
    ]


def random_numbers(model, batch, samples, key):
    """What `simulate` draws from this key, as [trajectory][sample][step]."""
    weight_key, call_key, path_key = jr.split(key, 3)
    (series, rows), layers = batch.times.shape, model.network.posterior.mean.layers
    numbers = jnp.arange(samples * series, dtype=jnp.uint32).reshape(samples, series)
    states = model.states
    wiener = path_normals(path_key, numbers, rows, states, batch.values.dtype)[1:]
    wiener = jnp.moveaxis(wiener, 0, 2).swapaxes(0, 1)
    if model.weights.held:
        mean, keys = model.network.posterior.mean, jr.split(weight_key, samples)
        drawn = [_normal_like(mean, key=key) for key in keys]
        each = [[(layer.weight, layer.bias) for layer in one.layers] for one in drawn]
        return [[[one] * (rows - 1) for one in each] for _ in range(series)], wiener
    widths = [len(layer.bias) for layer in layers]
    flat = path_normals(call_key, numbers, rows - 1, sum(widths), batch.values.dtype)
    split = jnp.split(flat, np.cumsum(widths)[:-1], axis=-1)
    return [
        [[[part[k, s, n] for part in split] for k in range(rows - 1)] for s in range(samples)]
        for n in range(series)
    ], wiener


@pytest.mark.parametrize(("known", "weights", "samples", "size", "total"), CASES)
@pytest.mark.parametrize("objective", ["bayes", "pac-bayes"])
def test_the_published_preset_is_algorithm_1(objective, known, weights, samples, size, total):
    with jax.enable_x64(True):
        declared, how = hs.published(
            ("x", "y"),
            physics=hs.known_drift(lambda y, k: {"x": k * y}, k=K) if known else hs.NoPhysics(),
            gate={"x": 0.8} if known else None,
            diffusion=[[0.3, 0.0], [0.1, 0.2]],
            noise=[0.4, 0.5],
            hidden=(4, 3),
            weights=weights,
            initial_sd=0.2,
            objective=objective,
            samples=samples,
            delta=0.1,
        )
        batch = Batch.of(wiggles(series=size, steps=5))
        key = jr.key(5)
        model = declared.init(batch, key=jr.key(1))
        epsilon, wiener = random_numbers(model, batch, samples, key)
        data = list(zip(batch.times, batch.values, strict=True))

        def ours(posterior):
            whole = eqx.tree_at(lambda m: m.network.posterior, model, posterior)
            terms = how["objective"](whole, batch, total, key=key)
            return terms.loss, (terms.log_likelihood, terms.path_kl, terms.weight_kl)

        def theirs(posterior):
            losses, terms = algorithm_1(
                network_of(posterior),
                drift_held if weights == "path" else drift_local,
                (lambda h: jnp.array([K * h[1], 0.0])) if known else jnp.zeros_like,
                jnp.array([0.8, 0.0]),
                jnp.array([[0.3, 0.0], [0.1, 0.2]]),
                jnp.array([0.4, 0.5]),
                data,
                epsilon,
                wiener,
                total,
                0.1,
            )
            return losses[objective], terms

        posterior = model.network.posterior
        (loss, terms), gradient = jax.value_and_grad(ours, has_aux=True)(posterior)
        (expected, parts), slopes = jax.value_and_grad(theirs, has_aux=True)(posterior)
        np.testing.assert_allclose(loss, expected, rtol=1e-9)
        if objective == "pac-bayes":
            np.testing.assert_allclose(terms, parts, rtol=1e-9)
        for one, other in zip(jax.tree.leaves(gradient), jax.tree.leaves(slopes), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-12)
