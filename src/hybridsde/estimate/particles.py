"""Estimators by samples: particle filters with backward sampling, and ensemble Kalman filters.

For states that are not Gaussian given the data: two wells, switches, strong curvature. The filters
are those of cuthbert. Particles are guided: each is drawn given the row that its step reaches,
which for a Gaussian step and a linear measurement is possible exactly,

    h_k ~ p(h_k | h_k−1, y_k),   weight p(y_k | h_k−1)      (Doucet, Godsill and Andrieu 2000)
"""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from cuthbert import filter as run_filter
from cuthbert import smoother as run_smoother
from cuthbert.ensemble_kalman import ensemble_kalman_filter, ensemble_rts_smoother
from cuthbert.smc import backward_sampler, particle_filter
from cuthbertlib.resampling import ess_decorator, systematic
from cuthbertlib.smc.smoothing import exact_sampling

from hybridsde._linear import solve_lower
from hybridsde._types import Array, Float, PRNGKeyArray, Scalar
from hybridsde.estimate.estimator import (
    AbstractEstimator,
    Estimated,
    Record,
    Steps,
    with_first,
)
from hybridsde.estimate.filter import first_state, observe
from hybridsde.estimate.gaussian import GaussianState, Innovation
from hybridsde.estimate.states import factor
from hybridsde.model import SDE, GaussianObservation
from hybridsde.simulate import AbstractSolver

RESAMPLED = 0.5
"""Particles are drawn anew when their effective number falls below this share."""
SMALLEST_STEP = 1e-6
"""Spread of a step, in those of the state, below which two states count as the same."""


class Move(eqx.Module):
    """One step of the solver from a given state, as a Gaussian: N(φ(h), B Bᵀ Δt)."""

    sde: SDE
    solver: AbstractSolver
    observation: GaussianObservation
    size: Float[Array, " state"]
    """Typical spreads of the states."""

    def __call__(self, h: Float[Array, " state"], step: Steps) -> GaussianState:
        """Where a state goes."""
        free = self.without_limits(h, step)
        return GaussianState(self.sde.clip(free.mean), free.covariance)

    def without_limits(self, h: Float[Array, " state"], step: Steps) -> GaussianState:
        """Where it would go if nothing stopped it."""
        grid = step.grid
        found = self.solver.transition(self.sde, grid.t, h, grid.u, grid.dt, step.noise)
        return GaussianState(found.mean, found.by_noise @ found.by_noise.T * grid.dt)

    def told(self, h: Float[Array, " state"], step: Steps) -> tuple[GaussianState, Innovation]:
        """The same given the row that the step reaches, and how likely that row was."""
        free = self.without_limits(h, step)
        return observe(self.sde, self.observation, step.y, step.seen, free)

    def guided(self, key: PRNGKeyArray, h: Float[Array, " state"], step: Steps):
        """A draw given the row that the step reaches."""
        told, _ = self.told(h, step)
        normal = jr.normal(key, h.shape, h.dtype)
        return self.sde.clip(told.mean + factor(told.covariance) @ normal)

    def plain(self, h: Float[Array, " state"], key: PRNGKeyArray, step: Steps):
        """A draw that knows nothing of the row."""
        grid = step.grid
        dw = jnp.sqrt(grid.dt) * jr.normal(key, h.shape, h.dtype)
        after, _ = self.solver.step(self.sde, grid.t, h, grid.u, grid.dt, dw, step.noise)
        return self.sde.clip(after)

    def weight(
        self, before: Float[Array, " state"], now: Float[Array, " state"], step: Steps
    ) -> Scalar:
        """Ln p(y_k | h_k−1)."""
        del now
        return self.told(before, step)[1].log_prob

    def joint(
        self, before: Float[Array, " state"], now: Float[Array, " state"], step: Steps
    ) -> Scalar:
        """Ln p(h_k | h_k−1), which is what ties a state to the one before, given what follows.

        A step of length zero, which pads a series, ties a state to itself.
        """
        state = self(before, step)
        least = jnp.diag((SMALLEST_STEP * self.size) ** 2)
        root = factor(state.covariance + least)
        z = solve_lower(root, now - state.mean)
        return -0.5 * z @ z - jnp.sum(jnp.log(jnp.diag(root)))


class Particles(AbstractEstimator):
    """A guided particle filter, and paths by backward sampling (Godsill, Doucet and West 2004)."""

    count: int = eqx.field(static=True, default=256)

    @property
    def width(self) -> int:
        """All samples."""
        return self.count

    def __call__(self, record: Record, *, draws: int, smooth: bool, key: PRNGKeyArray) -> Estimated:
        """All distributions are those of the particles."""
        filter_key, init_key, back_key = jr.split(key, 3)
        steps, move = record.steps, _move(record)
        resample = ess_decorator(systematic.resampling, RESAMPLED)
        searched = particle_filter.build_filter(
            partial(_start, record),
            _any(move.guided),
            _any(move.weight),
            self.count,
            resample,
        )
        begun = searched.init_prepare(key=init_key)
        found = run_filter(searched, steps, begun, key=filter_key)
        if smooth:
            back = backward_sampler.build_smoother(
                _any(move.joint), exact_sampling.simulate, systematic.resampling, draws
            )
            paths = run_smoother(back, found, steps, key=back_key).particles
        else:
            keys = jr.split(back_key, len(found.log_weights))
            paths = jax.vmap(partial(_drawn, draws=draws))(keys, found.particles, found.log_weights)
        before, weights = found.particles[:-1], found.log_weights[:-1]
        foretold = jax.vmap(partial(_mixture, move))(before, weights, steps)
        whole = with_first(first_state(record.model, record.sde, record.series), foretold)
        evidence = found.log_normalizing_constant[-1]
        return Estimated(jnp.moveaxis(paths, 1, 0), evidence, whole.mean, whole.covariance)


class EnsembleKalman(AbstractEstimator):
    """Samples that are moved by the model and pulled to the data by their own covariance.

    Stochastic, with perturbed observations (Evensen 1994; Burgers, van Leeuwen and Evensen 1998);
    smoothed backward in the same way. For many states.
    """

    count: int = eqx.field(static=True, default=256)

    @property
    def width(self) -> int:
        """All samples."""
        return self.count

    def __call__(self, record: Record, *, draws: int, smooth: bool, key: PRNGKeyArray) -> Estimated:
        """Draws are members of the ensemble."""
        filter_key, init_key, choice_key = jr.split(key, 3)
        steps, move = record.steps, _move(record)
        matrix = move.observation.matrix.value
        sd = jnp.broadcast_to(move.observation.sd.value, (len(matrix),))

        def dynamics(step: Steps):
            return lambda h, key: move.plain(h, key, step)

        def observations(step: Steps):
            return lambda h: matrix @ h, jnp.diag(sd), jnp.where(step.seen, step.y, jnp.nan)

        searched = ensemble_kalman_filter.build_filter(
            partial(_start, record),
            _any(dynamics),
            _any(observations),
            self.count,
            store_predicted_ensemble=True,
        )
        begun = searched.init_prepare(key=init_key)
        found = run_filter(searched, steps, begun, key=filter_key)
        whole = found.ensemble
        if smooth:
            whole = run_smoother(ensemble_rts_smoother.build_smoother(), found, steps).ensemble
        chosen = jr.choice(choice_key, self.count, (draws,), replace=draws > self.count)
        foretold = with_first(found.ensemble[0], found.predicted_ensemble[1:])
        square = (record.model.states, record.model.states)
        covariance = jax.vmap(lambda rows: jnp.cov(rows, rowvar=False).reshape(square))
        paths = jax.vmap(jax.vmap(record.sde.clip))(jnp.moveaxis(whole[:, chosen], 1, 0))
        evidence = found.log_normalizing_constant[-1]
        return Estimated(paths, evidence, foretold.mean(1), covariance(foretold))


def _any(function: Any) -> Any:
    """Cuthbert's protocols name their arguments otherwise."""
    return function


def _move(record: Record) -> Move:
    observation = record.model.observation
    assert isinstance(observation, GaussianObservation)
    return Move(record.sde, record.solver, observation, record.model.scale.value.states.sd)


def _start(record: Record, key: PRNGKeyArray) -> Float[Array, " state"]:
    normal = jr.normal(key, (record.model.start_normals,), record.series.values.dtype)
    return record.model.initial_state(record.sde, record.series, normal)


def _drawn(
    key: PRNGKeyArray,
    particles: Float[Array, "particle state"],
    log_weights: Float[Array, " particle"],
    *,
    draws: int,
) -> Float[Array, "draw state"]:
    return particles[jr.categorical(key, log_weights, shape=(draws,))]


def _mixture(
    move: Move,
    particles: Float[Array, "particle state"],
    log_weights: Float[Array, " particle"],
    step: Steps,
) -> GaussianState:
    """Mean and covariance of where weighted particles go."""
    share = jax.nn.softmax(log_weights)
    each = jax.vmap(lambda h: move(h, step))(particles)
    mean = share @ each.mean
    apart = each.mean - mean
    covariance = jnp.einsum("n,nij->ij", share, each.covariance)
    return GaussianState(mean, covariance + jnp.einsum("n,ni,nj->ij", share, apart, apart))
