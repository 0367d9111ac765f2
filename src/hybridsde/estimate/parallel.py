"""A Kalman filter and smoother that is parallel in time, for long records on a GPU.

All steps are linearised at once along a path and combined by an associative scan, so that T steps
take a time of log T where there are enough processors (Särkkä and García-Fernández 2021; in square
roots: Yaghoobi et al. 2025, from cuthbert). The path is the smoothed one of the time before: the
iterated extended Kalman smoother (Bell 1994). Exact at once for linear drifts.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from cuthbert import filter as run_filter
from cuthbert import smoother as run_smoother
from cuthbert.gaussian import kalman
from cuthbertlib.kalman import sampling
from jax import lax

from hybridsde._types import Array, Float, PRNGKeyArray
from hybridsde.estimate.estimator import (
    AbstractEstimator,
    Estimated,
    Record,
    Steps,
    with_first,
)
from hybridsde.estimate.filter import first_state
from hybridsde.estimate.gaussian import GaussianState
from hybridsde.estimate.states import factor
from hybridsde.model import SDE, GaussianObservation
from hybridsde.simulate import AbstractSolver


class Line(eqx.Module):
    """All steps as straight lines, h_k = A h_k−1 + c + S ε, and the rows that they reach."""

    slope: Float[Array, "*step state state"]
    shift: Float[Array, "*step state"]
    root: Float[Array, "*step state state"]
    y: Float[Array, "*step obs"]
    """NaN where nothing was measured."""

    @classmethod
    def along(
        cls, path: Float[Array, "row state"], sde: SDE, solver: AbstractSolver, steps: Steps
    ) -> "Line":
        """The tangents of every step at the state before it."""

        def one(h: Float[Array, " state"], step: Steps):
            grid = step.grid
            found = solver.transition(sde, grid.t, h, grid.u, grid.dt, step.noise)
            shift = sde.clip(found.mean) - found.by_state @ h
            return found.by_state, shift, found.by_noise * jnp.sqrt(grid.dt)

        slope, shift, root = jax.vmap(one)(path[:-1], steps)
        return cls(slope, shift, root, jnp.where(steps.seen, steps.y, jnp.nan))


class ParallelKalman(AbstractEstimator):
    """`iterations` passes, the first about a state that stays where it begins."""

    iterations: int = eqx.field(static=True, default=4)

    @property
    def width(self) -> int:
        """One Gaussian."""
        return 1

    def __call__(self, record: Record, *, draws: int, smooth: bool, key: PRNGKeyArray) -> Estimated:
        """Paths by a parallel scan over draws of backward increments."""
        sde, steps = record.sde, record.steps
        first = first_state(record.model, record.sde, record.series)
        observation = record.model.observation
        assert isinstance(observation, GaussianObservation)

        def passed(path: Float[Array, "row state"]):
            line = Line.along(path, sde, record.solver, steps)
            return line, _filtered(line, first, observation)

        def again(path: Float[Array, "row state"], _):
            line, found = passed(path)
            after = run_smoother(kalman.build_smoother(_dynamics), found, line, parallel=True).mean
            return jax.vmap(sde.clip)(after), None

        start = jnp.broadcast_to(first.mean, (len(steps.y) + 1, len(first.mean)))
        path, _ = lax.scan(again, start, length=self.iterations - 1)
        line, found = passed(path)
        paths = _drawn(found, line, draws, key) if smooth else _apart(found, draws, key)
        foretold = jax.vmap(_carried)(line, found.mean[:-1], found.chol_cov[:-1])
        whole = with_first(first, foretold)
        paths = jax.vmap(jax.vmap(sde.clip))(paths)
        evidence = found.log_normalizing_constant[-1]
        return Estimated(paths, evidence, whole.mean, whole.covariance)


def _dynamics(model_inputs: Any) -> tuple[Array, Array, Array]:
    line: Line = model_inputs
    return line.slope, line.shift, line.root


def _filtered(line: Line, first: GaussianState, observation: GaussianObservation):
    matrix = observation.matrix.value
    sd = jnp.diag(jnp.broadcast_to(observation.sd.value, (len(matrix),)))

    def measured(model_inputs: Any) -> tuple[Array, Array, Array, Array]:
        line: Line = model_inputs
        return matrix, jnp.zeros(len(matrix), line.y.dtype), sd, line.y

    root = factor(first.covariance)
    searched = kalman.build_filter(first.mean, root, _dynamics, measured)
    return run_filter(searched, line, searched.init_prepare(), parallel=True)


def _drawn(found, line: Line, draws: int, key: PRNGKeyArray) -> Float[Array, "draw row state"]:
    """Whole paths: h_k = m + K (h_k+1 − m⁻) + L ε, all k at once."""
    parts = sampling.sqrt_associative_params(
        key, found.mean, found.chol_cov, line.slope, line.shift, line.root, (draws,)
    )
    combined = lax.associative_scan(jax.vmap(sampling.sampling_operator), parts, reverse=True)
    return jnp.moveaxis(combined.sample, 0, 1)


def _apart(found, draws: int, key: PRNGKeyArray) -> Float[Array, "draw row state"]:
    """Draws of every filtered Gaussian, independent from row to row."""
    normals = jr.normal(key, (draws, *found.mean.shape), found.mean.dtype)
    return found.mean + jnp.einsum("kij,skj->ski", found.chol_cov, normals)


def _carried(
    line: Line, mean: Float[Array, " state"], root: Float[Array, "state state"]
) -> GaussianState:
    """A m + c and A P Aᵀ + S Sᵀ of one step."""
    moved = line.slope @ root
    covariance = moved @ moved.T + line.root @ line.root.T
    return GaussianState(line.slope @ mean + line.shift, covariance)
