"""The likelihood of a series with its Wiener noise integrated out: a Kalman filter.

Averaging ln p(y | h) over sampled paths rewards paths that do not spread, so it drives a learned
diffusion to zero. Here the state is a Gaussian that is carried through the drift and corrected by
every observation; both sources of spread keep their meaning:

    ln p(Y) = Σ_k ln p(y_k | y_1..k−1)
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jax import lax

from hybridsde._types import Array, Bool, Float, PRNGKeyArray, PyTree, Scalar
from hybridsde.data import Batch
from hybridsde.model import SDE, AbstractObservation, BayesianSDE, GaussianObservation
from hybridsde.simulate.grid import Grid
from hybridsde.simulate.solver import AbstractSolver


class Belief(eqx.Module):
    """A Gaussian over the state."""

    mean: Float[Array, " state"]
    covariance: Float[Array, "state state"]


class Filtered(eqx.Module):
    """Log-likelihoods and path KLs of all series under draws of the weights."""

    log_likelihood: Float[Array, "sample series"]
    kl: Float[Array, "sample series"]


def filtered(
    model: BayesianSDE,
    solver: AbstractSolver,
    batch: Batch,
    *,
    samples: int,
    key: PRNGKeyArray,
) -> Filtered:
    """Filter every series under `samples` draws of the weights; the first time is given.

    The path KL is that of the filtered mean: ½ Σ_k f(m_k)ᵀ J⁻¹ f(m_k) Δt_k. Its gradient reaches
    the weights alone; G and the observation noise are decided by the likelihood.
    """
    weight_key, call_key = jr.split(key)
    numbers = jnp.arange(samples * batch.count, dtype=jnp.uint32).reshape(samples, batch.count)

    def under_one_network(weight_key, numbers) -> tuple[Array, Array]:
        sde = model.draw(key=weight_key)
        steps = solver.substeps * batch.steps.shape[1]
        noise = sde.learned.network.noise(numbers, steps, key=call_key)
        axes = (0, jax.tree.map(lambda _: 1, noise))
        return jax.vmap(lambda one, noise: _filter(model, sde, solver, one, noise), axes)(
            batch, noise
        )

    return Filtered(*jax.vmap(under_one_network)(jr.split(weight_key, samples), numbers))


def _filter(
    model: BayesianSDE, sde: SDE, solver: AbstractSolver, series: Batch, noise: PyTree
) -> tuple[Scalar, Scalar]:
    """One series: predict to the next time, compare, correct."""
    clock = (series.times, series.steps, series.inputs)
    grid = Grid.refine(*clock, solver.substeps, model.interpolation)
    intervals = len(series.steps)
    steps = jax.tree.map(
        lambda leaf: leaf.reshape(intervals, solver.substeps, *leaf.shape[1:]), (grid, noise)
    )

    @jax.checkpoint
    def advance(carry, x):
        belief, kl = carry
        steps, y, seen = x
        (belief, kl), _ = lax.scan(
            lambda c, s: (predict(sde, solver, s[0], s[1], c[0], c[1]), None), (belief, kl), steps
        )
        belief, log_prob = correct(model.observation, y, seen, belief)
        return (belief, kl), log_prob

    carry = (first_belief(model, series), jnp.zeros((), series.values.dtype))
    (_, kl), log_probs = lax.scan(advance, carry, (steps, series.values[1:], series.observed[1:]))
    return log_probs.sum(), kl


def first_belief(model: BayesianSDE, series: Batch) -> Belief:
    """p(h₀) of one series; exact where a start is affine in its normals."""

    def start(epsilon: Float[Array, " normal"]) -> Float[Array, " state"]:
        return model.initial_state(series.values, series.observed, epsilon)

    zero = jnp.zeros(model.start_normals, series.values.dtype)
    factor = jax.jacfwd(start)(zero)
    return Belief(start(zero), factor @ factor.T)


def predict(
    sde: SDE, solver: AbstractSolver, grid: Grid, noise: PyTree, belief: Belief, kl: Scalar
) -> tuple[Belief, Scalar]:
    """One step of the solver, linearised about the mean: m ← φ(m), P ← A P Aᵀ + B Bᵀ Δt.

    φ(h, ΔW) is the step, A = ∂φ/∂h and B = ∂φ/∂ΔW: an extended Kalman filter for any scheme. Exact
    where the drift is linear and G does not depend on the state.
    """

    def step(sde: SDE, h: Float[Array, " state"], dw: Float[Array, " state"]):
        return solver.step(sde, grid.t, h, grid.u, grid.dt, dw, noise)

    m, still = belief.mean, jnp.zeros_like(belief.mean)
    a = jax.jacfwd(lambda h: step(sde, h, still)[0])(m)
    b = jax.jacfwd(lambda dw: step(sde, m, dw)[0])(still)
    covariance = a @ belief.covariance @ a.T + b @ b.T * grid.dt
    held = eqx.tree_at(lambda s: s.diffusion, sde, lax.stop_gradient(sde.diffusion))
    _, energy = step(held, lax.stop_gradient(m), still)
    return Belief(step(sde, m, still)[0], 0.5 * (covariance + covariance.T)), kl + energy


def correct(
    observation: AbstractObservation,
    y: Float[Array, " obs"],
    observed: Bool[Array, " obs"],
    belief: Belief,
) -> tuple[Belief, Scalar]:
    """What one observation says, and ln p(y | what came before).

    Components have independent noise, so they are taken in one at a time: with s = cᵀPc + σ²,
    m ← m + Pc (y − cᵀm)/s and P ← P − Pc cᵀP/s. No matrix is inverted; a missing one changes
    nothing.
    """
    if not isinstance(observation, GaussianObservation):
        raise ValueError(
            'The estimator "filtered" needs observations that are linear in the states; with a '
            'decoder take "mean_log" or "log_mean".'
        )
    sd = jnp.broadcast_to(observation.sd.value, y.shape)

    def take_in(carry, x):
        m, p, total = carry
        c, y, seen, sd = x
        pc = p @ c
        s = c @ pc + sd**2
        error = y - c @ m
        gain = jnp.where(seen, pc / s, 0.0)
        log_prob = -0.5 * (error**2 / s + jnp.log(2 * jnp.pi * s))
        p = p - jnp.outer(gain, pc)
        return (m + gain * error, 0.5 * (p + p.T), total + jnp.where(seen, log_prob, 0.0)), None

    rows = (observation.matrix.value, y, observed, sd)
    start = (belief.mean, belief.covariance, jnp.zeros((), y.dtype))
    (m, p, total), _ = lax.scan(take_in, start, rows, unroll=min(len(y), 4))
    return Belief(m, p), total
