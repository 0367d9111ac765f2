"""Solvers, one step each, and the rollout that turns steps into paths."""

from hybridsde.simulate.rollout import Paths as Paths
from hybridsde.simulate.rollout import rollout as rollout
from hybridsde.simulate.rollout import simulate as simulate
from hybridsde.simulate.solver import (
    AbstractDifferentiatedSolver as AbstractDifferentiatedSolver,
)
from hybridsde.simulate.solver import AbstractSolver as AbstractSolver
from hybridsde.simulate.solver import EulerMaruyama as EulerMaruyama
from hybridsde.simulate.solver import Heun as Heun
from hybridsde.simulate.solver import Rosenbrock as Rosenbrock
