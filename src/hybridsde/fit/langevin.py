"""Langevin steps of the weights, a phase after the most probable ones were found."""

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

from hybridsde._streams import Beside, beside
from hybridsde._types import Array, Float, Int, Keys, PRNGKeyArray, PyTree, Scalar
from hybridsde.data.checks import check_positive, check_whole
from hybridsde.fit.epoch import EpochLog, Problem, draw_batch
from hybridsde.fit.progress import ProgressReporter
from hybridsde.fit.state import all_finite, choose
from hybridsde.model import MLP, BayesianMLP, BayesianSDE, SampledNetworks
from hybridsde.objective import Terms

BATCHES, ITERATIONS = 4, 12
"""The steepest curvature is the largest on so many batches, each found in so many iterations."""
NUDGE = 1e-3
"""Gradients are compared this far apart, as a share of the length of the weights."""
DECAY = 0.55
"""The step falls with this power of time (Welling and Teh 2011)."""


class Langevin(eqx.Module):
    """Stochastic-gradient Langevin dynamics, after a fit of `LogPosterior`: D-BNN (SGLD).

    The weights alone go on from the most probable ones with noise that decays (Welling and Teh
    2011),

        θ ← θ + ε_t ∇[Σ_n ln p(Y_n | θ) + ln p_pri(θ)] + √(2 ε_t) η,
        ε_t = (ε/λ) (1 + 100 t/T)^−0.55,

    where λ is the steepest curvature at the most probable weights: steps of more than 2/λ diverge,
    and λ differs by many orders of magnitude from one model to another. `keep` networks from the
    second half of the T `steps` are what forecasts draw from, each held along its path. Where
    random windows are trained on, those of the last length stand for the series here too. A fit
    that is taken up from a checkpoint repeats its Langevin steps.
    """

    steps: int = eqx.field(static=True, default=5000)
    step_size: float = eqx.field(static=True, default=0.5)
    """ε, the first step in units of 1/λ."""
    keep: int = eqx.field(static=True, default=50)

    def __check_init__(self):
        check_whole(self.keep, "keep")
        check_whole(self.steps, "steps", least=self.blocks)
        if self.steps % self.blocks:
            raise ValueError(
                f"`steps` must be a multiple of twice `keep`, {self.blocks}, but is {self.steps}."
            )
        check_positive(self.step_size, "step_size")

    @property
    def blocks(self) -> int:
        """Steps come in so many blocks; a network is kept after each of the later half."""
        return 2 * self.keep

    def pace(self) -> "Pace":
        """Its numbers as arrays."""
        block = self.steps // self.blocks
        return Pace(jnp.asarray(self.step_size, float), jnp.asarray(self.steps), jnp.asarray(block))


class Pace(eqx.Module):
    """How far and how many steps, as data to the compiled program."""

    step_size: Scalar
    steps: Int[Array, ""]
    block: Int[Array, ""]
    """Steps of one block."""

    def at(self, t: Int[Array, ""]) -> Float[Array, ""]:
        """ε_t in units of 1/λ."""
        return self.step_size * (1 + 100 * t / self.steps) ** -DECAY


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
        return cls(*jr.split(beside(key, Beside.LANGEVIN), 3))


def sample(
    model: BayesianSDE,
    problem: Problem,
    langevin: Langevin,
    report: ProgressReporter,
    epochs: int,
    keys: PRNGKeyArray | Keys,
    apply: Callable,
) -> tuple[BayesianSDE, np.ndarray]:
    """The model that draws networks which chains visited, and which chains could not move.

    `apply` maps over repetitions where there are several; `epochs` were trained before.
    """
    problem = replace(problem, frozen=None)
    chain = _begin(apply, model, keys, problem)
    curvature = np.asarray(chain.curvature)
    pace = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, curvature.shape), langevin.pace())
    visited = []
    for block in range(langevin.blocks):
        numbers = jnp.full(curvature.shape, block)
        chain, terms = _block(apply, chain, numbers, pace, keys, problem)
        visited.append(chain.weights)
        report(epochs + block + 1, EpochLog(terms, None).columns())
    kept = jax.tree.map(
        lambda *leaves: jnp.stack(leaves, curvature.ndim), *visited[-langevin.keep :]
    )
    stuck = ~(np.isfinite(curvature) & (curvature > 0))
    return model.with_networks(SampledNetworks(kept)), np.asarray(stuck)


@eqx.filter_jit
def _begin(apply: Callable, models: BayesianSDE, keys: PRNGKeyArray | Keys, problem: Problem):
    return apply(begin, models, keys, problem)


@eqx.filter_jit
def _block(
    apply: Callable,
    chains: Chain,
    blocks: Array,
    pace: Pace,
    keys: PRNGKeyArray | Keys,
    problem: Problem,
):
    return apply(run_block, chains, blocks, pace, keys, problem)


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
    nudge = NUDGE * jnp.sqrt(theta @ theta)

    def times(v: Float[Array, " n"]) -> Float[Array, " n"]:
        ahead, behind = (ravel_pytree(gradient(unravel(theta + s * nudge * v)))[0] for s in (1, -1))
        return (ahead - behind) / (2 * nudge)

    def improve(carry, _):
        v, _ = carry
        product = times(v)
        size = jnp.sqrt(product @ product)
        return (product / size, size), None

    v = jr.normal(key, theta.shape, theta.dtype)
    carry = (v / jnp.sqrt(v @ v), jnp.zeros((), theta.dtype))
    (_, size), _ = lax.scan(improve, carry, length=ITERATIONS)
    return size


def run_block(
    chain: Chain, block: Int[Array, ""], pace: Pace, key: PRNGKeyArray, problem: Problem
) -> tuple[Chain, Terms]:
    """Some Langevin steps, and the terms of the loss after them. No step is taken to infinity."""
    random, ascent = Randomness.of(key), _ascent(chain, problem)

    def step(number: Int[Array, ""], weights: MLP) -> MLP:
        t = block * pace.block + number
        batch_key, path_key, noise_key = jr.split(jr.fold_in(random.steps, t), 3)
        gradient = ascent(weights, (batch_key, path_key))
        moved = langevin_step(weights, gradient, pace.at(t) / chain.curvature, key=noise_key)
        return choose(all_finite(moved), moved, weights)

    weights = lax.fori_loop(0, pace.block, step, chain.weights)
    report = jr.split(jr.fold_in(random.report, block))
    return chain.at(weights), _terms(chain, weights, problem, *report)


def langevin_step(weights: PyTree, gradient: PyTree, size: Scalar, *, key: PRNGKeyArray) -> PyTree:
    """θ + ε ∇ ln p + √(2ε) η, η standard normal (Welling and Teh 2011, eq. 4)."""
    flat, unravel = ravel_pytree(weights)
    eta = unravel(jr.normal(key, flat.shape, flat.dtype))
    return jax.tree.map(
        lambda w, g, n: w + size * g + jnp.sqrt(2 * size) * n, weights, gradient, eta
    )


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
    return problem.objective(model, batch, problem.train.count, key=path_key)
