"""Columns that lie far from zero: what is subtracted before anything is in single precision."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

import numpy as np

from hybridsde._errors import InputError
from hybridsde.data import Trajectories
from hybridsde.forecast.spec import offsets_of, smallest_of
from hybridsde.hybrid.declaration import AbstractDeclaration
from hybridsde.model.diffusion import AbstractDiffusion
from hybridsde.physics import EquationPhysics, NoPhysics
from hybridsde.physics.expression import names
from hybridsde.physics.grammar import parse_formula

BLURRED = 1e4
"""From this many spreads away from zero on, an equation in raw numbers loses digits that count."""

Declared = TypeVar("Declared", bound=AbstractDeclaration)


def centred(declared: Declared, data: Trajectories) -> Declared:
    """With offsets for columns that lie far from zero, and what zeros of positive states are below.

    What is given stays. States that a known equation uses, that have bounds or a start keep their
    raw numbers; an `InputError` where single precision could not tell these apart.
    """
    declared = with_smallest(declared, data)
    if declared.numerics.offsets is not None:
        return declared
    found = offsets_of(data, declared.positive)
    for name in sorted(set(found) & _raw(declared)):
        offset, column = found.pop(name), data.states.index(name)
        spread = float(np.std(data.values[..., column][data.observed[..., column]]))
        if abs(offset) > BLURRED * spread:
            raise InputError(
                f"{name!r} lies about {offset:.6g} and changes by {spread:.2g} only, too little to "
                "compute with beside its size. Subtract a constant from this column, and write "
                "equations and bounds for the difference."
            )
    return replace(declared, numerics=replace(declared.numerics, offsets=found))


def with_smallest(declared: Declared, data: Trajectories) -> Declared:
    """With what zeros of positive states are below, unless that is given."""
    if declared.numerics.smallest is not None:
        return declared
    smallest = smallest_of(data, declared.positive)
    return replace(declared, numerics=replace(declared.numerics, smallest=smallest))


def _raw(declared: AbstractDeclaration) -> set[str]:
    """States whose raw numbers are needed, and combinations of states, which are measured so."""
    physics = declared.physics
    used = {*declared.bounds, *declared.saturates, *declared.start_of}
    used |= {*declared.knowledge.raw_names, *declared.angular}
    used |= {one.name for term in declared.terms for one in names(parse_formula(term))}
    if callable(declared.diffusion) or isinstance(declared.diffusion, AbstractDiffusion):
        used |= set(declared.states)
    if isinstance(declared.observed, Mapping):
        used |= set(declared.observations)
    if isinstance(physics, EquationPhysics):
        return used | {one.name for equation in physics.equations for one in names(equation.rate)}
    return used if isinstance(physics, NoPhysics) else {*used, *declared.states}
