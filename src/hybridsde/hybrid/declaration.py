"""What a hybrid is declared by: its fields, and the names that follow from them."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Final

import jax.numpy as jnp
import numpy as np

from hybridsde._parameters import AbstractParameter, Fixed
from hybridsde._types import (
    Activation,
    Array,
    Evidence,
    Far,
    Float,
    Interpolation,
    Learned,
    Numbers,
    Weights,
)
from hybridsde.data import Clock
from hybridsde.forecast import ModelSpec, Requirements
from hybridsde.hybrid.knowledge import Knowledge
from hybridsde.hybrid.numerics import Numerics
from hybridsde.model.diffusion import AbstractDiffusion
from hybridsde.model.drift import LearnedFlow
from hybridsde.model.latent import Latent
from hybridsde.model.observation import observation_matrix
from hybridsde.model.start import AbstractStart
from hybridsde.physics import AbstractPhysics, EquationPhysics, FunctionPhysics, NoPhysics
from hybridsde.physics.expression import Call, Name, arguments_of
from hybridsde.physics.flows import parse_flows

NETWORK: Final = "network"
LIBRARY: Final = "library"
PROCESS: Final = "process"
ENSEMBLE: Final = "ensemble"
AUTO: Final = "auto"
"""Kinds of learned parts, and the wish that the evidence may choose."""
MOST_TERMS = 36
"""A library without a degree has no more products than this."""
MOST_COEFFICIENTS = 1500
"""Larger libraries are refused: their covariance alone would fill the memory."""
ENSEMBLE_MEMBERS = 8
"""Networks of an ensemble."""
CHOICES_IN_A_STEP = 4
"""Draws of the coefficients of a library in a gradient step."""
PERIODIC = ("sin", "cos")
"""Functions that make sense of an angle, in radians, and of nothing else."""
Start = float | int | str | Sequence[float | int]
"""Where an unmeasured state begins: a number, "infer", an input, or a range."""


@dataclass(frozen=True, eq=False, repr=False)
class AbstractDeclaration(ModelSpec):
    """The fields of a `HybridSDE`, which says what they mean."""

    states: Sequence[str]
    physics: AbstractPhysics = field(default_factory=NoPhysics)
    gate: Numbers | Mapping[str, float] | str | None = None
    inputs: Sequence[str] = ()
    observed: Sequence[str] | Mapping[str, Mapping[str, float]] | None = None
    diffusion: Numbers | Callable | AbstractParameter | AbstractDiffusion | str | None = None
    noise: Numbers | AbstractParameter | str | None = None
    hidden: Sequence[int] | None = (50, 50)
    activation: Activation = "softplus"
    weights: Weights = "path"
    standardise: bool = True
    autonomous: bool = True
    initial_sd: float = 0.01
    prior_sd: float = 1.0
    last_layer: float = 0.1
    start: AbstractStart | str | Mapping[str, Start] | None = None
    positive: Sequence[str] = ()
    interpolation: Interpolation = "held"
    latent: Latent | None = None
    bounds: Mapping[str, Sequence[float | int]] = field(default_factory=dict)
    saturates: Mapping[str, Sequence[float | int]] = field(default_factory=dict)
    exact: Sequence[str] = ()
    sees: Mapping[str, Sequence[str]] | None = None
    far: Far = "fade"
    members: int = 4
    learned: Learned | Sequence[Learned] = AUTO
    degree: int | None = None
    functions: Sequence[str] = ("sin", "cos")
    angles: Sequence[str] = ()
    flows: Sequence[str] = ()
    terms: Sequence[str] = ()
    knowledge: Knowledge = field(default_factory=Knowledge)
    numerics: Numerics = field(default_factory=Numerics)

    def __repr__(self) -> str:
        """What was declared: fields that are as by default are left out."""
        given = (one for one in fields(self) if not _is_default(one, getattr(self, one.name)))
        parts = (f"{one.name}={_shown(getattr(self, one.name))}" for one in given)
        return f"{type(self).__name__}({', '.join(parts)})"

    @property
    def observations(self) -> tuple[str, ...]:
        """The columns of the recordings."""
        if self.latent is not None:
            return tuple(self.observed or ())
        return observation_matrix(self.observed, tuple(self.states))[0]

    @property
    def context(self) -> int:
        """How many first rows a forecast is given."""
        return 1 if self.latent is None else self.latent.context

    @property
    def name(self) -> str:
        """By what is known and what is learned."""
        if isinstance(self.physics, NoPhysics):
            return "black box"
        return "hybrid" if self.pieces else "physics alone"

    @property
    def pieces(self) -> tuple[str, ...]:
        """The kinds that the learned part is made of; none for physics alone."""
        if self.hidden is None or set(self.exact) == set(self.states):
            return ()
        if self.learned == AUTO:
            return (NETWORK,)
        return (self.learned,) if isinstance(self.learned, str) else tuple(self.learned)

    @property
    def complete(self) -> bool:
        """Whether the known equations are all there is, so that no drift is learned."""
        return not self.pieces and self.latent is None

    @property
    def noiseless(self) -> bool:
        """Whether some state moves without noise, by declaration."""
        given = self.diffusion.value if isinstance(self.diffusion, Fixed) else self.diffusion
        if given is None or isinstance(given, str | AbstractParameter | AbstractDiffusion):
            return False
        if callable(given):
            return False
        g = np.asarray(given, float)
        return g.ndim < 2 and bool(np.any(g == 0))  # a matrix must be invertible

    @property
    def learned_flows(self) -> tuple[LearnedFlow, ...]:
        """Flows that are learned, each in the place of a state that it changes."""
        states, flows = tuple(self.states), parse_flows(self.flows, known=False)
        holder: dict[str, int] = {}

        def place(number: int, tried: set[str]) -> bool:
            """Find a state for a flow, moving others where that helps (an augmenting path)."""
            for end in reversed(flows[number].ends):
                if end not in tried:
                    tried.add(end)
                    if end not in holder or place(holder[end], tried):
                        holder[end] = number
                        return True
            return False

        for number, flow in enumerate(flows):
            if not place(number, set()):
                raise ValueError(
                    f"The flow {flow.name!r} is one too many: learned flows between some states "
                    "cannot be more than these states. Give one of them a rate."
                )
        place_of = {number: states.index(end) for end, number in holder.items()}

        def index(end: str | None) -> int | None:
            return None if end is None else states.index(end)

        return tuple(
            LearnedFlow(place_of[number], index(flow.source), index(flow.target))
            for number, flow in enumerate(flows)
        )

    @property
    def undecided(self) -> bool:
        """Whether `fit` may choose what the learned part is made of; until then it is a network."""
        held = self.weights == "path" and self.latent is None
        small = self.coefficients <= MOST_COEFFICIENTS
        return self.learned == AUTO and bool(self.pieces) and held and small

    @property
    def library_degree(self) -> int:
        """As declared, or the largest of three, two and one that has not too many products."""
        if self.degree is not None:
            return self.degree
        products = {d: math.comb(len(self.features) + d, d) for d in (3, 2)}
        return next((d for d, count in products.items() if count <= MOST_TERMS), 1)

    @property
    def coefficients(self) -> int:
        """How many a library has."""
        products = math.comb(len(self.features) + self.library_degree, self.library_degree)
        return len(self.states) * (products + len(self.calls) + len(self.terms))

    @property
    def calls(self) -> tuple[Call, ...]:
        """Functions of single features in a library: sine and cosine of angles alone."""
        plain = [name for name in self.features if name not in self.positive]
        return tuple(
            Call(function, (Name(name),))
            for name in plain
            for function in self.functions
            if function not in PERIODIC or name in self.angular
        )

    @property
    def angular(self) -> tuple[str, ...]:
        """Angles: those declared, and whatever a known equation takes a sine or cosine of."""
        known = self.physics.equations if isinstance(self.physics, EquationPhysics) else ()
        used = {name for one in known for name in arguments_of(one.rate, PERIODIC)}
        return tuple(name for name in self.features if name in {*self.angles, *used})

    @property
    def linear(self) -> bool:
        """Whether the learned part is linear in its coefficients."""
        return bool(self.pieces) and not {NETWORK, ENSEMBLE} & {*self.pieces}

    @property
    def both(self) -> bool:
        """Whether networks learn what a library of terms leaves."""
        return {LIBRARY, NETWORK} <= {*self.pieces}

    @property
    def ensemble(self) -> bool:
        """Whether the learned part is an ensemble of small networks."""
        return ENSEMBLE in self.pieces

    @property
    def scored(self) -> bool:
        """Whether everything is found by second-order steps, without an objective."""
        return self.linear or self.ensemble or self.complete

    @property
    def networks(self) -> int:
        """How many networks are trained: one where a mixture makes no sense, none without any."""
        if self.ensemble:
            return ENSEMBLE_MEMBERS
        if NETWORK not in self.pieces:
            return 0
        return 1 if self.latent is not None or self.weights != "path" else self.members

    @property
    def samples(self) -> int:
        """One draw of the weights of each network in a gradient step: the next step draws anew."""
        return CHOICES_IN_A_STEP if self.linear else max(1, self.networks)

    @property
    def estimator(self) -> Evidence:
        """Of the likelihood that networks are trained on, where nobody chooses one.

        Where states are not measured, errors from row to row say little of them: a drift of such a
        state that is off is taken for noise, and forecasts many rows ahead go astray.
        """
        return "ahead" if self.looks_ahead else "auto"

    @property
    def rival(self) -> str:
        """What is tried beside a library: small networks that simulate well, or larger ones."""
        return ENSEMBLE if self.looks_ahead else NETWORK

    @property
    def looks_ahead(self) -> bool:
        """Whether forecasts many rows ahead are learned from: where states are not measured."""
        return bool(self.hidden_states)

    @property
    def state_names(self) -> tuple[str, ...]:
        """The components of h."""
        return tuple(self.states)

    @property
    def hidden_states(self) -> tuple[str, ...]:
        """States that no observation shows."""
        if self.latent is not None:
            return ()
        _, matrix = observation_matrix(self.observed, tuple(self.states))
        return tuple(s for s, seen in zip(self.states, np.any(matrix, 0), strict=True) if not seen)

    @property
    def offsets(self) -> Mapping[str, float] | None:
        """What is subtracted from columns that lie far from zero."""
        return self.numerics.offsets

    @property
    def smallest(self) -> Mapping[str, float] | None:
        """What a zero of a positive state is below."""
        return self.numerics.smallest

    @property
    def clock(self) -> Clock:
        """From the origin, in steps that are short against what moves."""
        return Clock(self.numerics.origin or 0.0, self.numerics.step, self.interpolation)

    @property
    def requirements(self) -> Requirements:
        """Irregular times, missing values and inputs are the common case."""
        return Requirements()

    @property
    def lift(self) -> Float[Array, "state obs"]:
        """Carries observations back to states; zero for latent ones."""
        if self.latent is not None:
            return jnp.zeros((len(self.states), len(self.observations)))
        _, matrix = observation_matrix(self.observed, tuple(self.states))
        return jnp.asarray(np.linalg.pinv(matrix))

    @property
    def features(self) -> tuple[str, ...]:
        """What a learned part may depend on: states, the time unless autonomous, inputs."""
        return (*self.states, *(() if self.autonomous else ("t",)), *self.inputs)

    @property
    def start_of(self) -> Mapping[str, Start]:
        """Starts that are given by name."""
        return self.start if isinstance(self.start, Mapping) else {}


def _is_default(one: Field, value: object) -> bool:
    if one.default_factory is not MISSING:
        return repr(value) == repr(one.default_factory())
    return value is one.default or (isinstance(value, str | int | float) and value == one.default)


def _shown(value: object) -> str:
    """Known physics as it was written, and other things as Python shows them."""
    if isinstance(value, EquationPhysics):
        texts = [repr(one.source) for one in value.equations]
        return f"equations({', '.join([*texts, *_parameters(value)])})"
    if isinstance(value, FunctionPhysics):
        name = getattr(value.function, "__name__", "function")
        return f"known_drift({', '.join([name, *_parameters(value)])})"
    return " ".join(repr(value).split())


def _parameters(physics: EquationPhysics | FunctionPhysics) -> Iterator[str]:
    for name, one in physics.parameters.items():
        number = np.asarray(one.value).tolist()
        text = f"{number:.6g}" if isinstance(number, float) else str(number)
        yield f"{name}={text}" if isinstance(one, Fixed) else f"{name}={type(one).__name__}({text})"
