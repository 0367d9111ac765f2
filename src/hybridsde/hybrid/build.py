"""From a declaration and data to an untrained model: one function for each piece."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from hybridsde._parameters import AbstractParameter, Fixed, Free, Positive, Relative
from hybridsde._types import Array, Float, PRNGKeyArray
from hybridsde.data import Batch
from hybridsde.hybrid.checks import ENDLESS, INFER, check_bounds, check_saturates, visible
from hybridsde.hybrid.constraining import constraints_of, symmetries_of
from hybridsde.hybrid.declaration import (
    LIBRARY,
    PROCESS,
    AbstractDeclaration,
)
from hybridsde.hybrid.feature_rows import feature_rows
from hybridsde.model.bayesian import (
    AbstractBayesianNetwork,
    BayesianMLP,
    MixtureMLP,
    NothingLearned,
)
from hybridsde.model.both import LibraryAndNetworks
from hybridsde.model.bounds import MARGIN, Bounds
from hybridsde.model.diffusion import (
    AbstractDiffusion,
    DiagonalDiffusion,
    check_diagonal,
    constant_diffusion,
    function_diffusion,
)
from hybridsde.model.drift import KnownDrift, make_gate
from hybridsde.model.latent import encoder_and_decoder
from hybridsde.model.library import (
    Basis,
    BayesianLibrary,
    Bumps,
    polynomials,
)
from hybridsde.model.network import MLP
from hybridsde.model.observation import (
    GaussianObservation,
    has_orthonormal_rows,
    observation_matrix,
)
from hybridsde.model.reach import ROOM, Reach
from hybridsde.model.scaling import Scale, Standardiser, rough_diffusion
from hybridsde.model.sde import BayesianSDE
from hybridsde.model.start import AbstractStart, FirstObservation, UncertainStart
from hybridsde.model.weights import WEIGHTS
from hybridsde.physics import PositivePhysics
from hybridsde.physics.expression import Expression
from hybridsde.physics.grammar import parse_formula

LEARN, GUESS = "learn", "guess"
SMALLEST = 1e-2
"""Learned spreads stay above this share of the guess that they begin from."""
NOISE_PART = 20
"""A guess at the noise: this part of an observation's spread."""
LIBRARY_ROOM = 2.0
"""A library is believed this share of the recorded range beyond either end: its terms are few."""
CHOICES = 8
"""Choices of terms that are kept."""
UNITS, FEW_UNITS = 8, 2
"""Hinges of a network of an ensemble, and where states are not measured: what is not seen bends
seldom, and more units find bends that are not there."""
SMALL = 0.05
"""How high these hinges begin."""
BUMPS = 24
LENGTH = 1.0
"""Of a bump, in standard deviations of the features times the root of their number."""
RANGE_SPREADS = 4.0
"""A range of starts is taken for this many standard deviations."""


def untrained(declared: AbstractDeclaration, batch: Batch, *, key: PRNGKeyArray) -> BayesianSDE:
    """The model before training, its scales measured on `batch`."""
    states, names, lift = tuple(declared.states), declared.observations, declared.lift
    latent = declared.latent
    network_key, latent_key = (key, key) if latent is None else jr.split(key)
    measured = scale_of(declared, batch)
    raw = Scale.identity(len(states), len(declared.inputs))
    scale = measured if declared.standardise else raw
    if latent is None:
        start, observation = start_of(declared, scale), linear_observation(declared, batch)
    else:
        sd = noise_of(declared, batch)
        start, observation = encoder_and_decoder(
            latent, batch, len(states), names, sd, key=latent_key
        )
    known = known_drift_of(declared, batch)
    fades = declared.far == "fade" and latent is None and bool(declared.pieces)
    network = learned_of(declared, batch, scale, key=network_key)
    room = LIBRARY_ROOM if declared.linear else ROOM
    wanted = constraints_of(declared, batch, measured)
    return BayesianSDE(
        network=network,
        weights=WEIGHTS[declared.weights],
        known=known,
        diffusion=diffusion_of(declared, batch),
        observation=observation,
        start=start,
        scale=Fixed(scale),
        autonomous=declared.autonomous,
        interpolation=declared.interpolation,
        context=declared.context,
        first_scored_row=1 if latent is None else 0,
        reach=Fixed(Reach.of(batch, lift, scale, known.gate.known, room)) if fades else None,
        sees=visible_of(declared),
        symmetries=symmetries_of(declared),
        flows=declared.learned_flows,
        bounds=bounds_of(declared, measured),
        constraints=None if wanted is None else Fixed(wanted),
    )


def scale_of(declared: AbstractDeclaration, batch: Batch) -> Scale:
    """Measured, with guesses for states that are not."""
    scale = Scale.of(batch, declared.lift)
    for name, (mean, sd) in (declared.numerics.typical or {}).items():
        at = tuple(declared.states).index(name)
        scale = eqx.tree_at(
            lambda s: (s.states.mean, s.states.sd, s.rate),
            scale,
            (
                scale.states.mean.at[at].set(mean),
                scale.states.sd.at[at].set(sd),
                scale.rate.at[at].multiply(sd / scale.states.sd[at]),
            ),
        )
    return scale


def visible_of(declared: AbstractDeclaration) -> tuple[tuple[bool, ...], ...] | None:
    """What the learned part of each state may depend on; not on columns that are starts."""
    states, inputs = tuple(declared.states), tuple(declared.inputs)
    columns = [one for one in declared.start_of.values() if isinstance(one, str) and one in inputs]
    rows = visible(
        declared.exact,
        declared.sees,
        states,
        inputs,
        declared.physics.known(states, inputs),
        columns,
        autonomous=declared.autonomous,
    )
    flows = declared.learned_flows
    if not flows:
        return rows
    # What a flow changes learns by the flow alone.
    features = (True,) * len(declared.features)
    found = list(rows or (features,) * len(states))
    places = {flow.place for flow in flows}
    for flow in flows:
        for end in (flow.source, flow.target):
            if end is not None and end not in places:
                found[end] = (False,) * len(features)
    return tuple(found)


def seen_by(declared: AbstractDeclaration, name: str) -> tuple[str, ...]:
    """What the learned part of a state depends on; nothing where it has none."""
    if not declared.pieces:
        return ()
    rows = visible_of(declared)
    if rows is None:
        return declared.features
    state = tuple(declared.states).index(name)
    places = [f.place for f in declared.learned_flows if state in (f.source, f.target)]
    row = np.any([rows[place] for place in (state, *places)], 0)
    return tuple(one for one, seen in zip(declared.features, row, strict=True) if seen)


def bounds_of(declared: AbstractDeclaration, scale: Scale) -> Fixed | None:
    """Limits of all states, where there are any, in the numbers of the model."""
    if not declared.bounds:
        return None
    low, high = np.array([limits_of(declared, name) for name in declared.states]).T
    width = jnp.minimum(scale.states.sd, jnp.asarray(high - low))
    return Fixed(Bounds(jnp.asarray(low), jnp.asarray(high), MARGIN * width))


def limits_of(declared: AbstractDeclaration, name: str) -> tuple[float, float]:
    """The bounds of a state in the numbers of the model, endless where it has none."""
    pairs = check_bounds(declared.bounds, tuple(declared.states), declared.positive)
    low, high = pairs.get(name, ENDLESS)
    if name not in declared.positive:
        return low, high
    return math.log(low) if low > 0 else -math.inf, math.log(high)


def linear_observation(declared: AbstractDeclaration, batch: Batch) -> GaussianObservation:
    """States, or combinations of them, measured with noise by sensors that may have limits."""
    names, matrix = observation_matrix(declared.observed, tuple(declared.states))
    pairs = check_bounds(declared.bounds, tuple(declared.states), declared.positive)
    bounded = {} if isinstance(declared.observed, Mapping) else pairs
    sensors = check_saturates(declared.saturates, declared.observed, names, declared.bounds)
    limits = {name: pair for name, pair in (bounded | sensors).items() if name in names}
    for name, least in (declared.smallest or {}).items():
        low, high = limits.get(name, ENDLESS)
        limits[name] = (max(low, least), high)
    return GaussianObservation(
        matrix=Fixed(jnp.asarray(matrix)),
        sd=noise_of(declared, batch),
        names=names,
        orthonormal=has_orthonormal_rows(matrix),
        positive=tuple(name for name in names if name in declared.positive),
        limits=tuple(limits.get(name, ENDLESS) for name in names) if limits else None,
    )


def learned_of(
    declared: AbstractDeclaration, batch: Batch, scale: Scale, *, key: PRNGKeyArray
) -> AbstractBayesianNetwork:
    """Terms, networks, or networks beside terms."""
    if declared.linear:
        return library_of(declared, batch, scale)
    networks = network_of(declared, key=key)
    if not declared.both:
        return networks
    assert isinstance(networks, BayesianMLP | MixtureMLP)
    return LibraryAndNetworks(Fixed(library_of(declared, batch, scale)), networks)


def network_of(declared: AbstractDeclaration, *, key: PRNGKeyArray) -> AbstractBayesianNetwork:
    """The drift network, several of them, or none."""
    states = len(declared.states)
    if not declared.pieces:
        return NothingLearned(states)
    assert declared.hidden is not None
    features, widths = len(declared.features), declared.hidden

    def one(key: PRNGKeyArray) -> BayesianMLP:
        if declared.ensemble:
            units = FEW_UNITS if declared.looks_ahead else UNITS
            mean = MLP.hinged(features, units, states, last=SMALL, key=key)
            return BayesianMLP.about(mean, sd=declared.initial_sd, prior_sd=declared.prior_sd)
        return BayesianMLP.init(
            (features, *widths, states),
            declared.activation,
            sd=declared.initial_sd,
            prior_sd=declared.prior_sd,
            last=declared.last_layer,
            key=key,
        )

    if declared.networks == 1:
        return one(key)
    return MixtureMLP.init(one, declared.networks, key=key)


def library_of(declared: AbstractDeclaration, batch: Batch, scale: Scale) -> BayesianLibrary:
    """All terms that may be in the drift, none of them chosen, and bumps for a Gaussian process."""
    states = len(declared.states)
    clock = [] if declared.autonomous else [scale.time]
    parts = [scale.states, *clock, scale.inputs]
    units = Standardiser(
        jnp.concatenate([jnp.atleast_1d(one.mean) for one in parts]),
        jnp.concatenate([jnp.atleast_1d(one.sd) for one in parts]),
    )
    rows, weights = feature_rows(declared, batch, scale)
    features = declared.features
    logarithms = tuple(name in declared.positive for name in features)
    smallest = jnp.min(rows, 0, where=weights[:, None] > 0, initial=jnp.inf)
    largest = jnp.max(rows, 0, where=weights[:, None] > 0, initial=-jnp.inf)
    room = jnp.where(np.array(logarithms), ROOM, LIBRARY_ROOM) * (largest - smallest)
    terms = library_terms(declared) if LIBRARY in declared.pieces else ()
    limits = (smallest - room, largest + room)
    basis = Basis.of(terms, features, logarithms, units, limits, rows, weights)
    if PROCESS in declared.pieces:
        used = jnp.where(weights[:, None] > 0, rows, rows[0])
        length = LENGTH * math.sqrt(len(features))
        basis = replace(basis, bumps=Bumps.of(used, BUMPS, length))
    return BayesianLibrary.nothing(basis, states, CHOICES)


def library_terms(declared: AbstractDeclaration) -> tuple[Expression, ...]:
    """Products of features up to a degree, functions of single ones, and what the user adds."""
    products = polynomials(declared.features, declared.library_degree)
    given = tuple(parse_formula(text) for text in declared.terms)
    return tuple(dict.fromkeys((*products, *declared.calls, *given)))


def known_drift_of(declared: AbstractDeclaration, batch: Batch | None = None) -> KnownDrift:
    """Known physics behind its gate, of logarithms where states are positive."""
    states, inputs = tuple(declared.states), tuple(declared.inputs)
    physics, positive = declared.physics, tuple(declared.positive)
    known = physics.known(states, inputs)
    if positive:
        highest = jnp.zeros(len(positive)) if batch is None else _highest(declared, batch)
        physics = PositivePhysics(physics, positive, Fixed(highest))
    return KnownDrift(physics, make_gate(declared.gate, states, known), states, inputs)


def _highest(declared: AbstractDeclaration, batch: Batch) -> Float[Array, " positive"]:
    """The largest recorded logarithm of each positive state; zero where it is not measured."""
    names = declared.observations
    largest = jnp.max(batch.values, (0, 1), where=batch.observed, initial=-jnp.inf)
    unseen = jnp.full((), -jnp.inf)
    found = [largest[names.index(one)] if one in names else unseen for one in declared.positive]
    return jnp.nan_to_num(jnp.stack(found), neginf=0.0)


def diffusion_of(declared: AbstractDeclaration, batch: Batch) -> AbstractDiffusion:
    """G as declared, or a guess, to be kept or to begin with."""
    wanted = spread_wanted(declared, declared.diffusion)
    if wanted is None:
        return declared_diffusion(declared)
    typical = declared.numerics.typical or {}
    sizes = jnp.array([typical.get(name, (0.0, 1.0))[1] for name in declared.states])
    guess = Fixed(rough_diffusion(batch, declared.lift) * sizes)
    if wanted == GUESS:
        return DiagonalDiffusion(guess)
    factor = Positive.of(np.full(len(declared.states), 0.5), floor=SMALLEST)
    return DiagonalDiffusion(Relative(guess, factor))


def declared_diffusion(declared: AbstractDeclaration) -> AbstractDiffusion:
    """G as declared."""
    states, given = tuple(declared.states), declared.diffusion
    if isinstance(given, AbstractDiffusion):
        return given
    if isinstance(given, AbstractParameter):
        with jax.ensure_compile_time_eval():  # also while a program is traced
            check_diagonal(np.asarray(given.value, float), states)
        return DiagonalDiffusion(given)
    if callable(given):
        return function_diffusion(given, states)
    return constant_diffusion(np.asarray(given, float), states)


def noise_of(declared: AbstractDeclaration, batch: Batch) -> AbstractParameter:
    """σ as declared, or a guess, to be kept or to begin with."""
    if isinstance(declared.noise, AbstractParameter):
        return declared.noise
    if not isinstance(declared.noise, str | None):
        return Fixed(jnp.asarray(declared.noise, float))
    guess = Fixed(Standardiser.of(batch.values, batch.observed).sd / NOISE_PART)
    if spread_wanted(declared, declared.noise) == GUESS:
        return guess
    return Relative(guess, Positive.of(np.ones(batch.values.shape[-1]), floor=SMALLEST))


def spread_wanted(declared: AbstractDeclaration, given: object) -> str | None:
    """How a spread that is not declared as numbers comes about."""
    if given is None:
        return LEARN if declared.latent is None else GUESS
    return given if isinstance(given, str) else None


def start_of(declared: AbstractDeclaration, scale: Scale) -> AbstractStart:
    """p(h₀): as declared, or the first row and what is given by name."""
    if isinstance(declared.start, AbstractStart):
        return declared.start
    states = tuple(declared.states)
    middle, spread = jnp.zeros(len(states)), jnp.ones(len(states))
    if declared.start == "first":
        return FirstObservation(Free(middle), Fixed(jnp.zeros(())))
    given = np.full(len(states), np.nan)
    columns: list[int | None] = [None] * len(states)
    for name, wanted in declared.start_of.items():
        at = states.index(name)
        if isinstance(wanted, str):
            columns[at] = None if wanted == INFER else tuple(declared.inputs).index(wanted)
        elif isinstance(wanted, Sequence):
            low, high = (coordinate(declared, name, float(end)) for end in wanted)
            centre, unit = scale.states.mean[at], scale.states.sd[at]
            middle = middle.at[at].set((0.5 * (low + high) - centre) / unit)
            width = (high - low) / RANGE_SPREADS / unit
            spread = spread.at[at].set(jnp.maximum(width, 2 * SMALLEST))
        else:
            given[at] = coordinate(declared, name, float(wanted))
    return UncertainStart(
        Free(middle),
        Positive(jnp.log(spread - SMALLEST), SMALLEST),
        None if np.isnan(given).all() else Fixed(jnp.asarray(given)),
        tuple(columns) if any(one is not None for one in columns) else None,
        tuple(name in declared.positive for name in states),
    )


def coordinate(declared: AbstractDeclaration, name: str, value: float) -> float:
    """A number of a state as the model keeps it."""
    return math.log(value) if name in declared.positive else value
