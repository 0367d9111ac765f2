"""Gaussian estimators: a Gaussian is carried through every step, by slopes or by points.

Extended: the step is linearised at the mean. Sigma points: a few points with the mean and the
covariance of the state go through the step themselves, which sees its curvature (Julier and Uhlmann
2004; cubature: Arasaratnam and Haykin 2009).
"""

import abc
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jax import lax

from hybridsde._linear import solve_lower_transposed
from hybridsde._types import Array, Float, PRNGKeyArray
from hybridsde.estimate.estimator import (
    AbstractEstimator,
    Estimated,
    Record,
    Steps,
    with_first,
)
from hybridsde.estimate.filter import carried, first_state, observe
from hybridsde.estimate.gaussian import GaussianState
from hybridsde.estimate.states import Track, backward_paths, factor
from hybridsde.model import SDE
from hybridsde.simulate import AbstractSolver

CUBATURE, UNSCENTED = "cubature", "unscented"
CENTRAL = {CUBATURE: 0.0, UNSCENTED: 1 / 3}
"""Weight of the point at the mean: none, or that which suits the fourth moment of one state."""


class AbstractKalman(AbstractEstimator):
    """Forward with Gaussians, backward by sampling; see `estimate.states`."""

    @property
    def width(self) -> int:
        """One Gaussian."""
        return 1

    @abc.abstractmethod
    def predict(
        self, sde: SDE, solver: AbstractSolver, step: Steps, state: GaussianState
    ) -> tuple[GaussianState, Float[Array, "state state"]]:
        """The state after one step, and the slope A that ties it to the one before."""

    def track(self, record: Record) -> Track:
        """Filter one series and keep everything."""
        sde, observation = record.sde, record.model.observation

        def advance(state: GaussianState, step: Steps):
            foretold, slope = self.predict(sde, record.solver, step, state)
            told, found = observe(sde, observation, step.y, step.seen, foretold)
            foretold = GaussianState(sde.clip(foretold.mean), foretold.covariance)
            return told, (told, foretold, slope, found.log_prob)

        first = first_state(record.model, record.sde, record.series)
        _, (told, foretold, slope, log_prob) = lax.scan(advance, first, record.steps)
        return Track(first, told, foretold, slope, log_prob)

    def __call__(self, record: Record, *, draws: int, smooth: bool, key: PRNGKeyArray) -> Estimated:
        """Backward sampling, or draws from every filtered Gaussian."""
        found = self.track(record)
        shape = (draws, len(found.log_prob) + 1, record.model.states)
        normals = jr.normal(key, shape, record.series.values.dtype)
        if smooth:
            paths = jax.vmap(lambda normal: backward_paths(found, normal))(normals)
        else:
            whole = found.whole
            roots = jax.vmap(factor)(whole.covariance)
            paths = whole.mean + jnp.einsum("kij,skj->ski", roots, normals)
        foretold = with_first(found.first, found.foretold)
        paths = jax.vmap(jax.vmap(record.sde.clip))(paths)
        return Estimated(paths, found.log_prob.sum(), foretold.mean, foretold.covariance)


class ExtendedKalman(AbstractKalman):
    """Linearised at the mean: the filter of the loss. Exact for linear drifts."""

    def predict(
        self, sde: SDE, solver: AbstractSolver, step: Steps, state: GaussianState
    ) -> tuple[GaussianState, Float[Array, "state state"]]:
        """M ← φ(m), P ← A P Aᵀ + B Bᵀ Δt."""
        grid = step.grid
        found = solver.transition(sde, grid.t, state.mean, grid.u, grid.dt, step.noise)
        return carried(found, grid.dt, state), found.by_state


class SigmaPointKalman(AbstractKalman):
    """Points χ_i with the mean and covariance of the state go through the step.

    χ_0 = m₀ with weight w, and χ = m₀ ± √(n/(1 − w)) S e_j with (1 − w)/2n each, S Sᵀ = P₀. Then
    m = Σ w_i φ(χ_i),  P = Σ w_i (φ(χ_i) − m)(φ(χ_i) − m)ᵀ + B Bᵀ Δt, with B at the old mean. The
    slope is that of the best line through the points, A = Σ w_i (φ(χ_i) − m)(χ_i − m₀)ᵀ P₀⁻¹.
    """

    rule: str = eqx.field(static=True, default=CUBATURE)

    def __check_init__(self):
        if self.rule not in CENTRAL:
            raise ValueError(f"`rule` must be one of {', '.join(CENTRAL)}, but is {self.rule!r}.")

    def points(self, states: int) -> tuple[Float[Array, "point state"], Float[Array, " point"]]:
        """Of a standard Gaussian, and their weights."""
        middle = CENTRAL[self.rule]
        away = math.sqrt(states / (1 - middle)) * jnp.eye(states)
        z = jnp.concatenate([jnp.zeros((1, states)), away, -away])
        outer = jnp.full(2 * states, (1 - middle) / (2 * states))
        return z, jnp.concatenate([jnp.array([middle]), outer])

    def predict(
        self, sde: SDE, solver: AbstractSolver, step: Steps, state: GaussianState
    ) -> tuple[GaussianState, Float[Array, "state state"]]:
        """By a rule of integration against a Gaussian."""
        grid, noise, still = step.grid, step.noise, jnp.zeros_like(state.mean)
        root = factor(state.covariance)
        z, weight = self.points(len(still))

        def through(z: Float[Array, " state"]) -> Float[Array, " state"]:
            h = state.mean + root @ z
            after, _ = solver.step(sde, grid.t, h, grid.u, grid.dt, still, noise)
            return after

        after = jax.vmap(through)(z)
        mean = weight @ after
        apart = after - mean
        b = solver.transition(sde, grid.t, state.mean, grid.u, grid.dt, noise).by_noise
        covariance = (apart.T * weight) @ apart + b @ b.T * grid.dt
        # Σ w (φ − m) zᵀ = A S.
        slope = solve_lower_transposed(root, z.T @ (apart.T * weight).T)
        return GaussianState(mean, 0.5 * (covariance + covariance.T)), slope.T
