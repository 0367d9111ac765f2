"""A declaration is checked as it is written down, so that mistakes are told before any fit."""

from collections.abc import Mapping, Sequence

import jax
import numpy as np

from hybridsde._errors import suggest
from hybridsde._parameters import AbstractParameter
from hybridsde._types import Numbers
from hybridsde.data.checks import check_names, check_positive, check_whole
from hybridsde.hybrid.build import (
    GUESS,
    LEARN,
    declared_diffusion,
    known_drift_of,
    visible_of,
)
from hybridsde.hybrid.checks import check_bounds, check_saturates, check_starts_given
from hybridsde.hybrid.declaration import (
    AUTO,
    ENSEMBLE,
    LIBRARY,
    MOST_COEFFICIENTS,
    NETWORK,
    PROCESS,
    AbstractDeclaration,
)
from hybridsde.hybrid.knowledge import check_knowledge
from hybridsde.model.network import ACTIVATIONS
from hybridsde.model.observation import check_bounded, check_noise
from hybridsde.model.weights import WEIGHTS
from hybridsde.physics import AbstractPhysics
from hybridsde.physics.expression import CONSTANTS, FUNCTIONS, SEVERAL, names
from hybridsde.physics.flows import parse_flows
from hybridsde.physics.grammar import parse_formula

KEPT_OUT = " The time is kept out by default: say `autonomous = false` to let it in."


def check_declaration(d: AbstractDeclaration) -> None:
    """A `ValueError` that names the field and the remedy."""
    check_names(d.states, "states")
    check_names(d.inputs, "inputs")
    states, inputs = tuple(d.states), tuple(d.inputs)
    if not states:
        raise ValueError("`states` is empty. Name at least one state.")
    check_names(states + inputs, "states and inputs")
    if not isinstance(d.physics, AbstractPhysics):
        raise ValueError(
            f"`physics` must be known physics, but is {d.physics!r}. Wrap a function as "
            "`known_drift(function, parameter=value)`."
        )
    _check_choice(d.activation, ACTIVATIONS, "activation")
    _check_choice(d.weights, WEIGHTS, "weights")
    _check_choice(d.interpolation, {"held": 0, "linear": 0}, "interpolation")
    for name in ("initial_sd", "prior_sd", "last_layer"):
        check_positive(getattr(d, name), name)
    if not isinstance(d.hidden, Sequence | None):
        raise ValueError(f"`hidden` must list widths, such as (100, 100), not {d.hidden!r}.")
    check_whole(d.members, "members")
    _check_learned(d)
    for width in d.hidden or ():
        check_whole(width, "hidden")
    for name in d.positive:
        if name not in states:
            raise ValueError(f"`positive` names {name!r}, but the states are {', '.join(states)}.")
    _check_flows(d)
    for name in d.angles:
        if name not in d.features or name in d.positive:
            raise ValueError(
                f"`angles` names {name!r}, which is no state or input that turns around: they are "
                f"{', '.join(n for n in d.features if n not in d.positive)}."
            )
    if d.positive and isinstance(d.observed, Mapping):
        raise ValueError("`positive` states must be measured directly, not in combinations.")
    _check_choice(d.far, {"fade": 0, "free": 0}, "far")
    check_bounds(d.bounds, states, d.positive)
    check_saturates(d.saturates, d.observed, d.observations, d.bounds)
    check_knowledge(d.knowledge, states, states + inputs, (*d.positive, *d.bounds))
    if d.knowledge and (d.latent is not None or d.weights != "path"):
        raise ValueError(
            "`knowledge` is about states that mean something, and weights that are held along a "
            'path: leave `latent` out, and `weights` at "path".'
        )
    # Building the pieces checks them, so that a mistake is told here and not during a fit.
    known_drift_of(d)
    visible_of(d)
    if d.latent is not None:
        _check_latent(d)
    measured = d.observations
    if isinstance(d.start, str):
        _check_choice(d.start, {"first": 0, "uncertain": 0}, "start")
    if isinstance(d.start, Mapping):
        check_starts_given(d.start, states, inputs, d.positive)
    for name in ("noise", "diffusion"):
        if isinstance(getattr(d, name), str):
            _check_choice(getattr(d, name), {LEARN: 0, GUESS: 0}, name)
    if isinstance(d.noise, AbstractParameter):
        check_bounded(d.noise)
    if not isinstance(d.noise, str | None):
        check_noise(_numbers(d.noise), measured)
    if not isinstance(d.diffusion, str | None):
        declared_diffusion(d)


def _check_flows(d: AbstractDeclaration) -> None:
    for flow in parse_flows(d.flows, known=False):
        for end in flow.ends:
            if end not in d.states:
                raise ValueError(
                    f"The flow {flow.name!r} names {end!r}, but the states are "
                    f"{', '.join(d.states)}.{suggest(end, d.states)}"
                )
            if end in d.positive or end in d.exact:
                kind = "positive" if end in d.positive else "exact"
                raise ValueError(
                    f"The flow {flow.name!r} is learned and changes {end!r}, which is `{kind}`. "
                    "Give the flow a rate, or declare `bounds` instead."
                )
    if d.flows and not d.pieces:
        raise ValueError("Nothing is learned here: give the `flows` rates, in the equations.")
    if d.flows and (d.latent is not None or d.knowledge):
        raise ValueError("Learned `flows` go without `latent` and without `knowledge`.")


def _check_learned(d: AbstractDeclaration) -> None:
    kinds = (d.learned,) if isinstance(d.learned, str) else tuple(d.learned)
    known = (NETWORK, ENSEMBLE, LIBRARY, PROCESS)
    if kinds != (AUTO,) and (not kinds or any(kind not in known for kind in kinds)):
        raise ValueError(
            f"`learned` must be {AUTO}, {LIBRARY}, {PROCESS}, {ENSEMBLE} or {NETWORK}, or "
            f"{LIBRARY} together with {PROCESS} or {NETWORK}, but is {d.learned!r}. Say "
            "hidden=None to learn nothing."
        )
    together = ({LIBRARY, PROCESS}, {LIBRARY, NETWORK})
    if len(kinds) > 1 and (len(set(kinds)) < len(kinds) or set(kinds) not in together):
        raise ValueError(
            f"{' and '.join(kinds)} cannot be learned together: take ({LIBRARY!r}, {PROCESS!r}), "
            f"({LIBRARY!r}, {NETWORK!r}), or one of them alone."
        )
    if {ENSEMBLE, LIBRARY} & set(kinds) and d.weights != "path":
        raise ValueError("Such a learned part is held along a path: leave `weights` out.")
    if d.latent is not None and kinds not in ((AUTO,), (NETWORK,)):
        raise ValueError(f"Latent states mean nothing by themselves: `learned` must be {NETWORK}.")
    if d.degree is not None:
        check_whole(d.degree, "degree")
    if LIBRARY in kinds and d.coefficients > MOST_COEFFICIENTS:
        raise ValueError(
            f"A library of degree {d.library_degree} has {d.coefficients} coefficients here, more "
            f"than {MOST_COEFFICIENTS}. Say a smaller `degree`, fewer `functions`, or networks."
        )
    wrong = [one for one in d.functions if one not in FUNCTIONS or one in SEVERAL]
    if wrong:
        raise ValueError(
            f"`functions` names {wrong[0]!r}; there are "
            f"{', '.join(one for one in FUNCTIONS if one not in SEVERAL)}."
        )
    for text in d.terms:
        for found in names(parse_formula(text)):
            if found.name not in (*d.features, *CONSTANTS):
                raise ValueError(
                    f"The term {text!r} names {found.name!r}, but it may depend on "
                    f"{', '.join(d.features)}."
                    + (KEPT_OUT if found.name == "t" else suggest(found.name, d.features))
                )


def _check_latent(d: AbstractDeclaration) -> None:
    if d.observed is None or isinstance(d.observed, Mapping):
        raise ValueError("With `latent`, `observed` must list the columns of the recordings.")
    check_names(tuple(d.observed), "observed")
    if d.positive:
        raise ValueError("`positive` is for states that are measured, not for latent ones.")
    if d.start is not None:
        raise ValueError("With `latent` the start is encoded: leave `start` out.")
    if d.bounds or d.saturates:
        raise ValueError("Limits are for states that mean something, not for latent ones.")


def _numbers(given: Numbers | AbstractParameter) -> np.ndarray:
    """Plain numbers, also while a program is traced that a model is declared in."""
    with jax.ensure_compile_time_eval():
        return np.asarray(given.value if isinstance(given, AbstractParameter) else given, float)


def _check_choice(value: str, choices: Mapping, what: str) -> None:
    if value not in choices:
        raise ValueError(f"`{what}` must be one of {', '.join(choices)}, but is {value!r}.")
