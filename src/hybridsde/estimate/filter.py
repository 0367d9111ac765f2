"""The likelihood of a series with its Wiener noise integrated out: a Kalman filter.

Averaging ln p(y | h) over sampled paths rewards paths that do not spread, so it drives a learned
diffusion to zero. Here the state is a Gaussian that is carried through the drift and updated by
every observation; both sources of spread keep their meaning:

    ln p(Y) = Σ_k ln p(y_k | y_1..k−1)
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jax import lax

from hybridsde._streams import Beside, beside
from hybridsde._types import Array, Bool, Float, Int, PRNGKeyArray, PyTree, Scalar
from hybridsde.data import Batch, Entry, Grid
from hybridsde.estimate.censored import at_limit
from hybridsde.estimate.gaussian import GaussianState, Innovation, Limits, update
from hybridsde.model import SDE, AbstractObservation, BayesianSDE, GaussianObservation
from hybridsde.simulate import AbstractSolver
from hybridsde.simulate.solver import Transition, path_energy

LONG = 1 << 16
"""Many more than there are networks."""
KEPT = 1024
"""Along so many steps all is kept for the gradient; of longer series it is computed again."""
FRESH = 0.25
"""So many of the pieces of recordings begin as a new recording would, and not where rows before
them have led: forecasts begin like that too, and p(h₀) is learned from it."""


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
    ahead: bool = False,
    key: PRNGKeyArray,
) -> Filtered:
    """Filter every series under `samples` draws of the weights; the first time is given.

    With `ahead`, a series is filtered up to a random row and forecast from there: the rows after it
    are compared with what is then expected and tell the state nothing. In half of the cases the
    row lies beyond the end. Every term is the log score of a forecast, one row or many ahead.

    The path KL is that of the filtered mean: ½ Σ_k f(m_k)ᵀ J⁻¹ f(m_k) Δt_k. Its gradient reaches
    the weights alone; G and the observation noise are decided by the likelihood.
    """
    weight_key, call_key = jr.split(key)
    numbers = jnp.arange(samples * batch.count, dtype=jnp.uint32).reshape(samples, batch.count)

    rows = batch.times.shape[1]
    until = jnp.full(batch.count, rows)
    if ahead:
        until = jr.randint(beside(key, Beside.UNTOLD), (batch.count,), 0, 2 * rows)

    fresh = jr.bernoulli(beside(key, Beside.FRESH), FRESH, (batch.count,))

    # Networks take turns, and which comes first is left to chance.
    turns = jr.randint(beside(key, Beside.TURN), (), 0, LONG) + jnp.arange(samples)

    def under_one_network(weight_key, numbers, turn) -> tuple[Array, Array]:
        sde = model.draw(key=weight_key, number=turn)
        steps = batch.solver_steps(solver.substeps)
        noise = sde.learned.network.noise(numbers, steps, key=call_key)
        axes = (0, jax.tree.map(lambda _: 1, noise), 0, 0)

        def one(
            series: Batch, noise: PyTree, until: Int[Array, ""], fresh: Bool[Array, ""]
        ) -> tuple[Array, Array]:
            first = _entered(model, sde, series, turn, fresh)
            found, kl = _filter(model, sde, solver, series, noise, until, first)
            return jax.vmap(lambda row: row.log_prob)(found).sum(), kl

        return jax.vmap(one, axes)(batch, noise, until, fresh)

    return Filtered(*jax.vmap(under_one_network)(jr.split(weight_key, samples), numbers, turns))


def innovations(
    model: BayesianSDE,
    sde: SDE,
    solver: AbstractSolver,
    batch: Batch,
    until: Int[Array, ""] | None = None,
    first: GaussianState | None = None,
) -> Innovation:
    """How every row of every series differs from what the rows before it foretold.

    Rows after `until` are compared and tell nothing. Arrays are series × step × obs; steps between
    rows have seen nothing. Has forward-mode gradients. `first` is what is known of each series at
    its first row, p(h₀) by default.
    """
    rows = jnp.asarray(batch.times.shape[1] if until is None else until)

    def one(series: Batch, first: GaussianState | None) -> Innovation:
        begins = first_state(model, sde, series) if first is None else first
        return _filter(model, sde, solver, series, None, rows, begins)[0]

    return jax.vmap(one)(batch, first)


def row_scores(
    model: BayesianSDE, solver: AbstractSolver, batch: Batch
) -> Float[Array, "series step"]:
    """Ln p(y_k | y_1..k−1) at every step that reaches a row, at the mean of the weights.

    Has forward-mode gradients.
    """
    found = innovations(model, model.typical(), solver, batch)
    return jax.vmap(jax.vmap(lambda row: row.log_prob))(found)


def _filter(
    model: BayesianSDE,
    sde: SDE,
    solver: AbstractSolver,
    series: Batch,
    noise: PyTree,
    until: Int[Array, ""],
    first: GaussianState,
) -> tuple[Innovation, Scalar]:
    """One series: predict step by step; where a row is reached, compare and update."""
    grid = series.grid(solver.substeps, model.interpolation)
    y = series.values[grid.row]
    seen = series.observed[grid.row] & (grid.row > 0)[:, None]

    def advance(carry, x):
        state, kl = carry
        grid, noise, y, seen = x
        state, kl = predict(sde, solver, grid, noise, state, kl)
        state, found = observe(sde, model.observation, y, seen, state, grid.row <= until)
        return (state, kl), found

    if len(grid.dt) > KEPT:
        advance = jax.checkpoint(advance)
    carry = (first, jnp.zeros((), series.values.dtype))
    (_, kl), found = lax.scan(advance, carry, (grid, noise, y, seen))
    return found, kl


def first_state(model: BayesianSDE, sde: SDE, series: Batch) -> GaussianState:
    """p(h₀) of one series; exact where a start is affine in its normals."""

    def start(epsilon: Float[Array, " normal"]) -> Float[Array, " state"]:
        return model.initial_state(sde, series, epsilon)

    zero = jnp.zeros(model.start_normals, series.values.dtype)
    factor = jax.jacfwd(start)(zero)
    return GaussianState(start(zero), factor @ factor.T)


def _entered(
    model: BayesianSDE, sde: SDE, series: Batch, turn: Int[Array, ""], fresh: Bool[Array, ""]
) -> GaussianState:
    """Where a piece of a recording begins: as rows before it say, or as a new recording would."""
    anew, entry = first_state(model, sde, series), series.entry
    if entry is None:
        return anew
    network = turn % entry.mean.shape[0]
    carried_on = GaussianState(entry.mean[network], entry.covariance[network])
    lost = ~jnp.isfinite(carried_on.mean).all() | ~jnp.isfinite(carried_on.covariance).all()
    begins = fresh | lost | ~entry.known
    return jax.tree.map(lambda one, other: jnp.where(begins, one, other), anew, carried_on)


def entries(model: BayesianSDE, solver: AbstractSolver, past: Batch, *, key: PRNGKeyArray) -> Entry:
    """p(h | rows before) at the last row of every past, under a draw of each network.

    Pieces of a long recording then begin where the rows before them have led, and not at a noisy
    row. No gradient goes through it: the likelihood of the whole recording is the sum over its
    pieces, and its slope is that of each piece from where it begins.
    """
    numbers = jnp.arange(past.count, dtype=jnp.uint32)
    networks = jnp.arange(model.network.turns)

    def under_one(key: PRNGKeyArray, network: Int[Array, ""]) -> GaussianState:
        weight_key, call_key = jr.split(key)
        sde = model.draw(key=weight_key, number=network)
        steps = past.solver_steps(solver.substeps)
        noise = sde.learned.network.noise(numbers, steps, key=call_key)

        def one(series: Batch, noise: PyTree) -> GaussianState:
            return to_the_end(model, sde, solver, series, noise, first_state(model, sde, series))[0]

        return jax.vmap(one, (0, jax.tree.map(lambda _: 1, noise)))(past, noise)

    found = jax.vmap(under_one, out_axes=1)(jr.split(key, len(networks)), networks)
    found = lax.stop_gradient(found)
    return Entry(found.mean, found.covariance, past.recorded.sum(1) > 1)


def to_the_end(
    model: BayesianSDE,
    sde: SDE,
    solver: AbstractSolver,
    series: Batch,
    noise: PyTree,
    first: GaussianState,
) -> tuple[GaussianState, Scalar]:
    """The state after the last row of one series, and ln p(Y); nothing on the way is kept."""
    grid = series.grid(solver.substeps, model.interpolation)
    nothing = jnp.zeros((), series.values.dtype)

    def advance(carry, x):
        state, total = carry
        grid, noise = x
        step = solver.transition(sde, grid.t, state.mean, grid.u, grid.dt, noise)
        state = carried(step, grid.dt, state)
        seen = series.observed[grid.row] & (grid.row > 0)
        state, found = observe(sde, model.observation, series.values[grid.row], seen, state)
        return (state, total + found.log_prob), None

    (last, total), _ = lax.scan(advance, (first, nothing), (grid, noise))
    return last, total


def predict(
    sde: SDE, solver: AbstractSolver, grid: Grid, noise: PyTree, state: GaussianState, kl: Scalar
) -> tuple[GaussianState, Scalar]:
    """One step of the solver, linearised about the mean: m ← φ(m), P ← A P Aᵀ + B Bᵀ Δt.

    φ(h, ΔW) is the step, A = ∂φ/∂h and B = ∂φ/∂ΔW: an extended Kalman filter for any scheme. Exact
    where the drift is linear and G does not depend on the state.
    """
    t, u, dt = grid.t, grid.u, grid.dt
    moved = carried(solver.transition(sde, t, state.mean, u, dt, noise), dt, state)
    held = eqx.tree_at(lambda s: s.diffusion, sde, lax.stop_gradient(sde.diffusion))
    before = lax.stop_gradient(state.mean)
    energy = path_energy(held, t, before, sde.learned(t, before, u, noise), dt)
    return moved, kl + energy


def carried(step: Transition, dt: Scalar, state: GaussianState) -> GaussianState:
    """A Gaussian through a step whose slopes are known: m ← φ(m), P ← A P Aᵀ + B Bᵀ Δt.

    As if states had no limits: `observe` brings it back inside.
    """
    a, b = step.by_state, step.by_noise
    covariance = a @ state.covariance @ a.T + b @ b.T * dt
    return GaussianState(step.mean, 0.5 * (covariance + covariance.T))


def observe(
    sde: SDE,
    observation: AbstractObservation,
    y: Float[Array, " obs"],
    observed: Bool[Array, " obs"],
    state: GaussianState,
    told: Bool[Array, ""] | bool = True,
) -> tuple[GaussianState, Innovation]:
    """What one row says about the state, and how it differs from what was foretold.

    The state may lie outside its limits, where a step has led it; what is known then lies inside.
    A measurement at a limit is compared with what was foretold without limits.
    """
    if not isinstance(observation, GaussianObservation):
        raise ValueError(
            'The estimator "filtered" needs observations that are linear in the states; with a '
            'decoder take "mean_log" or "log_mean".'
        )
    sd, matrix = jnp.broadcast_to(observation.sd.value, y.shape), observation.matrix.value
    inside = GaussianState(sde.clip(state.mean), state.covariance)
    limits = None
    if observation.ends is not None:
        limits = Limits(
            at_limit(y, observation.ends),
            matrix @ (state.mean - inside.mean),
        )
    found, innovation = update(inside, matrix, sd, y, observed, told, limits)
    return GaussianState(sde.clip(found.mean), found.covariance), innovation
