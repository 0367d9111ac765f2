"""What an estimator of states is: from one record and one draw of the weights to paths."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp

from hybridsde._types import Array, Bool, Float, PRNGKeyArray, PyTree
from hybridsde.data import Batch, Grid
from hybridsde.model import SDE, BayesianSDE
from hybridsde.simulate import AbstractSolver


class Steps(eqx.Module):
    """A record as an estimator goes through it: one element for every step of the solver."""

    grid: Grid
    noise: PyTree
    y: Float[Array, "step obs"]
    """The row that a step reaches."""
    seen: Bool[Array, "step obs"]
    """Which of it was measured; nothing where a step reaches no row."""

    @classmethod
    def of(cls, model: BayesianSDE, solver: AbstractSolver, series: Batch, noise: PyTree):
        """The steps of one series; its first row is taken in by the start."""
        grid = series.grid(solver.substeps, model.interpolation)
        seen = series.observed[grid.row] & (grid.row > 0)[:, None]
        return cls(grid, noise, series.values[grid.row], seen)


class Record(eqx.Module):
    """One series under one draw of the weights: all that an estimator is given."""

    model: BayesianSDE
    sde: SDE
    solver: AbstractSolver
    series: Batch
    noise: PyTree = None
    """What the network consumes along the steps."""

    @property
    def steps(self) -> Steps:
        """The steps that it is gone through in."""
        return Steps.of(self.model, self.solver, self.series, self.noise)


class Estimated(eqx.Module):
    """Draws of the states at the first row and at the end of every step, and what came out."""

    paths: Float[Array, "draw row state"]
    """Whole paths where they were smoothed, else independent from row to row."""
    log_prob: Float[Array, ""]
    """Ln p(y_1, y_2, … | y_0) under this draw of the weights."""
    foretold: Float[Array, "row state"]
    """E h_k given the rows before k; the first is that of the start."""
    covariance: Float[Array, "row state state"]
    """Of the same."""


class AbstractEstimator(eqx.Module):
    """How the states of one record are estimated under one draw of the weights."""

    @property
    @abc.abstractmethod
    def width(self) -> int:
        """How many states it keeps for every step: one, or as many as it has samples."""

    @abc.abstractmethod
    def __call__(self, record: Record, *, draws: int, smooth: bool, key: PRNGKeyArray) -> Estimated:
        """Draws given the rows up to each, or given all (`smooth`)."""


def with_first(first: PyTree, later: PyTree) -> PyTree:
    """An element in front of others that begin with an axis of steps."""
    return jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), first, later)
