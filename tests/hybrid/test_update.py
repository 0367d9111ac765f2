"""Further recordings with the old posterior as the prior: Bayes' rule in closed form."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import hybridsde as hs
from hybridsde._parameters import Fixed
from hybridsde.data import Batch
from hybridsde.hybrid.update import Known, update_library
from hybridsde.model import BayesianMLP, MixtureMLP
from hybridsde.simulate import EulerMaruyama

G, STEP, ROWS = 0.5, 0.1, 40


def drifting(rate, count, seed, slope=0.0):
    """Exact increments of dx = (c − a x) dt + G dW by Euler's rule."""
    rng = np.random.default_rng(seed)
    x = np.zeros((count, ROWS + 1, 1))
    for k in range(ROWS):
        drift = rate - slope * x[:, k]
        x[:, k + 1] = x[:, k] + drift * STEP + G * np.sqrt(STEP) * rng.normal(size=(count, 1))
    times = [STEP * np.arange(ROWS + 1)] * count
    return hs.Trajectories.from_arrays(times, list(x), states=("x",))


def constant_known(data, mean, sd, **settings):
    """A library of 1 and x in which the constant alone is chosen, known to be N(mean, sd²)."""
    spec = hs.HybridSDE(
        states=("x",), learned="library", functions=(), degree=1, diffusion=G, noise=1e-4,
        start="first", **settings,
    )  # fmt: skip
    model = spec.init(Batch.of(data), key=jr.key(0))
    network = model.network
    chosen = jnp.zeros_like(network.chosen.value).at[0, 0, 0].set(True)
    shares = jnp.zeros_like(network.shares.value).at[0].set(1.0)
    unit = float(model.scale.value.rate[0] / network.basis.value.size[0])
    found = eqx.tree_at(
        lambda n: (n.means, n.factors, n.chosen, n.shares),
        network,
        (
            network.means.at[0, 0, 0].set(mean / unit),
            network.factors.at[0, 0, 0].set(sd / unit),
            Fixed(chosen),
            Fixed(shares),
        ),
    )
    return eqx.tree_at(lambda m: m.network, model, found), unit


def test_a_constant_drift_is_updated_as_the_closed_form_says():
    """P' = P + T/G², m' = (P m + Σ Δx/G²)/P'."""
    data = drifting(0.8, 3, seed=1)
    model, unit = constant_known(data, mean=0.3, sd=0.2)
    found = update_library(model, EulerMaruyama(), Batch.of(data)).model.network
    precision = 1 / 0.2**2 + 3 * ROWS * STEP / G**2
    moved = sum(one[-1, 0] - one[0, 0] for one in data.values)
    mean = (0.3 / 0.2**2 + moved / G**2) / precision
    np.testing.assert_allclose(unit * float(found.means[0, 0, 0]), mean, rtol=1e-4)
    np.testing.assert_allclose(unit * float(found.factors[0, 0, 0]), precision**-0.5, rtol=1e-4)


def test_one_after_the_other_is_all_at_once():
    data = drifting(0.8, 4, seed=2)
    model, _ = constant_known(data, mean=0.3, sd=0.2)
    euler = EulerMaruyama()
    at_once = update_library(model, euler, Batch.of(data)).model.network
    step = model
    for n in range(4):
        step = update_library(step, euler, Batch.of(data.take([n]))).model
    np.testing.assert_allclose(step.network.means, at_once.means, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(step.network.factors, at_once.factors, rtol=1e-4, atol=1e-6)


def test_shares_of_choices_follow_what_each_foretold():
    """Two choices that differ in their mean alone: w' ∝ w · N(data | mean)."""
    data = drifting(0.8, 2, seed=3)
    model, unit = constant_known(data, mean=0.0, sd=0.1)
    network = model.network
    both = eqx.tree_at(
        lambda n: (n.means, n.factors, n.chosen, n.shares),
        network,
        (
            network.means.at[1, 0, 0].set(0.5 / unit),
            network.factors.at[1].set(network.factors[0]),
            Fixed(network.chosen.value.at[1].set(network.chosen.value[0])),
            Fixed(jnp.zeros_like(network.shares.value).at[:2].set(0.5)),
        ),
    )
    model = eqx.tree_at(lambda m: m.network, model, both)
    found = update_library(model, EulerMaruyama(), Batch.of(data)).model.network
    time = 2 * ROWS * STEP
    moved = sum(one[-1, 0] - one[0, 0] for one in data.values)
    spread = 0.1**2 + G**2 / time
    logs = [-0.5 * (moved / time - mean) ** 2 / spread for mean in (0.0, 0.5)]
    expected = np.sort(np.exp(logs) / np.exp(logs).sum())[::-1]
    assert logs[1] > logs[0]  # the second choice becomes the first
    np.testing.assert_allclose(found.shares.value[:2], expected, rtol=1e-3)
    assert unit * float(found.means[0, 0, 0]) > unit * float(found.means[1, 0, 0])


def test_what_is_known_beside_equations_counts_once():
    """It is in the old posterior: an update of a model that is held to it is that of a free one."""
    data = drifting(0.8, 3, seed=6)
    free, _ = constant_known(data, mean=0.3, sd=0.2)
    held, _ = constant_known(data, mean=0.3, sd=0.2, knowledge=hs.Knowledge(decays=["x"]))
    assert held.constraints is not None
    found = [update_library(one, EulerMaruyama(), Batch.of(data)).model for one in (free, held)]
    np.testing.assert_array_equal(found[0].network.means, found[1].network.means)
    assert found[1].constraints is not None


@pytest.mark.parametrize("members", [1, 3])
def test_networks_are_compared_with_what_they_were(members):
    spec = hs.HybridSDE(states=("x",), learned="network", hidden=(4,), members=members)
    network = spec.init(Batch.of(drifting(0.5, 2, seed=5)), key=jr.key(0)).network
    assert isinstance(network, BayesianMLP | MixtureMLP)
    known = Known.of(network)
    assert float(known.kl_to_prior()) == 0.0
    shift = 0.1
    moved = eqx.tree_at(
        lambda n: n.posterior.mean,
        network,
        jax.tree.map(lambda w: w + shift, network.posterior.mean),
    )
    found = float(eqx.tree_at(lambda k: k.network, known, moved).kl_to_prior())
    sd = np.concatenate([np.ravel(one) for one in jax.tree.leaves(network.posterior.sd())])
    np.testing.assert_allclose(found, np.sum(0.5 * (shift / sd) ** 2) / members, rtol=1e-4)
