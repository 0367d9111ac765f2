"""Fisher scoring through the filter: second-order steps where numbers are few.

The log-likelihood of a filter is Σ −½ (e²/s + ln 2πs) over innovations e of variance s. Its
gradient and its expected curvature need first derivatives alone (Åström 1980):

    g = Σ −e e'/s + ½ s'/s (e²/s − 1),      I = Σ e'ᵀe'/s + ½ (s'/s)ᵀ(s'/s)

A measurement at a limit adds ln Φ(−α) with the gradient −λα' and the curvature δα'ᵀα'; see `Tail`.
What is known beside equations adds its ln p(K | θ) with its own gradient and curvature, as Gauss
and Newton have it; see `Constraints`. Everything is in double precision: terms of a library may be
nearly the same.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.flatten_util import ravel_pytree

from hybridsde._parameters import trainable
from hybridsde._types import Array, Bool, Float, Int, PyTree
from hybridsde.data import Batch
from hybridsde.estimate.censored import Tail
from hybridsde.hybrid import symmetric
from hybridsde.hybrid.comparing import AbstractComparison, RowByRow
from hybridsde.model import BayesianSDE
from hybridsde.model.bayesian import NothingLearned
from hybridsde.model.diffusion import has_logarithms
from hybridsde.model.network import AbstractNetwork
from hybridsde.simulate import AbstractSolver

SIDE_BY_SIDE = 32
"""Series that are filtered at once at most; others follow, so that memory stays bounded."""
SLOPES = 20_000_000
"""And no more than have so many derivatives together."""
LANES = 256
"""Slopes are computed for so many numbers and series at once, in as many turns as are needed: one
program serves all choices of numbers, and takes less time where they are few."""
LOOSE = 3.0
"""Spread of the prior of numbers that are not coefficients, about where they begin, in units of
their size there or of one."""
FURTHEST = 1.0
"""No such number moves further in a step, in the same units."""
ENOUGH = 1e-3
"""A search is over when a step gains less than this in log-probability."""
STUCK = 1e8
"""And when steps are damped more than this."""


@dataclass(frozen=True)
class Local:
    """A log-likelihood about a point: ln p(Y | θ + δ) ≈ value + gᵀδ − ½ δᵀIδ."""

    at: Float[np.ndarray, " number"]
    value: float
    gradient: Float[np.ndarray, " number"]
    information: Float[np.ndarray, "number number"]
    innovations: Float[np.ndarray, "series step obs"]
    """In units of what was foretold; NaN where nothing was measured."""
    log_variances: Float[np.ndarray, "series step obs"]
    """Of what was foretold."""

    @property
    def finite(self) -> bool:
        """Whether all of it is."""
        return bool(np.isfinite(self.value) and np.isfinite(self.information).all())

    @property
    def linear(self) -> Float[np.ndarray, " number"]:
        """B of the same parabola written as bᵀθ − ½ θᵀIθ."""
        return self.information @ self.at + self.gradient


class Moving(NamedTuple):
    """Which numbers slopes are computed in, beside normals of starts."""

    order: Int[Array, " number"]
    """All of them, those that move first."""
    count: Int[Array, ""]
    """How many move."""


class LogLikelihood:
    """Ln p(Y) as a function of the coefficients of a network and all other numbers of a model.

    Numbers are in one vector: coefficients as they stand in the network, then the others: those of
    the model, and normals of starts where the comparison looks for them. A library has its
    coefficients in the order of column, state.
    """

    def __init__(
        self,
        model: BayesianSDE,
        network: AbstractNetwork,
        solver: AbstractSolver,
        batch: Batch,
        comparison: AbstractComparison | None = None,
    ):
        self._single = eqx.tree_at(lambda m: m.network, model, NothingLearned(model.states))
        with jax.enable_x64(True):
            self._model, self._network, self._batch = map(_double, (self._single, network, batch))
            self.coefficients = ravel_pytree(eqx.filter(network, trainable(network)))[0].size
            """How many there are."""
            moved, _ = eqx.partition(self._model, trainable(self._model))
            numbers = np.asarray(ravel_pytree(moved)[0])
            self._comparison = _double(comparison or RowByRow())
            self.normals = batch.count * model.start_normals * self._comparison.finds_starts
            """How many normals of starts are last."""
            self.others = np.concatenate([numbers, np.zeros(self.normals)])
            nowhere = jax.tree.map(jnp.zeros_like, moved)

            def marked(part: Callable[[BayesianSDE], PyTree]) -> Bool[np.ndarray, " other"]:
                ones = jax.tree.map(jnp.ones_like, part(nowhere))
                found = ravel_pytree(eqx.tree_at(part, nowhere, ones))[0]
                return np.concatenate([np.asarray(found, bool), np.zeros(self.normals, bool)])

            self.physical = marked(lambda m: m.known.physics)
            """Which of the others are parameters of the known physics."""
            self.diffusive = marked(lambda m: m.diffusion)
            """Which of them make up the diffusion,"""
            self.measuring = marked(lambda m: m.observation)
            """the noise of measurements,"""
            self.starting = marked(lambda m: m.start)
            """and p(h₀)."""
        self.scaled_diffusion = has_logarithms(model.diffusion)
        """Whether the numbers of the diffusion are logarithms of spreads."""
        self._solver = solver

    @property
    def start(self) -> Float[np.ndarray, " number"]:
        """Coefficients of zero, and the others as they are."""
        return np.concatenate([np.zeros(self.coefficients), self.others])

    def __call__(
        self, theta: Float[np.ndarray, " number"], free: Bool[np.ndarray, " number"] | None = None
    ) -> Local:
        """The log-likelihood about a point; only slopes in the free numbers are sure to be there.

        Of others, gradient and information hold what knowledge beside equations says at most.
        """
        return self.about_each(theta[None], free=free)[0]

    def about_each(
        self,
        thetas: Float[np.ndarray, "point number"],
        counted: Bool[np.ndarray, "point series time"] | None = None,
        free: Bool[np.ndarray, " number"] | None = None,
    ) -> list[Local]:
        """The log-likelihood about several points, side by side; see `AbstractComparison`."""
        rows = np.ones((), bool) if counted is None else counted
        shape = (len(thetas), *self._batch.times.shape)
        with jax.enable_x64(True):
            found = _locals(
                jnp.asarray(thetas),
                jnp.asarray(np.broadcast_to(rows, shape)),
                self._moving(free),
                self._model,
                self._network,
                self._solver,
                self._batch,
                self._comparison,
            )
        values, *others = (np.asarray(one) for one in found)
        return [
            Local(theta, float(value), *rest)
            for theta, value, *rest in zip(thetas, values, *others, strict=True)
        ]

    def _moving(self, free: Bool[np.ndarray, " number"] | None) -> Moving | None:
        if free is None:
            return None
        ours = free[: len(free) - self.normals]
        order = np.argsort(~ours, kind="stable")
        return Moving(jnp.asarray(order), jnp.asarray(ours.sum()))

    def model(self, theta: Float[np.ndarray, " number"]) -> BayesianSDE:
        """The model with its other numbers at a point, in single precision, and no learned part."""
        with jax.enable_x64(True):
            moved, _ = eqx.partition(self._model, trainable(self._model))
            end = len(theta) - self.normals
            found = ravel_pytree(moved)[1](jnp.asarray(theta[self.coefficients : end]))
        single = jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf), jnp.float32), found)
        _, held = eqx.partition(self._single, trainable(self._single))
        return eqx.combine(single, held)


def _double(tree: PyTree) -> PyTree:
    return jax.tree.map(
        lambda leaf: jnp.asarray(np.asarray(leaf), float) if eqx.is_inexact_array(leaf) else leaf,
        tree,
    )


@eqx.filter_jit
def _locals(
    thetas: Float[Array, "point number"],
    counted: Bool[Array, "point series time"],
    moving: Moving | None,
    model: BayesianSDE,
    network: AbstractNetwork,
    solver: AbstractSolver,
    batch: Batch,
    comparison: AbstractComparison,
) -> tuple[Array, Array, Array, Array, Array]:
    slopes = batch.solver_steps(solver.substeps) * batch.values.shape[-1] * thetas.size
    together = max(1, min(SIDE_BY_SIDE, SLOPES // max(slopes, 1)))

    def one(theta: Array, counted: Array) -> tuple[Array, Array, Array, Array, Array]:
        return _local(theta, counted, moving, model, network, solver, batch, comparison, together)

    return jax.vmap(one)(thetas, counted)


def _local(
    theta: Float[Array, " number"],
    counted: Bool[Array, "series time"],
    moving: Moving | None,
    model: BayesianSDE,
    network: AbstractNetwork,
    solver: AbstractSolver,
    batch: Batch,
    comparison: AbstractComparison,
    together: int,
) -> tuple[Array, Array, Array, Array, Array]:
    moved, held = eqx.partition(model, trainable(model))
    weights, shape = eqx.partition(network, trainable(network))
    numbers, restore = ravel_pytree(moved)
    flat, fill = ravel_pytree(weights)
    count = flat.size
    end = count + numbers.size
    own = (theta.size - end) // batch.count
    has_limits = model.observation.limits is not None
    numbers_here = end + own
    width, order, needed = numbers_here, jnp.arange(end), jnp.asarray(numbers_here)
    if moving is not None:
        width = min(max(1, LANES // min(together, batch.count)), numbers_here)
        order, needed = moving.order, own + moving.count
    turns = -(-numbers_here // width)

    def of_series(
        x: tuple[Batch, Array, Array],
    ) -> tuple[tuple[Array, Array, Array], tuple[Array, Array]]:
        series, number, counted = x
        # What a recording depends on: all but the normals of other starts.
        normals = end + number * own + jnp.arange(own)
        nowhere = jnp.full(turns * width - numbers_here, theta.size)
        mine = jnp.concatenate([normals, order, nowhere])

        def emit(theta: Float[Array, " number"]) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
            changed = eqx.combine(restore(theta[count:end]), held)
            sde = changed.driven_by(eqx.combine(fill(theta[:count]), shape))
            found = comparison(changed, sde, solver, series, theta[normals], counted)
            error = jnp.where(found.seen, found.error, 0.0).reshape(-1)
            log = jnp.where(found.seen, jnp.log(found.variance), 0.0).reshape(-1)
            side = jnp.zeros_like(error) if found.side is None else found.side.reshape(-1)
            return (error, log), (found.seen.reshape(-1), side)

        def slopes(number: Array | int) -> tuple:
            """What is emitted, and how it changes along some of the numbers."""
            chosen = lax.dynamic_slice(mine, (number * width,), (width,))
            along = jax.nn.one_hot(chosen, theta.size, dtype=theta.dtype)
            forward = partial(jax.jvp, emit, (theta,), has_aux=True)
            return jax.vmap(lambda v: forward((v,)), out_axes=(None, 0, None))(along)

        def turn(number: Array, before: tuple) -> tuple:
            first, here, others = slopes(number)
            put = partial(lax.dynamic_update_slice, start_indices=(number * width, 0))
            return first, jax.tree.map(put, before[1], here), others

        if turns == 1:
            found = slopes(0)
        else:
            first, here, others = jax.eval_shape(slopes, 0)
            whole = jax.tree.map(
                lambda one: jax.ShapeDtypeStruct((turns * width, *one.shape[1:]), one.dtype), here
            )
            nothing = jax.tree.map(
                lambda one: jnp.zeros(one.shape, one.dtype), (first, whole, others)
            )
            found = lax.fori_loop(0, jnp.maximum(1, -(-needed // width)), turn, nothing)
        (error, log), (by_error, by_log), (seen, side) = found
        by_error, by_log = by_error.T, by_log.T
        at_end, seen = seen & (side != 0), seen & (side == 0)
        weight = jnp.where(seen, jnp.exp(-log), 0.0)
        square = error**2 * weight
        value = -0.5 * jnp.sum(jnp.where(seen, square + log + jnp.log(2 * jnp.pi), 0.0))
        gradient = -(error * weight) @ by_error + 0.5 * (square - seen) @ by_log
        information = (by_error.T * weight) @ by_error + 0.5 * (by_log.T * seen) @ by_log
        if has_limits:
            root = jnp.exp(-0.5 * log)
            alpha = side * error * root
            slope = (side * root)[:, None] * by_error - 0.5 * alpha[:, None] * by_log
            tail = Tail.above(alpha)
            value = value + jnp.sum(jnp.where(at_end, tail.log_share, 0.0))
            gradient = gradient - jnp.where(at_end, tail.hazard, 0.0) @ slope
            bend = jnp.where(at_end, tail.narrowing, 0.0)
            information = information + (slope.T * bend) @ slope
        z = jnp.where(seen, error * jnp.sqrt(weight), jnp.nan)
        by_obs = (-1, batch.values.shape[-1])
        gradient = jnp.zeros_like(theta).at[mine].set(gradient, mode="drop")
        whole = jnp.zeros((theta.size, theta.size), theta.dtype)
        information = whole.at[mine[:, None], mine].set(information, mode="drop")
        return (value, gradient, information), (z.reshape(by_obs), log.reshape(by_obs))

    recordings = (batch, jnp.arange(batch.count), counted)
    parts, (z, log) = lax.map(of_series, recordings, batch_size=together)
    value, gradient, information = (part.sum(0) for part in parts)
    if model.constraints is None:
        return value, gradient, information, z, log

    def contradicted(theta: Float[Array, " number"]):
        changed = eqx.combine(restore(theta[count:end]), held)
        sde = changed.driven_by(eqx.combine(fill(theta[:count]), shape))
        found = changed.constraints.value.scaled(sde).reshape(-1)
        return found, found

    slopes, found = jax.jacfwd(contradicted, has_aux=True)(theta)
    return (
        value - 0.5 * found @ found,
        gradient - found @ slopes,
        information + slopes.T @ slopes,
        z,
        log,
    )


@dataclass(frozen=True)
class Prior:
    """Independent Gaussians: coefficients about zero, other numbers about where they began."""

    mean: Float[np.ndarray, " number"]
    precision: Float[np.ndarray, " number"]

    @classmethod
    def of(cls, likelihood: LogLikelihood, precision: Float[np.ndarray, " coefficient"]) -> "Prior":
        """With these precisions of the coefficients; normals are standard ones."""
        loose = 1 / (LOOSE * sizes(likelihood)) ** 2
        loose[len(loose) - likelihood.normals :] = 1.0
        return cls(likelihood.start, np.concatenate([precision, loose]))

    def log_prob(self, theta: Float[np.ndarray, " number"]) -> float:
        """Up to a constant."""
        return -0.5 * float(np.sum(self.precision * (theta - self.mean) ** 2))


def sizes(likelihood: LogLikelihood) -> Float[np.ndarray, " other"]:
    """Of the other numbers, where they begin: one at least."""
    return np.maximum(1.0, np.abs(likelihood.others))


def ascend(
    likelihood: LogLikelihood, about: Local, prior: Prior, free: np.ndarray, damping: float
) -> tuple[Local, float, float]:
    """One damped step among the free numbers: (I + P + λ diag I) δ = g − P(θ − μ).

    Returns where it leads, the damping for the next step, and the gain; about the same point and
    without a gain where the step is not an improvement.
    """
    tried = likelihood(about.at + damped_step(likelihood, about, prior, free, damping), free)
    return after_step(about, tried, prior, damping)


def damped_step(
    likelihood: LogLikelihood, about: Local, prior: Prior, free: np.ndarray, damping: float
) -> Float[np.ndarray, " number"]:
    """δ of `ascend`, zero for what is not free."""
    moving = np.flatnonzero(free)
    slope = (about.gradient - prior.precision * (about.at - prior.mean))[moving]
    bend = (about.information + np.diag(prior.precision))[np.ix_(moving, moving)]
    ridge = damping * (np.diag(about.information)[moving] + 1e-9)
    step = np.zeros_like(about.at)
    step[moving] = symmetric.solve(bend + np.diag(ridge), slope)
    count, most = likelihood.coefficients, FURTHEST * sizes(likelihood)
    step[count:] = np.clip(step[count:], -most, most)
    return step


def after_step(
    about: Local, tried: Local, prior: Prior, damping: float
) -> tuple[Local, float, float]:
    """Where a step has led, the damping for the next, and the gain; no change without a gain."""
    before = about.value + prior.log_prob(about.at)
    gain = tried.value + prior.log_prob(tried.at) - before
    if tried.finite and gain > 0:
        return tried, max(damping / 5, 1e-9), gain
    return about, damping * 10, 0.0


def climb(
    likelihood: LogLikelihood, about: Local, prior: Prior, free: np.ndarray, iterations: int
) -> Local:
    """Steps until nothing is gained any more."""
    damping = 1e-3
    for _ in range(iterations):
        after, damping, gain = ascend(likelihood, about, prior, free, damping)
        if damping > STUCK or (after is not about and gain < ENOUGH):
            return after
        about = after
    return about
