import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from helpers import assert_mean_close, assert_variance_close, tree_allclose
from hybridsde import gaussian_kl
from hybridsde.model import BayesianMLP, MixtureMLP
from hybridsde.model.weights import HeldWeights, LocalWeights


def network(key, sd=0.3):
    return BayesianMLP.init((2, 5, 3), "softplus", sd=sd, prior_sd=1.0, last=1.0, key=key)


def test_gaussian_kl_closed_form():
    kl = gaussian_kl(jnp.array(0.5), jnp.array(0.2), jnp.array(0.0), jnp.array(1.0))
    np.testing.assert_allclose(kl, 1.25444, atol=5e-6)


def test_gaussian_kl_against_scipy_integral():
    from scipy import integrate, stats

    q, p = stats.norm(0.3, 0.5), stats.norm(-0.2, 0.8)
    oracle, _ = integrate.quad(lambda x: q.pdf(x) * (q.logpdf(x) - p.logpdf(x)), -6, 6)
    kl = gaussian_kl(jnp.array(0.3), jnp.array(0.5), jnp.array(-0.2), jnp.array(0.8))
    np.testing.assert_allclose(kl, oracle, rtol=1e-5)


def test_kl_is_zero_at_the_prior_and_counts_biases(getkey):
    net = network(getkey())
    at_prior = BayesianMLP(net.prior.value, net.prior)
    assert at_prior.kl_to_prior() == 0
    count = sum(leaf.size for leaf in jax.tree.leaves(net.posterior.mean))
    assert count == 2 * 5 + 5 + 5 * 3 + 3
    shifted = jax.tree.map(lambda leaf: leaf + 1.0, at_prior.posterior.mean)
    moved = BayesianMLP(type(at_prior.posterior)(shifted, at_prior.posterior.log_sd), net.prior)
    np.testing.assert_allclose(moved.kl_to_prior(), 0.5 * count)


def one_call(net, key):
    """What a single call consumes."""
    noise = net.noise(jnp.zeros((), jnp.uint32), 1, key=key)
    return jax.tree.map(lambda leaf: leaf[0], noise)


def test_held_and_local_weights_agree_in_the_law_of_one_call(getkey):
    """For a single linear layer both are Gaussian with the same two moments."""
    net = BayesianMLP.init((2, 3), "tanh", sd=0.3, prior_sd=1.0, last=1.0, key=getkey())
    x = jnp.array([0.7, -1.2])
    keys = jr.split(getkey(), 20_000)

    def call(weights, key):
        draw_key, call_key = jr.split(key)
        drawn = weights.draw(net, key=draw_key)
        return drawn(x, one_call(drawn, call_key))

    mean = net.posterior.mean(x)
    variance = 0.3**2 * (x @ x + 1)
    for weights in (HeldWeights(), LocalWeights()):
        draws = jax.vmap(lambda key, w=weights: call(w, key))(keys)
        assert_mean_close(draws, mean)
        assert_variance_close(draws, variance)


def test_vanishing_spread_gives_the_mean_network(getkey):
    net = network(getkey(), sd=1e-12)
    x = jnp.array([0.3, 0.4])
    expected = net.posterior.mean(x)
    local = net.local()
    noise = one_call(local, getkey())
    np.testing.assert_allclose(net.sample(key=getkey())(x), expected, rtol=1e-6)
    np.testing.assert_allclose(local(x, noise), expected, rtol=1e-5)


def test_draws_differ_by_key_and_repeat_by_key(getkey):
    net, key = network(getkey()), getkey()
    assert tree_allclose(net.sample(key=key), net.sample(key=key))
    assert not tree_allclose(net.sample(key=key), net.sample(key=getkey()))


@pytest.mark.slow
def test_a_mixture_costs_no_less_than_it_should_and_takes_turns(getkey):
    """Its KL is the mean of those of its networks; numbered draws are of one network after another.

    By lot, each of three networks has a third of 3000 draws within 5 standard errors.
    """
    mixture = MixtureMLP.init(lambda key: network(key, sd=1e-6), 3, key=getkey())
    each = [BayesianMLP(mixture.member(k), mixture.prior).kl_to_prior() for k in range(3)]
    np.testing.assert_allclose(mixture.kl_to_prior(), np.mean(each), rtol=1e-5)
    first = np.asarray([mixture.member(k).mean.layers[0].weight[0, 0] for k in range(3)])
    turns = [
        float(mixture.sample(key=getkey(), number=jnp.asarray(k)).layers[0].weight[0, 0])
        for k in range(4)
    ]
    np.testing.assert_allclose(turns, first[[0, 1, 2, 0]], atol=1e-4)
    lots = jax.vmap(lambda key: mixture.sample(key=key).layers[0].weight[0, 0])
    drawn = np.asarray(lots(jr.split(getkey(), 3000)))
    nearest = np.abs(drawn[:, None] - first).argmin(1)
    shares = np.bincount(nearest, minlength=3) / 3000
    assert (np.abs(shares - 1 / 3) < 5 * np.sqrt(2 / 9 / 3000)).all()
