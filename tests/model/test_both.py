"""Terms and networks as one learned part."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

import hybridsde as hs
from helpers import wiggles
from hybridsde._parameters import trainable
from hybridsde.data import Batch
from hybridsde.model.both import LibraryAndNetworks


def learned_part(members=2):
    spec = hs.HybridSDE(
        states=wiggles().states, learned=("library", "network"), hidden=(4,), members=members
    )
    return spec.init(Batch.of(wiggles()), key=jr.key(0)).network


def with_terms(part: LibraryAndNetworks) -> LibraryAndNetworks:
    """With some coefficients that are not zero."""
    library = part.library.value
    chosen = jnp.ones_like(library.chosen.value)
    means = jnp.ones_like(library.means)
    library = eqx.tree_at(
        lambda one: (one.means, one.chosen.frozen, one.factors),
        library,
        (means, chosen, 0.1 * jnp.broadcast_to(jnp.eye(library.factors.shape[-1]),
                                               library.factors.shape)),
    )  # fmt: skip
    return eqx.tree_at(lambda one: one.library.frozen, part, library)


def test_a_draw_is_the_sum_of_the_draws_of_its_pieces():
    part, key = with_terms(learned_part()), jr.key(1)
    term_key, network_key = jr.split(key)
    x = jnp.linspace(-1.0, 1.0, part.networks.posterior.mean.layers[0].weight.shape[1])
    drawn = part.sample(key=key, number=jnp.asarray(1))
    terms = part.library.value.sample(key=term_key)
    network = part.networks.sample(key=network_key, number=jnp.asarray(1))
    np.testing.assert_allclose(drawn(x), terms(x) + network(x), rtol=1e-6)
    assert np.abs(terms(x)).min() > 0.1
    middle = part.library.value.mean()(x) + part.networks.mean()(x)
    np.testing.assert_allclose(part.mean()(x), middle, rtol=1e-6)


def test_networks_take_turns_and_kl_is_the_sum():
    part = with_terms(learned_part(members=3))
    assert part.turns == 3
    whole = part.library.value.kl_to_prior() + part.networks.kl_to_prior()
    np.testing.assert_allclose(part.kl_to_prior(), whole, rtol=1e-6)
    assert float(part.library.value.kl_to_prior()) > 1


def test_training_moves_the_networks_and_leaves_the_terms():
    part = with_terms(learned_part())
    marked = trainable(part)
    assert not any(jax.tree.leaves(marked.library))
    assert any(jax.tree.leaves(marked.networks))
