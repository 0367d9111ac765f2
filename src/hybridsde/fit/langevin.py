"""Langevin steps of the weights, after the most probable ones were found."""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax import lax
from jax.flatten_util import ravel_pytree

from hybridsde._types import Array, Float, Int, Keys, PRNGKeyArray, PyTree, Scalar
from hybridsde.fit.epoch import EpochLog, Problem, draw_batch
from hybridsde.fit.progress import Told
from hybridsde.fit.state import all_finite, choose
from hybridsde.model import MLP, BayesianMLP, BayesianSDE, SampledNetworks
from hybridsde.objective import SGLD, Terms

LANGEVIN = np.uint32(2**32 - 1)
"""Folded into the key of a fit to give that of its Langevin steps; no epoch has this number."""
BATCHES, ITERATIONS = 4, 12
"""The steepest curvature is the largest on so many batches, each found in so many iterations."""
NUDGE = 1e-3
"""Gradients are compared this far apart, as a share of the length of the weights."""


class Chain(eqx.Module):
    """Where the sampler is: a model whose mean weights move, and the steepest curvature."""

    model: BayesianSDE
    curvature: Scalar

    @property
    def weights(self) -> MLP:
        """θ."""
        network = self.model.network
        assert isinstance(network, BayesianMLP)
        return network.mean()

    def at(self, weights: MLP) -> "Chain":
        """The chain with other weights."""
        return eqx.tree_at(lambda chain: chain.model.network.posterior.mean, self, weights)


class Randomness(NamedTuple):
    """Keys of a chain, apart from each other and from those of the fit before it."""

    curvature: PRNGKeyArray
    steps: PRNGKeyArray
    report: PRNGKeyArray

    @classmethod
    def of(cls, key: PRNGKeyArray) -> "Randomness":
        """From the key of the fit."""
        return cls(*jr.split(jr.fold_in(key, LANGEVIN), 3))


def sample(
    model: BayesianSDE,
    problem: Problem,
    told: Told,
    keys: PRNGKeyArray | Keys,
    apply: Callable,
) -> tuple[BayesianSDE, np.ndarray]:
    """The model that draws networks which chains visited, and which chains could not move.

    `apply` maps over repetitions where there are several.
    """
    objective, training = _objective(problem), problem.training
    problem = replace(problem, frozen=None, length=training.length_at(training.epochs - 1))
    chain = _begin(apply, model, keys, problem)
    curvature = np.asarray(chain.curvature)
    visited = []
    for block in range(objective.blocks):
        numbers = jnp.full(curvature.shape, block)
        chain, terms = _block(apply, chain, numbers, keys, problem)
        visited.append(chain.weights)
        told(training.epochs + block + 1, EpochLog(terms, None).columns())
    kept = jax.tree.map(
        lambda *leaves: jnp.stack(leaves, curvature.ndim), *visited[-objective.keep :]
    )
    stuck = ~(np.isfinite(curvature) & (curvature > 0))
    return model.with_networks(SampledNetworks(kept)), np.asarray(stuck)


@eqx.filter_jit
def _begin(apply: Callable, models: BayesianSDE, keys: PRNGKeyArray | Keys, problem: Problem):
    return apply(begin, models, keys, problem)


@eqx.filter_jit
def _block(
    apply: Callable, chains: Chain, blocks: Array, keys: PRNGKeyArray | Keys, problem: Problem
):
    return apply(run_block, chains, blocks, keys, problem)


def begin(model: BayesianSDE, key: PRNGKeyArray, problem: Problem) -> Chain:
    """A chain at the weights that were found."""
    chain = Chain(model, jnp.ones(()))

    def on_batch(key: PRNGKeyArray) -> Scalar:
        batch_key, path_key, first_key = jr.split(key, 3)
        ascent = _ascent(chain, problem)
        return steepest(lambda w: ascent(w, (batch_key, path_key)), chain.weights, key=first_key)

    keys = jr.split(Randomness.of(key).curvature, BATCHES)
    return Chain(model, lax.map(on_batch, keys).max())


def steepest(
    gradient: Callable[[PyTree], PyTree], weights: PyTree, *, key: PRNGKeyArray
) -> Float[Array, ""]:
    """The largest |eigenvalue| of the Hessian H, by power iteration.

    v ← H v / |H v| with H v ≈ [g(θ + a v) − g(θ − a v)] / 2a; then λ = |H v|.
    """
    theta, unravel = ravel_pytree(weights)
    nudge = NUDGE * jnp.linalg.norm(theta)

    def times(v: Float[Array, " n"]) -> Float[Array, " n"]:
        ahead, behind = (ravel_pytree(gradient(unravel(theta + s * nudge * v)))[0] for s in (1, -1))
        return (ahead - behind) / (2 * nudge)

    def improve(carry, _):
        v, _ = carry
        product = times(v)
        size = jnp.linalg.norm(product)
        return (product / size, size), None

    v = jr.normal(key, theta.shape, theta.dtype)
    carry = (v / jnp.linalg.norm(v), jnp.zeros((), theta.dtype))
    (_, size), _ = lax.scan(improve, carry, length=ITERATIONS)
    return size


def run_block(
    chain: Chain, block: Int[Array, ""], key: PRNGKeyArray, problem: Problem
) -> tuple[Chain, Terms]:
    """Some Langevin steps, and the terms of the loss after them. No step is taken to infinity."""
    from blackjax.sgmcmc.sgld import build_kernel  # a slow import, for this method alone

    objective, random = _objective(problem), Randomness.of(key)
    kernel, ascent = build_kernel(), _ascent(chain, problem)

    def step(weights: MLP, t: Int[Array, ""]):
        *keys, noise_key = jr.split(jr.fold_in(random.steps, t), 3)
        size = objective.step_at(t) / chain.curvature
        moved = kernel(noise_key, weights, ascent, keys, size)
        return choose(all_finite(moved), moved, weights), None

    size = objective.steps // objective.blocks
    weights, _ = lax.scan(step, chain.weights, block * size + jnp.arange(size))
    report = jr.split(jr.fold_in(random.report, block))
    return chain.at(weights), _terms(chain, weights, problem, *report)


def _ascent(chain: Chain, problem: Problem) -> Callable[[MLP, PyTree], MLP]:
    """∇ [Σ_n ln p(Y_n | θ) + ln p_pri(θ)], estimated on a batch."""
    total = problem.train.count

    def gradient(weights: MLP, keys: PyTree) -> MLP:
        return jax.grad(lambda w: -total * _terms(chain, w, problem, *keys).loss)(weights)

    return gradient


def _terms(
    chain: Chain, weights: MLP, problem: Problem, batch_key: PRNGKeyArray, path_key: PRNGKeyArray
) -> Terms:
    model, batch = chain.at(weights).model, draw_batch(problem, key=batch_key)
    return problem.objective(model, problem.solver, batch, problem.train.count, key=path_key)


def _objective(problem: Problem) -> SGLD:
    assert isinstance(problem.objective, SGLD)
    return problem.objective
