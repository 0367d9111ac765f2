"""Solvers as plain data, for run folders."""

from collections.abc import Mapping
from typing import Any

from hybridsde._errors import InputError
from hybridsde.simulate.solver import AbstractSolver, EulerMaruyama, Heun, Rosenbrock

SOLVERS = {solver.__name__: solver for solver in (EulerMaruyama, Heun, Rosenbrock)}


def solver_notes(solver: AbstractSolver) -> dict[str, Any]:
    """A solver as plain data."""
    if type(solver).__name__ not in SOLVERS:
        raise InputError(f"A run with the solver {type(solver).__name__} cannot be saved.")
    return {"name": type(solver).__name__, "substeps": solver.substeps}


def solver_from_notes(notes: Mapping[str, Any]) -> AbstractSolver:
    """The inverse of `solver_notes`."""
    if notes["name"] not in SOLVERS:
        raise InputError(
            f"The run uses the solver {notes['name']!r}, which this version does not know."
        )
    return SOLVERS[notes["name"]](substeps=notes["substeps"])
