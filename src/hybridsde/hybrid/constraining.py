"""From declared knowledge to constraints: where a drift is held to it, and in what units."""

import jax.numpy as jnp
from scipy.stats import qmc

from hybridsde._types import Array, Float
from hybridsde.data import Batch
from hybridsde.hybrid.declaration import AbstractDeclaration
from hybridsde.hybrid.feature_rows import feature_rows
from hybridsde.hybrid.knowledge import SIGNS
from hybridsde.model.constraints import Constraints
from hybridsde.model.drift import Symmetry
from hybridsde.model.scaling import Scale
from hybridsde.physics.grammar import parse_formula

RECORDED, BETWEEN = 128, 64
"""Points: recorded rows, and others inside the range of every column."""


def constraints_of(declared: AbstractDeclaration, batch: Batch, scale: Scale) -> Constraints | None:
    """None where nothing is known beside equations."""
    known, states = declared.knowledge, tuple(declared.states)
    if not known:
        return None
    columns = (*states, *declared.inputs)
    even = [(state, of, 1.0) for state, of in known.even.items()]
    odd = [(state, of, -1.0) for state, of in known.odd.items()]
    points, time = points_of(declared, batch, scale)
    count = len(states)
    return Constraints(
        names=states,
        positive=tuple(name in declared.positive for name in states),
        conserved=tuple(parse_formula(text) for text in known.conserved),
        effects=tuple(
            (states.index(state), columns.index(on), SIGNS[sign])
            for state, signs in known.effects.items()
            for on, sign in signs.items()
        ),
        symmetries=tuple(
            (states.index(state), tuple(one in of for one in columns), sign)
            for state, of, sign in (*odd, *even)
        ),
        decays=tuple(states.index(state) for state in known.decays),
        time=time,
        states=scale.states.inverse(points[:, :count]),
        inputs=scale.inputs.inverse(points[:, count:]),
        rate=scale.rate,
        spread=jnp.concatenate([scale.states.sd, scale.inputs.sd]),
    )


def symmetries_of(declared: AbstractDeclaration) -> tuple[Symmetry, ...]:
    """What is built into networks. Terms of a library have their symmetries or have not."""
    if declared.linear or declared.both:
        return ()
    known, columns = declared.knowledge, (*declared.states, *declared.inputs)
    found: dict[tuple[bool, ...], dict[str, float]] = {}
    for kind, sign in ((known.odd, -1.0), (known.even, 1.0)):
        for state, of in kind.items():
            found.setdefault(tuple(one in of for one in columns), {})[state] = sign
    return tuple(
        Symmetry(flipped, tuple(signs.get(state, 0.0) for state in declared.states))
        for flipped, signs in found.items()
    )


def points_of(
    declared: AbstractDeclaration, batch: Batch, scale: Scale
) -> tuple[Float[Array, "point feature"], Float[Array, " point"]]:
    """Standardised states and inputs of points, without the time, and their times."""
    rows, weights = feature_rows(declared, batch, scale)
    if not declared.autonomous:
        rows = jnp.delete(rows, len(declared.states), axis=1)
    clock = batch.times.reshape(-1)
    order = jnp.argsort(-weights)  # recorded rows first, as they come
    spaced = jnp.linspace(0, 1, RECORDED) * (jnp.sum(weights > 0) - 1)
    chosen = order[jnp.round(spaced).astype(int)]
    low = jnp.min(rows, 0, where=weights[:, None] > 0, initial=jnp.inf)
    high = jnp.max(rows, 0, where=weights[:, None] > 0, initial=-jnp.inf)
    fill = qmc.Halton(max(rows.shape[1], 1), scramble=False).random(BETWEEN + 1)[1:]
    between = low + jnp.asarray(fill[:, : rows.shape[1]], rows.dtype) * (high - low)
    times = jnp.concatenate([clock[chosen], clock[chosen[:: RECORDED // BETWEEN]]])
    return jnp.concatenate([rows[chosen], between]), times
