"""Forecasts that several models make together, against mixtures of Gaussians."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from scipy import optimize, stats

import hybridsde as hs
from helpers import assert_mean_close, linear_model
from hybridsde.data import Batch
from hybridsde.forecast import Ensemble, evaluate_many
from hybridsde.hybrid import SDEForecaster

DT, ROWS, CONTEXT = 0.25, 6, 2
RATES = np.array([[-0.5, 0.8, 0.2], [0.1, -1.5, 0.6]])
PUSHES = np.array([[0.0, 1.0, -0.7], [0.4, -0.2, 0.9]])
NOISES = np.array([[0.3, 0.6, 1.2], [0.5, 0.4, 0.8]])
"""Seed × member: rate, push and σ of dh = (rate h + push) dt + G dW, y = h + ε."""
SOLVER = hs.EulerMaruyama()


def stack(trees):
    """Several trees as one whose arrays have a leading axis."""
    return jax.tree.map(
        lambda *leaves: jnp.stack(leaves) if eqx.is_array(leaves[0]) else leaves[0], *trees
    )


def member(seed, number, diffusion):
    """Two states that do not touch each other; the second is pushed the other way."""
    model = linear_model(
        RATES[seed, number] * np.eye(2),
        PUSHES[seed, number] * np.array([1.0, -1.0]),
        diffusion=diffusion,
        noise=NOISES[seed, number],
    )
    return replace(model, context=CONTEXT)


def moments(seed, number, first, diffusion):
    """Of Euler paths: m ← m + (rate m + push) Δt, v ← (1 + rate Δt)² v + G² Δt."""
    growth = 1 + RATES[seed, number] * DT
    push = PUSHES[seed, number] * np.array([1.0, -1.0]) * DT
    means, variances = [first], [np.zeros_like(first)]
    for _ in range(1, ROWS):
        means.append(growth * means[-1] + push)
        variances.append(growth**2 * variances[-1] + diffusion**2 * DT)
    return np.stack(means, 1), np.stack(variances, 1)


def recordings(seed):
    """Three series, some values of which are missing."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(3, ROWS, 2))
    observed = rng.uniform(size=values.shape) > 0.2
    observed[:, 0] = True
    times = [DT * np.arange(ROWS)] * 3
    return hs.Trajectories.from_arrays(
        times, list(values), states=["x", "y"], observed=list(observed)
    )


def columns(cells, data, first=CONTEXT):
    """Means over what was observed from a row on: of each state, then of both."""
    seen = data.observed[:, first:]
    each = [cells[..., k][seen[..., k]].mean() for k in range(2)]
    return np.array([*each, cells[seen].mean()])


def together(models, test, draws, keys):
    """Scores of ensembles whose arrays begin with seed and member."""
    return evaluate_many(Ensemble(SDEForecaster(models, SOLVER)), test, draws, keys)


def scored(order):
    """Scores of ensembles without diffusion, one for each of two seeds."""
    models = stack([stack([member(seed, k, 1e-6) for k in order]) for seed in range(2)])
    test = stack([Batch.of(recordings(seed)) for seed in range(2)])
    return together(models, test, 3 * len(order), jr.split(jr.key(0), 2))


@pytest.mark.slow
def test_members_without_diffusion_are_averaged_and_given_rows_counted_apart():
    table = scored((0, 1, 2))
    for seed in range(2):
        data = recordings(seed)
        paths = np.stack([moments(seed, k, data.values[:, 0], 0)[0] for k in range(3)])
        error = (paths.mean(0) - data.values) ** 2
        expected = {
            "mse": columns(error[:, CONTEXT:], data),
            "mse_sample": columns(((paths - data.values) ** 2).mean(0)[:, CONTEXT:], data),
            "mse_all": columns(error, data, first=0)[-1:],
        }
        density = stats.norm(paths, NOISES[seed][:, None, None, None]).pdf(data.values).mean(0)
        expected["nll"] = columns(-np.log(density)[:, CONTEXT:], data)
        for name, column in expected.items():
            np.testing.assert_allclose(table[name][seed], column, rtol=2e-4, err_msg=name)
        assert not np.allclose(expected["mse_all"], expected["mse"][-1], rtol=0.05)


@pytest.mark.slow
def test_the_order_of_members_does_not_matter():
    one, other = scored((0, 1, 2)), scored((2, 0, 1))
    for name in ("mse", "mse_sample", "mse_all", "nll", "nll_gaussian"):
        np.testing.assert_allclose(one[name], other[name], rtol=1e-4, err_msg=name)


@pytest.mark.slow
def test_one_member_scores_as_it_does_alone():
    """Without diffusion draws are equal, so only scores of their noise differ."""
    test = stack([Batch.of(recordings(seed)) for seed in range(2)])
    models = stack([member(seed, 1, 1e-6) for seed in range(2)])
    alone = evaluate_many(SDEForecaster(models, SOLVER), test, 3, jr.split(jr.key(1), 2))
    ensemble = scored((1,))
    for name in ("mse", "mse_sample", "nll", "nll_gaussian"):
        np.testing.assert_allclose(ensemble[name], alone[name], rtol=1e-4, err_msg=name)


def absolute(mean, sd):
    """E|X| of X ~ N(mean, sd²)."""
    z = mean / sd
    return sd * (2 * stats.norm.pdf(z) + z * (2 * stats.norm.cdf(z) - 1))


def quantile(q, means, sds):
    """Of a mixture of Gaussians in equal shares, value by value."""
    ends = (means - 9 * sds).min(0), (means + 9 * sds).max(0)
    found = [
        optimize.brentq(lambda x, m=m, s=s: stats.norm.cdf(x, m, s).mean() - q, low, high)
        for m, s, low, high in zip(
            *(a.reshape(len(means), -1).T for a in (means, sds)),
            *(end.ravel() for end in ends),
            strict=True,
        )
    ]
    return np.array(found).reshape(means.shape[1:])


@pytest.mark.slow
def test_scores_are_those_of_a_mixture_in_equal_shares():
    """30 times 1000 draws by each member: their means are those of the closed forms."""
    order, diffusion, repeats, data = (0, 2), 0.7, 30, recordings(0)
    models = stack([stack([member(0, k, diffusion) for k in order])] * repeats)
    test = stack([Batch.of(data)] * repeats)
    table = together(models, test, 2000, jr.split(jr.key(2), repeats))
    found = [moments(0, k, data.values[:, 0], diffusion) for k in order]
    means, variances = (np.stack(part)[:, :, CONTEXT:] for part in zip(*found, strict=True))
    noise = NOISES[0, list(order), None, None, None] ** 2
    sds, y = np.sqrt(variances + noise), data.values[:, CONTEXT:]
    total = variances.mean(0) + means.var(0) + noise.mean(0)
    apart = absolute(means[:, None] - means, np.hypot(sds[:, None], sds)).mean((0, 1))
    expected = {
        "mse": (means.mean(0) - y) ** 2,
        "mse_sample": ((means - y) ** 2 + variances).mean(0),
        "nll": -np.log(stats.norm(means, sds).pdf(y).mean(0)),
        "nll_gaussian": -stats.norm(means.mean(0), np.sqrt(total)).logpdf(y),
        "crps": absolute(means - y, sds).mean(0) - apart / 2,
        "width90": quantile(0.95, means, sds) - quantile(0.05, means, sds),
    }
    for name, cells in expected.items():
        assert_mean_close(table[name], columns(cells, data))
