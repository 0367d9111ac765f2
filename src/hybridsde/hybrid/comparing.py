"""How a model is compared with a recording: row by row, many rows ahead, or as a simulation."""

import abc
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax

from hybridsde._types import Array, Bool, Float, Int
from hybridsde.data import Batch
from hybridsde.estimate.censored import at_limit
from hybridsde.estimate.filter import innovations
from hybridsde.estimate.gaussian import Innovation
from hybridsde.model import SDE, BayesianSDE, GaussianObservation
from hybridsde.simulate import AbstractSolver


class AbstractComparison(eqx.Module):
    """What is foretold of every row, and how it differs from what was measured."""

    finds_starts: ClassVar[bool]
    """Whether every recording has numbers of its own: the normals of its start."""

    @abc.abstractmethod
    def __call__(
        self,
        model: BayesianSDE,
        sde: SDE,
        solver: AbstractSolver,
        series: Batch,
        normals: Float[Array, " normal"],
        counted: Bool[Array, " time"],
    ) -> Innovation:
        """Of one recording; arrays are comparison × obs.

        Only rows that are `counted` are compared with what is foretold from afar.
        """


class RowByRow(AbstractComparison):
    """Every row with what all rows before it foretold: the likelihood of the filter."""

    finds_starts: ClassVar[bool] = False

    def __call__(
        self,
        model: BayesianSDE,
        sde: SDE,
        solver: AbstractSolver,
        series: Batch,
        normals: Float[Array, " normal"],
        counted: Bool[Array, " time"],
    ) -> Innovation:
        """Of one recording."""
        del normals, counted
        return _told(model, sde, solver, series, jnp.asarray(series.times.shape[0]))


class NearAndFar(AbstractComparison):
    """Every row twice: with what all rows before it foretold, and what the first row alone did.

    Where states are not measured, errors from row to row say little of them: a drift of such a
    state that is off is taken for noise, and forecasts many rows ahead go astray. Each term is the
    log score of a forecast; together they are a composite likelihood (Varin, Reid and Firth 2011).
    """

    finds_starts: ClassVar[bool] = False

    def __call__(
        self,
        model: BayesianSDE,
        sde: SDE,
        solver: AbstractSolver,
        series: Batch,
        normals: Float[Array, " normal"],
        counted: Bool[Array, " time"],
    ) -> Innovation:
        """Of one recording."""
        del normals
        until = jnp.array([series.times.shape[0], 0])
        found = jax.vmap(lambda until: _told(model, sde, solver, series, until))(until)
        rows = series.grid(solver.substeps, model.interpolation).row
        far = found.seen[1] & counted[rows][:, None]
        found = eqx.tree_at(lambda f: f.seen, found, found.seen.at[1].set(far))
        return jax.tree.map(lambda leaf: leaf.reshape(-1, leaf.shape[-1]), found)


class Simulation(AbstractComparison):
    """Every row with a simulation without Wiener noise, from a start that fits.

    Least squares with one spread for every observation. Cheap, since no covariance is carried.
    """

    spread: Float[Array, " obs"]
    finds_starts: ClassVar[bool] = True

    def __call__(
        self,
        model: BayesianSDE,
        sde: SDE,
        solver: AbstractSolver,
        series: Batch,
        normals: Float[Array, " normal"],
        counted: Bool[Array, " time"],
    ) -> Innovation:
        """Of one recording, which begins at these normals of p(h₀)."""
        observation = model.observation
        assert isinstance(observation, GaussianObservation)
        grid = series.grid(solver.substeps, model.interpolation)
        y = series.values[grid.row]
        seen = series.observed[grid.row] & (counted[grid.row] & (grid.row > 0))[:, None]
        h0 = sde.clip(model.initial_state(sde, series, normals))
        still = jnp.zeros_like(h0)

        def step(h, grid):
            after, _ = solver.step(sde, grid.t, h, grid.u, grid.dt, still, None)
            after = sde.clip(after)
            return after, after

        _, path = lax.scan(step, h0, grid)
        error = y - jax.vmap(observation.mean)(path)
        if observation.ends is not None:
            side = at_limit(y, observation.ends)
            error = jnp.where(side * error < 0, 0.0, error)  # it is there or beyond
        return jax.vmap(Innovation, (0, None, 0))(error, self.spread**2, seen)


def _told(
    model: BayesianSDE, sde: SDE, solver: AbstractSolver, series: Batch, until: Int[Array, ""]
) -> Innovation:
    one = jax.tree.map(lambda leaf: leaf[None], series)
    found = innovations(model, sde, solver, one, until)
    return jax.tree.map(lambda leaf: leaf[0], found)
