"""What a fit chooses before it begins, by looking at the data and the known equations."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from hybridsde._errors import notice
from hybridsde._types import Bool, Float
from hybridsde.data import Batch, Trajectories
from hybridsde.fit.config import LONGEST
from hybridsde.hybrid.build import coordinate, limits_of, untrained
from hybridsde.hybrid.declaration import AbstractDeclaration
from hybridsde.hybrid.first_guess import Guess, Regions, first_guess
from hybridsde.hybrid.numerics import (
    ACCURATE,
    ROSENBROCK,
    STABLE,
    choose_step,
    known_rates,
    origin_of,
)
from hybridsde.model import BayesianSDE, Standardiser
from hybridsde.physics import PositivePhysics

EXPLICIT = 2.0
"""An explicit step multiplies what decays at a rate λ by more than one from λΔt = 2 on."""
ASKED_FOR = (None, "train.substeps")
"""Why a step is what it is, where nobody but the user chose it."""
Declared = TypeVar("Declared", bound=AbstractDeclaration)


def settle(declared: Declared, encoded: Trajectories) -> Declared:
    """With origin, step and scheme, and first guesses by least squares on the known equations.

    `encoded` are the training recordings as the model sees them. What is given stays; the step is
    chosen again where the guess moves the equations.
    """
    given = declared.numerics
    origin = origin_of(encoded) if given.origin is None else given.origin
    declared = _with(declared, origin=origin)
    if declared.latent is None and given.step is not None and given.why in ASKED_FOR:
        _say_too_long(declared, encoded)
    if declared.latent is not None or (given.step is not None and given.typical is not None):
        return declared
    recordings = encoded.told(declared.interpolation)
    cuts = recordings.cuts(LONGEST, LONGEST - 1, least=2)
    pieces = recordings.cut(cuts)
    batch = Batch.of(pieces, replace(declared.clock, step=None))
    first = declared
    model = eqx.filter_jit(lambda batch: untrained(first, batch, key=jr.key(0)))(batch)
    if given.step is None:
        declared = _with_step(declared, model, batch)
    guess = None
    if given.typical is None and not _found_by_scoring(declared):
        begins = np.array([row == 0 for _, row, _ in cuts])
        guess = _guess(declared, model, Batch.of(pieces, declared.clock), begins)
    if guess is None:
        return _with(declared, typical=given.typical or {})
    found = guess.physics
    physics = found.inner if isinstance(found, PositivePhysics) else found
    declared = _with(replace(declared, physics=physics), typical=guess.typical)
    if given.step is None:
        mean = model.scale.value.states.mean
        for name, (centre, _) in guess.typical.items():
            mean = mean.at[tuple(declared.states).index(name)].set(centre)
        model = eqx.tree_at(
            lambda m: (m.known.physics, m.scale.frozen.states.mean), model, (found, mean)
        )
        declared = _with_step(declared, model, batch)
    return declared


def _say_too_long(declared: AbstractDeclaration, encoded: Trajectories) -> None:
    """A notice where a step that was asked for is too long for an explicit scheme."""
    step, implicit = declared.numerics.step, declared.numerics.scheme == ROSENBROCK
    known = declared.physics.known(tuple(declared.states), tuple(declared.inputs))
    if step is None or implicit or not known:
        return
    batch = Batch.of(encoded.windows(LONGEST, LONGEST - 1, least=2), declared.clock)
    model = eqx.filter_jit(lambda batch: untrained(declared, batch, key=jr.key(0)))(batch)
    decay, _ = known_rates(model, batch, declared.lift)
    if decay * step > EXPLICIT:
        which = ", ".join(f"d{name}" for name in known)
        notice(
            f"The step is too long for the known equations ({which}), which decay at a rate of "
            f"{decay:.3g}: an explicit step can be {EXPLICIT / decay:.3g} at most, and is "
            f"{step:.3g}. Leave step and scheme to the fit, take "
            f"{math.ceil(decay * step / EXPLICIT)} times the `substeps`, or the implicit scheme "
            f"{ROSENBROCK!r}."
        )


def _found_by_scoring(declared: AbstractDeclaration) -> bool:
    """Whether the fit itself finds parameters from afar, and no size has to be guessed."""
    return (declared.linear or declared.undecided) and not declared.hidden_states


def _with(declared: Declared, **chosen) -> Declared:
    return replace(declared, numerics=replace(declared.numerics, **chosen))


def _with_step(declared: Declared, model: BayesianSDE, batch: Batch) -> Declared:
    """With a longest step, and the scheme that goes with it unless one is given."""
    accuracy = ACCURATE if declared.complete else STABLE
    step = choose_step(model, batch, declared.lift, accuracy)
    scheme = declared.numerics.scheme or step.scheme
    return _with(declared, step=step.length, scheme=scheme, why=step.why)


def _guess(
    declared: AbstractDeclaration,
    model: BayesianSDE,
    batch: Batch,
    begins: Bool[np.ndarray, " series"],
) -> Guess | None:
    """Parameters and sizes of unmeasured states as least squares finds them.

    `begins` says which pieces are the beginning of a recording, where `start` is about.
    """
    solver, hidden = declared.numerics.solver, declared.hidden_states
    assert solver is not None
    sizes = tuple(_size(declared, name, batch) for name in hidden)
    regions = [_region(declared, name, batch, begins) for name in hidden]
    low, high = np.moveaxis(np.array(regions).reshape(len(hidden), 2, batch.count), 0, -1)
    found = Regions(jnp.asarray(low), jnp.asarray(high))
    return first_guess(model, solver, batch, declared.lift, hidden, sizes, found)


def _region(
    declared: AbstractDeclaration, name: str, batch: Batch, begins: Bool[np.ndarray, " series"]
) -> tuple[Float[np.ndarray, " series"], Float[np.ndarray, " series"]]:
    """Where a state may start in every piece: as declared, and later inside its limits.

    A range that is declared for the start holds for later pieces too, with as much room again to
    either side.
    """
    given = declared.start_of.get(name)
    first, last = (np.full(batch.count, end) for end in limits_of(declared, name))
    if isinstance(given, str):
        if given not in declared.inputs:
            return first, last
        column = np.asarray(batch.inputs[:, 0, tuple(declared.inputs).index(given)], float)
        low = high = np.array([coordinate(declared, name, float(value)) for value in column])
        return np.where(begins, low, first), np.where(begins, high, last)
    if given is None:
        return first, last
    ends = (given, given) if isinstance(given, int | float) else given
    low, high = (coordinate(declared, name, float(end)) for end in ends)
    room = high - low
    if room > 0:
        first, last = np.maximum(first, low - room), np.minimum(last, high + room)
    return np.where(begins, low, first), np.where(begins, high, last)


def _size(declared: AbstractDeclaration, name: str, batch: Batch) -> float:
    """A scale on which an unmeasured state may start."""
    given = declared.start_of.get(name)
    ends: Sequence[float | int] = ()
    if isinstance(given, int | float):
        ends = (given,)
    elif isinstance(given, str) and given in declared.inputs:
        column = tuple(declared.inputs).index(given)
        ends = (float(jnp.abs(batch.inputs[:, 0, column]).max()),)
    elif given is not None and not isinstance(given, str):
        ends = given
    if not ends:
        limits = [end for end in limits_of(declared, name) if math.isfinite(end)]
        return max(map(abs, limits), default=0.0) or _usual_size(batch)
    size = max((abs(coordinate(declared, name, float(end))) for end in ends if end), default=0.0)
    return size or _usual_size(batch)


def _usual_size(batch: Batch) -> float:
    """The size of what is measured."""
    measured = Standardiser.of(batch.values, batch.observed)
    return float(jnp.mean(jnp.abs(measured.mean) + measured.sd))
