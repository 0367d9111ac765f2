"""Objectives against closed forms, and which parameter each term moves."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers import PLAIN, bayes, linear_model, pac, tiny_model, wiggles
from hybridsde import (
    ELBO,
    EulerMaruyama,
    LogPosterior,
    NoPhysics,
    Positive,
    Trajectories,
    complexity,
    known_drift,
    trainable,
)
from hybridsde.data import Batch
from hybridsde.model import BayesianSDE, DiagonalDiffusion
from hybridsde.objective import evidence, log_likelihoods
from hybridsde.simulate import simulate

OBJECTIVES = [
    bayes(),
    bayes(estimator="log_mean"),
    pac(path_kl="sum"),
    pac(path_kl="mean"),
    pac(estimator="filtered", strength=0.5),
    ELBO(**PLAIN),
    LogPosterior(**PLAIN),
]
HYBRID = known_drift(lambda y, k: {"x": k * y}, k=2.0)


def kalman_log_likelihood(a, q, r, y0, ys) -> float:
    """ln p(y₁..y_K) of h ← A h + N(0, Q), y = h + N(0, R), started at h₀ = y₀."""
    mean, cov, total = y0, np.zeros_like(q), 0.0
    for y in ys:
        mean, cov = a @ mean, a @ cov @ a.T + q
        s = cov + r
        gap = y - mean
        gain = cov @ np.linalg.inv(s)
        total -= 0.5 * (
            gap @ np.linalg.solve(s, gap) + np.log(np.linalg.det(s)) + len(y) * np.log(2 * np.pi)
        )
        mean, cov = mean + gain @ gap, cov - gain @ cov
    return float(total)


@pytest.mark.slow
def test_log_mean_is_the_marginal_likelihood_of_a_kalman_filter(getkey):
    drift = np.array([[-0.5, 1.0], [-1.0, -0.3]])
    dt, steps, g, r = 0.2, 4, 0.6, 0.5
    rng = np.random.default_rng(1)
    values = np.cumsum(rng.normal(size=(steps + 1, 2)) * 0.3, 0)
    data = Trajectories.from_arrays([dt * np.arange(steps + 1)], [values], states=["x", "y"])
    oracle = kalman_log_likelihood(
        np.eye(2) + dt * drift, g**2 * dt * np.eye(2), r**2 * np.eye(2), values[0], values[1:]
    )
    model = linear_model(drift.T, diffusion=g, noise=r)
    batch = Batch.of(data)
    paths = simulate(model, EulerMaruyama(), batch, samples=50_000, key=getkey())
    logs = log_likelihoods(model, paths, batch)
    weights = np.exp(np.asarray(logs[:, 0], float) - float(logs.max()))
    error = weights.std() / weights.mean() / math.sqrt(len(weights))
    assert error < 0.02
    assert abs(float(evidence(logs, "log_mean")[0]) - oracle) < 5 * error
    assert float(evidence(logs, "mean_log")[0]) < oracle - 5 * error  # Jensen


def test_log_mean_exceeds_mean_log(getkey):
    logs = 3 * jax.random.normal(getkey(), (10, 4))
    assert (evidence(logs, "log_mean") >= evidence(logs, "mean_log")).all()


@pytest.mark.slow
def test_missing_values_and_the_first_time_have_no_likelihood(getkey):
    data = wiggles(series=2)
    holes = data.observed.copy()
    holes[0, 3:6, 1] = False
    punched = Trajectories.from_arrays(
        list(data.times), list(data.values), states=data.states, observed=list(holes)
    )
    model = linear_model(-jnp.eye(2), noise=0.5)
    batch, full = Batch.of(punched), Batch.of(data)
    paths = simulate(model, EulerMaruyama(), batch, samples=1, key=getkey())
    z = (data.values - np.asarray(paths.states[0])) / 0.5
    density = -0.5 * z**2 - np.log(0.5) - 0.5 * np.log(2 * np.pi)
    expected = np.where(holes, density, 0)[:, 1:].sum((1, 2))
    np.testing.assert_allclose(log_likelihoods(model, paths, batch)[0], expected, rtol=1e-4)
    assert log_likelihoods(model, paths, full)[0, 0] != log_likelihoods(model, paths, batch)[0, 0]


def test_complexity_constants():
    """f = 0, Q = P, N = 20, δ = 0.05: the numbers of the audit."""
    zero = jnp.zeros(())
    np.testing.assert_allclose(complexity(zero, 20, 0.05), 0.36010, atol=5e-6)
    np.testing.assert_allclose(complexity(zero, 20, 0.025), 0.38340, atol=5e-6)
    np.testing.assert_allclose(complexity(zero, 20, 0.05, sampled=True), 0.38340, atol=5e-6)
    widened = complexity(zero, 20, 0.05, gate_values=11)
    np.testing.assert_allclose(widened**2 - 0.36010**2, math.log(11) / 40, atol=1e-5)


def test_a_learned_gate_pays_for_its_grid(getkey):
    """Both equations known, so |Γ| = 11²."""
    batch, key = Batch.of(wiggles()), getkey()
    both = known_drift(lambda x, y, k: {"x": k * y, "y": -k * x}, k=2.0)
    model = tiny_model(physics=both, gate="learn").init(batch, key=getkey())
    found = pac()(model, batch, 6, key=key).complexity
    uncounted = pac(gate_values=1)(model, batch, 6, key=key).complexity
    np.testing.assert_allclose(found**2 - uncounted**2, math.log(121) / 12, rtol=1e-4)


@pytest.mark.parametrize("path_kl", ["sum", "mean"])
@pytest.mark.slow
def test_pac_bayes_is_algorithm_1(path_kl, getkey):
    """Every term by hand, on a drift whose path KL is known exactly: c²T/2G² per series."""
    c, g, total, delta = 0.3, 0.5, 20, 0.1
    model = linear_model(0.0, [c], diffusion=g, noise=0.7)
    t = np.linspace(0, 2, 9)
    data = Trajectories.from_arrays([t] * 4, [np.zeros((9, 1))] * 4, states=["x"])
    objective = pac(samples=3, delta=delta, path_kl=path_kl)
    terms = objective(model, Batch.of(data), total, key=getkey())
    np.testing.assert_allclose(terms.path_kl, c**2 * 2 / (2 * g**2), rtol=1e-5)
    path = float(terms.path_kl) * (total if path_kl == "sum" else 1)
    np.testing.assert_allclose(terms.weight_kl, model.network.kl_to_prior(), rtol=1e-6)
    price = math.sqrt(
        (path + float(terms.weight_kl) + math.log(4 * math.sqrt(total) / delta)) / (2 * total)
    )
    np.testing.assert_allclose(terms.complexity, price, rtol=1e-5)
    np.testing.assert_allclose(terms.loss, price - terms.log_likelihood, rtol=1e-5)


@pytest.mark.parametrize(
    "physics",
    [pytest.param(NoPhysics(), marks=pytest.mark.slow), HYBRID],
    ids=["black box", "hybrid"],
)
@pytest.mark.parametrize("objective", OBJECTIVES, ids=str)
@pytest.mark.slow
def test_every_objective_on_every_model(objective, physics, getkey):
    """The four variants of the paper, by combination: finite terms and gradients."""
    batch = Batch.of(wiggles())
    model = tiny_model(physics=physics).init(batch, key=getkey())
    key = getkey()
    terms, gradient = _gradient(lambda m: objective(m, batch, 6, key=key).loss, model)
    assert all(jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))
    assert jnp.isfinite(terms)


def _gradient(function, model: BayesianSDE):
    parameters, frozen = eqx.partition(model, trainable(model))
    return jax.value_and_grad(lambda p: function(eqx.combine(p, frozen)))(parameters)


def _moved(gradient: BayesianSDE) -> set[str]:
    """Names of the parameters with a gradient that is not zero."""
    posterior = gradient.network.posterior
    parts = {
        "means": posterior.mean,
        "spreads": posterior.log_sd,
        "gate": gradient.known.gate,
        "physics": gradient.known.physics,
        "diffusion": gradient.diffusion,
        "noise": gradient.observation.sd,
        "start": gradient.start,
        "prior": gradient.network.prior,
        "scale": gradient.scale,
    }
    return {
        name
        for name, tree in parts.items()
        if any(bool((leaf != 0).any()) for leaf in jax.tree.leaves(tree))
    }


@pytest.mark.parametrize(
    ("term", "moved"),
    [
        (
            "log_likelihood",
            {"means", "spreads", "gate", "physics", "diffusion", "noise", "start"},
        ),
        ("path_kl", {"means", "spreads", "gate", "physics", "diffusion", "start"}),
        ("weight_kl", {"means", "spreads"}),
        ("complexity", {"means", "spreads", "gate", "physics", "diffusion", "start"}),
    ],
)
@pytest.mark.slow
def test_each_term_moves_exactly_the_parameters_it_should(term, moved, getkey):
    """Everything that can be learned is; the first value of one state is missing."""
    data = wiggles()
    holes = data.observed.copy()
    holes[:, 0, 1] = False
    data = Trajectories.from_arrays(
        list(data.times), list(data.values), states=data.states, observed=list(holes)
    )
    batch = Batch.of(data)
    model = tiny_model(
        physics=known_drift(lambda y, k: {"x": k * y}, k=Positive.of(jnp.array(2.0))),
        gate="learn",
        diffusion=DiagonalDiffusion(Positive.of(jnp.full(2, 0.2))),
        noise=Positive.of(jnp.full(2, 0.1), floor=0.01),
        last_layer=1.0,
    ).init(batch, key=getkey())
    key = getkey()

    def one_term(model: BayesianSDE):
        return getattr(
            pac()(model, batch, 6, key=key),
            term,
        )

    _, gradient = _gradient(one_term, model)
    assert _moved(gradient) == moved


def test_fixed_parts_have_no_gradient_at_all(getkey):
    batch = Batch.of(wiggles())
    model = tiny_model().init(batch, key=getkey())
    parameters, _ = eqx.partition(model, trainable(model))
    assert jax.tree.leaves((parameters.scale, parameters.network.prior)) == []
    assert jax.tree.leaves((parameters.known, parameters.diffusion, parameters.observation)) == []


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: bayes(samples=0), "`samples`"),
        (lambda: bayes(estimator="median"), "`estimator`"),
        (lambda: pac(delta=0.0), "`delta`"),
        (lambda: pac(path_kl="max"), "`path_kl`"),
        (lambda: pac(strength=-1.0), "`strength`"),
        (lambda: pac(samples=-1), "`samples` must be a whole number of at least 1"),
    ],
)
def test_bad_settings(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_without_strength_the_pac_term_is_gone(getkey):
    batch = Batch.of(wiggles())
    model = tiny_model().init(batch, key=getkey())
    key = getkey()
    off, plain = (objective(model, batch, 6, key=key) for objective in (pac(strength=0.0), bayes()))
    for ours, theirs in zip(off, plain, strict=True):
        assert ours == theirs


def test_elbo_shares_the_kl_among_all_series(getkey):
    """−mll + KL/N, on the draws of Empirical Bayes."""
    model, batch = tiny_model().init(Batch.of(wiggles()), key=getkey()), Batch.of(wiggles())
    key = getkey()
    plain = bayes()(model, batch, 12, key=key)
    found = ELBO(**PLAIN)(model, batch, 12, key=key)
    np.testing.assert_allclose(found.loss, plain.loss + found.weight_kl / 12, rtol=1e-6)
    np.testing.assert_allclose(found.complexity, found.weight_kl / 12, rtol=1e-6)
