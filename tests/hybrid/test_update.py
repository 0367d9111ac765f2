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


def constant_known(data, mean, sd, physics=None, **settings):
    """A library of 1 and x in which the constant alone is chosen, known to be N(mean, sd²)."""
    spec = hs.HybridSDE(
        states=("x",), learned="library", functions=(), degree=1, diffusion=G, noise=1e-4,
        start="first", **({} if physics is None else {"physics": physics}), **settings,
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
    found = update_library(model, EulerMaruyama(), Batch.of(data), np.zeros(0)).model.network
    precision = 1 / 0.2**2 + 3 * ROWS * STEP / G**2
    moved = sum(one[-1, 0] - one[0, 0] for one in data.values)
    mean = (0.3 / 0.2**2 + moved / G**2) / precision
    np.testing.assert_allclose(unit * float(found.means[0, 0, 0]), mean, rtol=1e-4)
    np.testing.assert_allclose(unit * float(found.factors[0, 0, 0]), precision**-0.5, rtol=1e-4)


def test_one_after_the_other_is_all_at_once():
    data = drifting(0.8, 4, seed=2)
    model, _ = constant_known(data, mean=0.3, sd=0.2)
    euler, none = EulerMaruyama(), np.zeros(0)
    at_once = update_library(model, euler, Batch.of(data), none).model.network
    step = model
    for n in range(4):
        step = update_library(step, euler, Batch.of(data.take([n])), none).model
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
    found = update_library(model, EulerMaruyama(), Batch.of(data), np.zeros(0)).model.network
    time = 2 * ROWS * STEP
    moved = sum(one[-1, 0] - one[0, 0] for one in data.values)
    spread = 0.1**2 + G**2 / time
    logs = [-0.5 * (moved / time - mean) ** 2 / spread for mean in (0.0, 0.5)]
    expected = np.exp(logs) / np.exp(logs).sum()
    np.testing.assert_allclose(found.shares.value[:2], expected, rtol=1e-3)


def test_a_physical_parameter_moves_between_what_was_known_and_what_is_seen():
    """The posterior of a rate a in dx = −a x lies nearer to the data the less was known."""
    data = drifting(0.0, 4, seed=4, slope=2.0)
    physics = hs.equations("dx = -a*x", a=hs.Free(1.0))
    model, _ = constant_known(data, mean=0.0, sd=0.1, physics=physics)
    values = []
    for sd in (1e-3, 0.3, 10.0):
        found = update_library(model, EulerMaruyama(), Batch.of(data), np.array([sd]))
        values.append(float(found.model.known.physics.parameters["a"].value))
        assert found.physical_sd[0] < sd
    assert abs(values[0] - 1.0) < 0.01 < values[1] - values[0] < values[2] - values[0]
    stays = update_library(model, EulerMaruyama(), Batch.of(data), np.array([np.nan]))
    assert float(stays.model.known.physics.parameters["a"].value) == 1.0


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
