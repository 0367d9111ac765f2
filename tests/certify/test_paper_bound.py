"""The paper's bound with every constant, against the numbers of the audit."""

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from helpers import linear_model, regular_batch
from hybridsde.certify.paper_bound import paper_tiers
from hybridsde.certify.sampling import sample_evidence
from hybridsde.hybrid import SDEForecaster
from hybridsde.model import gaussian_kl
from hybridsde.objective import complexity, log_likelihoods
from hybridsde.simulate import EulerMaruyama, simulate


def test_constants_where_nothing_was_learned():
    kl = jnp.zeros(())
    assert complexity(kl, 20, 0.05) == pytest.approx(0.36010, abs=5e-6)
    assert complexity(kl, 20, 0.05, sampled=True) == pytest.approx(0.38340, abs=5e-6)
    found = paper_tiers(np.zeros((20, 100)), 0.0, 0.0, 0.05)
    assert found.terms["ε"] == pytest.approx(0.03037, abs=5e-6)
    assert found.value == pytest.approx(0.03037 + 0.38340, abs=1e-5)
    assert found.terms["ε as printed"] == pytest.approx(0.18282, abs=5e-6)


def test_tiers_are_ordered_and_meet_at_one_draw():
    log_z = -np.random.default_rng(0).gamma(3, 2, size=(30, 40))
    found = paper_tiers(log_z, 1.0, 2.0, 0.05).terms
    assert found["T1"] <= found["T2"] <= found["T3"]
    single = paper_tiers(log_z[:, :1], 1.0, 2.0, 0.05).terms
    assert single["T2"] == pytest.approx(single["T3"])


def test_the_grid_over_gates_costs_its_logarithm():
    one, many = (paper_tiers(np.zeros((20, 10)), 1.0, 2.0, 0.05, gate_values=g) for g in (1, 100))
    price = np.sqrt((3 + np.log(4 * np.sqrt(20) / 0.05) + np.log(100)) / 40)
    assert many.value - one.value == pytest.approx(
        price - np.sqrt((3 + np.log(4 * np.sqrt(20) / 0.05)) / 40), rel=1e-5
    )


@pytest.mark.long
def test_both_parts_of_the_kl():
    """Constant drift θ ~ N(0.5, 0.2²), G = 0.5, T = 1: weights 1.2544, path 0.58 in the mean."""
    weights = gaussian_kl(jnp.array([0.5]), jnp.array([0.2]), jnp.zeros(1), jnp.ones(1))
    assert weights == pytest.approx(1.25444, abs=5e-6)
    model = linear_model(0.0, [0.5], bias_sd=0.2, diffusion=0.5)
    batch = regular_batch(10, 1.0)
    found = np.asarray(
        sample_evidence(SDEForecaster(model, EulerMaruyama()), batch, 1000, key=jr.key(0)).path_kl
    )
    error = found.std() / np.sqrt(found.size)
    assert abs(found.mean() - 0.58) < 5 * error


@pytest.mark.slow
def test_an_oracle_is_vacuous():
    """E z = 2^{−KD/2} and mean −ln z = KD/2, even where the latent path is known exactly."""
    model = linear_model(0.0, diffusion=1e-6, noise=0.3)
    batch = regular_batch(10, 1.0, series=2000)
    noise = 0.3 * jr.normal(jr.key(2), batch.values.shape).at[:, 0].set(0.0)
    batch = type(batch)(
        batch.times,
        batch.steps,
        batch.values + noise,
        batch.observed,
        batch.inputs,
        batch.recorded,
    )
    log_z = np.asarray(
        sample_evidence(SDEForecaster(model, EulerMaruyama()), batch, 1, key=jr.key(3)).log_z
    )
    assert abs(-log_z.mean() - 5) < 5 * log_z.std() / np.sqrt(log_z.size)
    z = np.exp(log_z)
    assert abs(z.mean() - 2.0**-5) < 5 * z.std() / np.sqrt(z.size)
    assert paper_tiers(log_z, 0.0, 0.0, 0.05).value > 0.95


@pytest.mark.slow
def test_likelihoods_enter_relative_to_their_largest_value():
    """Ln z = ln p(Y|h) − K ln B̄, so that units of the observations cancel."""
    model = linear_model(-1.0, diffusion=0.5, noise=0.3)
    batch = regular_batch(6, 1.0, series=3)
    found = sample_evidence(SDEForecaster(model, EulerMaruyama()), batch, 4, key=jr.key(4)).log_z
    paths = [
        simulate(model, EulerMaruyama(), batch.take(jnp.array([n])), samples=4, key=key)
        for n, key in enumerate(jr.split(jr.key(4), 3))
    ]
    logs = [
        log_likelihoods(model, p, batch.take(jnp.array([n])))[:, 0] for n, p in enumerate(paths)
    ]
    largest = -0.5 * np.log(2 * np.pi * 0.3**2)
    np.testing.assert_allclose(found, np.array(logs) - 6 * largest, rtol=1e-4, atol=1e-4)
