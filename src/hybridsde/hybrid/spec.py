"""`HybridSDE`: what the user declares about a system before any data are seen."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from hybridsde._parameters import AbstractParameter, Fixed, Free, Positive, Relative
from hybridsde._types import Array, Numbers, PRNGKeyArray
from hybridsde.data import Batch, Clock, Trajectories
from hybridsde.data.checks import check_names, check_positive, check_whole
from hybridsde.fit import Langevin, Training
from hybridsde.fit.config import LONGEST
from hybridsde.forecast import AbstractForecaster, GradientDescent, ModelSpec, Requirements
from hybridsde.forecast.spec import structure_of
from hybridsde.hybrid.checks import INFER, check_bounds, check_starts_given, visible
from hybridsde.hybrid.defaults import SAMPLES, default_solver, default_training
from hybridsde.hybrid.first_guess import Guess, first_guess
from hybridsde.hybrid.forecaster import SDEForecaster
from hybridsde.hybrid.numerics import Numerics, Step, choose_step, origin_of
from hybridsde.model.bayesian import (
    AbstractBayesianNetwork,
    BayesianMLP,
    NothingLearned,
    SampledNetworks,
)
from hybridsde.model.bounds import MARGIN, Bounds
from hybridsde.model.diffusion import (
    AbstractDiffusion,
    DiagonalDiffusion,
    check_diagonal,
    constant_diffusion,
    function_diffusion,
)
from hybridsde.model.drift import KnownDrift, make_gate
from hybridsde.model.latent import Latent, encoder_and_decoder
from hybridsde.model.network import ACTIVATIONS
from hybridsde.model.observation import (
    GaussianObservation,
    check_bounded,
    check_noise,
    has_orthonormal_rows,
    observation_matrix,
)
from hybridsde.model.reach import Reach
from hybridsde.model.scaling import Scale, Standardiser, rough_diffusion
from hybridsde.model.sde import BayesianSDE, check_starts
from hybridsde.model.start import AbstractStart, FirstObservation, UncertainStart
from hybridsde.model.weights import WEIGHTS
from hybridsde.objective import (
    AbstractObjective,
    AbstractSDEObjective,
    EmpiricalPACBayes,
    LogPosterior,
)
from hybridsde.physics import AbstractPhysics, NoPhysics, PositivePhysics
from hybridsde.simulate.schemes import solver_from_notes, solver_notes

Start = float | int | str | Sequence[float | int]
"""Where an unmeasured state begins: a number, "infer", an input, or a range."""
LEARN, GUESS = "learn", "guess"
SMALLEST = 1e-2
"""Learned spreads stay above this share of the guess that they begin from."""
NOISE_PART = 20
"""A guess at the noise: this part of an observation's spread."""
RANGE_SPREADS = 4.0
"""A range of starts is taken for this many standard deviations."""
NETWORKS = "networks"
"""How many networks a sampler kept, where one did."""


@dataclass(frozen=True, eq=False)
class HybridSDE(ModelSpec):
    """A partially known stochastic system: names, known physics, and shapes of the rest.

    - `states`: names of the components of h.
    - `physics`: the equations that are known; see `known_drift`. Nothing by default.
    - `gate`: γ, the share of each known equation that is used: 1 by default, a number, one per
      state, numbers by name, or "learn".
    - `positive`: states that cannot be zero or less, such as populations. They are modelled by
      their logarithm; equations, data, forecasts and scores stay in raw units, `diffusion` and
      `noise` are relative.
    - `inputs`: names of the exogenous inputs u(t).
    - `observed`: which states are measured, or linear combinations of them by name. All by
      default.
    - `diffusion`: G as a number, one per state, a matrix, a function (h, t) ↦ G, a `Positive` to
      learn a diagonal, "guess" for a diagonal by the roughness of the training data, or "learn" to
      learn one that begins there, which is the default.
    - `noise`: standard deviation of a measurement, a `Positive` with a floor to learn it, "guess"
      for a twentieth of each observation's spread, or "learn" to begin there, which is the
      default. Learn both `diffusion` and `noise` with the estimator "filtered" only: the others
      cannot tell them apart.
    - `hidden`, `activation`: the drift network; `hidden=None` learns no drift: physics alone.
    - `weights`: "path" holds a draw of the weights along a path, "local" redraws them at every
      step.
    - `standardise`: whether the network sees standardised numbers (physics never does).
    - `autonomous`: whether the network is kept from seeing the time.
    - `initial_sd`, `prior_sd`: spread of the weights before training, and under the prior.
    - `last_layer`: factor on the starting weights of the last layer; small starts at the known
      physics.
    - `start`: p(h₀); "first" is the first observation, "uncertain", the default, is the first
      observation with its noise and a learned spread for what it does not show. Or, by name, where
      states start that are not measured there: a number, a range, the name of an input whose
      first value it is (a dose), or "infer".
    - `bounds`: pairs of limits by name of a state, such as {"level": (0, 10)}; see `Bounds`.
    - `exact`: states whose equation is complete: nothing is added to it.
    - `sees`: what the learned part of a state may depend on, by name of the state: states, inputs,
      and "t" unless autonomous. On everything by default.
    - `far`: what the learned part does far from the training data; "fade" to the known physics, or
      back to the data where nothing is known, or "free".
    - `numerics`: the origin of time, the longest step of the solver, its scheme, and the size of
      what is not measured. What is left out is chosen by `fit`, which looks at the data.
    - `latent`: a `Latent`, where states are not what is measured but are encoded from the first
      rows of `observed` and decoded into all of them. By default `diffusion` and `noise` are then
      guessed, since no filter can tell them apart.
    - `interpolation`: of inputs between their times, "held" from each to the next or "linear".
    """

    states: Sequence[str]
    physics: AbstractPhysics = field(default_factory=NoPhysics)
    gate: Numbers | Mapping[str, float] | str | None = None
    inputs: Sequence[str] = ()
    observed: Sequence[str] | Mapping[str, Mapping[str, float]] | None = None
    diffusion: Numbers | Callable | AbstractParameter | AbstractDiffusion | str | None = None
    noise: Numbers | AbstractParameter | str | None = None
    hidden: Sequence[int] | None = (50, 50)
    activation: str = "softplus"
    weights: str = "path"
    standardise: bool = True
    autonomous: bool = True
    initial_sd: float = 0.01
    prior_sd: float = 1.0
    last_layer: float = 0.1
    start: AbstractStart | str | Mapping[str, Start] | None = None
    positive: Sequence[str] = ()
    interpolation: str = "held"
    latent: Latent | None = None
    bounds: Mapping[str, Sequence[float | int]] = field(default_factory=dict)
    exact: Sequence[str] = ()
    sees: Mapping[str, Sequence[str]] | None = None
    far: str = "fade"
    numerics: Numerics = field(default_factory=Numerics)

    def __post_init__(self):
        check_names(self.states, "states")
        check_names(self.inputs, "inputs")
        states, inputs = tuple(self.states), tuple(self.inputs)
        if not states:
            raise ValueError("`states` is empty. Name at least one state.")
        check_names(states + inputs, "states and inputs")
        if not isinstance(self.physics, AbstractPhysics):
            raise ValueError(
                f"`physics` must be known physics, but is {self.physics!r}. Wrap a function as "
                "`known_drift(function, parameter=value)`."
            )
        _check_choice(self.activation, ACTIVATIONS, "activation")
        _check_choice(self.weights, WEIGHTS, "weights")
        _check_choice(self.interpolation, {"held": 0, "linear": 0}, "interpolation")
        for name in ("initial_sd", "prior_sd", "last_layer"):
            check_positive(getattr(self, name), name)
        if not isinstance(self.hidden, Sequence | None):
            raise ValueError(f"`hidden` must list widths, such as (100, 100), not {self.hidden!r}.")
        for width in self.hidden or ():
            check_whole(width, "hidden")
        for name in self.positive:
            if name not in states:
                raise ValueError(
                    f"`positive` names {name!r}, but the states are {', '.join(states)}."
                )
        if self.positive and isinstance(self.observed, Mapping):
            raise ValueError("`positive` states must be measured directly, not in combinations.")
        _check_choice(self.far, {"fade": 0, "free": 0}, "far")
        check_bounds(self.bounds, states, self.positive)
        # Building the pieces checks them, so that a mistake is told here and not during a fit.
        self._known()
        self._sees()
        if self.latent is not None:
            self._check_latent()
        names = self.observations
        if isinstance(self.start, str):
            _check_choice(self.start, {"first": 0, "uncertain": 0}, "start")
        if isinstance(self.start, Mapping):
            check_starts_given(self.start, states, inputs)
        for name in ("noise", "diffusion"):
            if isinstance(getattr(self, name), str):
                _check_choice(getattr(self, name), {LEARN: 0, GUESS: 0}, name)
        if isinstance(self.noise, AbstractParameter):
            check_bounded(self.noise)
        if not isinstance(self.noise, str | None):
            check_noise(_numbers(self.noise), names)
        if not isinstance(self.diffusion, str | None):
            self._diffusion()

    def _check_latent(self) -> None:
        if self.observed is None or isinstance(self.observed, Mapping):
            raise ValueError("With `latent`, `observed` must list the columns of the recordings.")
        check_names(tuple(self.observed), "observed")
        if self.positive:
            raise ValueError("`positive` is for states that are measured, not for latent ones.")
        if self.start is not None:
            raise ValueError("With `latent` the start is encoded: leave `start` out.")
        if self.bounds:
            raise ValueError("`bounds` are for states that mean something, not for latent ones.")

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
        return "physics alone" if self.hidden is None else "hybrid"

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
    def clock(self) -> Clock:
        """From the origin, in steps that are short against what moves."""
        return Clock(self.numerics.origin or 0.0, self.numerics.step, self.interpolation)

    def settled(self, data: Trajectories) -> "HybridSDE":
        """With origin, step, scheme, and first guesses by least squares on the known equations."""
        encoded, chosen = self._encode_quietly(data), self.numerics
        if chosen.origin is None:
            chosen = replace(chosen, origin=origin_of(encoded))
        spec = replace(self, numerics=chosen)
        if self.latent is not None or (chosen.step is not None and chosen.typical is not None):
            return spec
        pieces = encoded.told(self.interpolation).windows(LONGEST, LONGEST - 1, least=2)
        batch, lift = Batch.of(pieces, replace(spec.clock, step=None)), self._lift()
        model = eqx.filter_jit(spec.init)(batch, key=jr.key(0))
        step = chosen.step or choose_step(model, batch, lift)
        spec = spec._with_step(step)
        guess = spec._guess(model, Batch.of(pieces, spec.clock)) if chosen.typical is None else None
        if guess is None:
            return replace(spec, numerics=replace(spec.numerics, typical=chosen.typical or {}))
        found = guess.physics
        physics = found.inner if isinstance(found, PositivePhysics) else found
        spec = replace(spec, physics=physics)
        spec = replace(spec, numerics=replace(spec.numerics, typical=guess.typical))
        if chosen.step is None:
            moved = eqx.tree_at(lambda m: m.known.physics, model, found)
            mean = model.scale.value.states.mean
            for name, (centre, _) in guess.typical.items():
                mean = mean.at[tuple(self.states).index(name)].set(centre)
            moved = eqx.tree_at(lambda m: m.scale.frozen.states.mean, moved, mean)
            spec = spec._with_step(choose_step(moved, batch, lift))
        return spec

    def _with_step(self, step: Step | float) -> "HybridSDE":
        """With a longest step, and the scheme that goes with it."""
        if not isinstance(step, Step):
            return self
        scheme = self.numerics.scheme or step.scheme
        numerics = replace(self.numerics, step=step.length, scheme=scheme, why=step.why)
        return replace(self, numerics=numerics)

    def _guess(self, model: BayesianSDE, batch: Batch) -> Guess | None:
        """Parameters and sizes of unmeasured states as least squares finds them."""
        solver, hidden = self.numerics.solver, self.hidden_states
        assert solver is not None
        sizes = tuple(self._size(name, batch) for name in hidden)
        return first_guess(model, solver, batch, self._lift(), hidden, sizes)

    def _size(self, name: str, batch: Batch) -> float:
        """A scale on which an unmeasured state may start."""
        given = self.start.get(name) if isinstance(self.start, Mapping) else None
        ends = given if isinstance(given, Sequence) and not isinstance(given, str) else ()
        if isinstance(given, int | float):
            ends = (given,)
        if isinstance(given, str) and given in self.inputs:
            column = tuple(self.inputs).index(given)
            ends = (float(jnp.abs(batch.inputs[:, 0, column]).max()),)
        if not ends:
            ends = [end for end in self.bounds.get(name, ()) if math.isfinite(end)]
        size = max((abs(self._coordinate(name, float(end))) for end in ends), default=0.0)
        measured = Standardiser.of(batch.values, batch.observed)
        return size or float(jnp.mean(jnp.abs(measured.mean) + measured.sd))

    def _lift(self) -> Array:
        """Carries observations back to states."""
        _, matrix = observation_matrix(self.observed, tuple(self.states))
        return jnp.asarray(np.linalg.pinv(matrix))

    @property
    def requirements(self) -> Requirements:
        """Irregular times, missing values and inputs are the common case."""
        return Requirements()

    def inference(
        self,
        data: Batch,
        objective: AbstractObjective | None = None,
        training: Training | None = None,
        langevin: Langevin | None = None,
    ) -> GradientDescent:
        """Empirical PAC-Bayes by default, Heun's rule, and a thousand steps of Adam."""
        loss = EmpiricalPACBayes(samples=SAMPLES) if objective is None else objective
        if not isinstance(loss, AbstractSDEObjective):
            raise ValueError(f"`objective` must be a loss of an SDE, but is {loss!r}.")
        if langevin is not None and not isinstance(loss, LogPosterior):
            raise ValueError(
                "`langevin` steps follow the log posterior: say objective=LogPosterior()."
            )
        solver = loss.solver or self.numerics.solver or default_solver(data)
        if callable(self.diffusion) or isinstance(self.diffusion, AbstractDiffusion):
            check_starts(self.init(data, key=jr.key(0)), data)
        return GradientDescent(
            self.init,
            loss.with_solver(solver),
            training or default_training(data.count),
            langevin,
            finish=lambda model: SDEForecaster(model, solver, self.numerics.step),
        )

    def restore(self, notes: Mapping[str, Any]) -> SDEForecaster:
        """The structure of a fitted model with its scheme, and sampled networks if it has any."""
        networks = notes.get(NETWORKS, 0)
        whole = isinstance(networks, int) and not isinstance(networks, bool) and networks >= 0
        if not whole or (networks and self.hidden is None):
            raise ValueError(f"{NETWORKS!r} is {networks!r}")

        def build(batch: Batch, *, key: PRNGKeyArray) -> BayesianSDE:
            model = self.init(batch, key=key)
            if not networks:
                return model
            samples = jax.tree.map(
                lambda leaf: jnp.broadcast_to(leaf, (networks, *leaf.shape)), model.network.mean()
            )
            return model.with_networks(SampledNetworks(samples))

        solver = solver_from_notes(notes["solver"])
        return SDEForecaster(structure_of(self, build), solver, self.numerics.step)

    def notes_of(self, forecaster: AbstractForecaster) -> dict[str, Any]:
        """Its scheme, and how many networks a sampler kept."""
        assert isinstance(forecaster, SDEForecaster)
        network = forecaster.model.network
        kept = {NETWORKS: network.count} if isinstance(network, SampledNetworks) else {}
        return {"solver": solver_notes(forecaster.solver), **kept}

    def init(self, batch: Batch, *, key: PRNGKeyArray) -> BayesianSDE:
        """The untrained model, its scales measured on `batch`. Can be mapped over repetitions."""
        states, names = tuple(self.states), self.observations
        network_key, latent_key = (key, key) if self.latent is None else jr.split(key)
        if self.latent is None:
            _, matrix = observation_matrix(self.observed, states)
            lift = self._lift()
            start, observation = self._start(), self._linear(matrix, batch)
        else:
            lift = jnp.zeros((len(states), len(names)))
            start, observation = encoder_and_decoder(
                self.latent, batch, len(states), names, self._noise(batch), key=latent_key
            )
        measured = self._scale(batch, lift)
        raw = Scale.identity(len(states), len(self.inputs))
        scale = measured if self.standardise else raw
        known = self._known(batch)
        fades = self.far == "fade" and self.latent is None and self.hidden is not None
        return BayesianSDE(
            network=self._network(key=network_key),
            weights=WEIGHTS[self.weights],
            known=known,
            diffusion=self._measured_diffusion(batch, lift),
            observation=observation,
            start=start,
            scale=Fixed(scale),
            autonomous=self.autonomous,
            interpolation=self.interpolation,
            context=self.context,
            first_scored_row=1 if self.latent is None else 0,
            reach=Fixed(Reach.of(batch, lift, scale, known.gate.known)) if fades else None,
            sees=self._sees(),
            bounds=self._bounds(measured),
        )

    def _scale(self, batch: Batch, lift: Array) -> Scale:
        """Measured, with guesses for states that are not."""
        scale = Scale.of(batch, lift)
        typical = self.numerics.typical or {}
        for position, name in enumerate(self.states):
            if name in typical:
                mean, sd = typical[name]
                rate = scale.rate[position] / scale.states.sd[position] * sd
                scale = eqx.tree_at(
                    lambda s: (s.states.mean, s.states.sd, s.rate),
                    scale,
                    (
                        scale.states.mean.at[position].set(mean),
                        scale.states.sd.at[position].set(sd),
                        scale.rate.at[position].set(rate),
                    ),
                )
        return scale

    def _sees(self) -> tuple[tuple[bool, ...], ...] | None:
        """What the learned part of each state may depend on; not on columns that are starts."""
        states, inputs = tuple(self.states), tuple(self.inputs)
        known = self.physics.known(states, inputs)
        starts = self.start.values() if isinstance(self.start, Mapping) else ()
        columns = [given for given in starts if isinstance(given, str) and given in inputs]
        return visible(
            self.exact, self.sees, states, inputs, known, columns, autonomous=self.autonomous
        )

    def _bounds(self, scale: Scale) -> Fixed | None:
        if not self.bounds:
            return None
        pairs = check_bounds(self.bounds, tuple(self.states), self.positive)
        endless = (-math.inf, math.inf)
        low, high = np.array([pairs.get(name, endless) for name in self.states]).T
        width = jnp.minimum(scale.states.sd, jnp.asarray(high - low))
        return Fixed(Bounds(jnp.asarray(low), jnp.asarray(high), MARGIN * width))

    def _limits(self) -> tuple[tuple[float, float], ...] | None:
        """What is shown of bounded states that are measured directly."""
        if not self.bounds or isinstance(self.observed, Mapping):
            return None
        pairs = check_bounds(self.bounds, tuple(self.states), self.positive)
        return tuple(pairs.get(name, (-math.inf, math.inf)) for name in self.observations)

    def _linear(self, matrix: np.ndarray, batch: Batch) -> GaussianObservation:
        """States, or combinations of them, measured with noise."""
        return GaussianObservation(
            matrix=Fixed(jnp.asarray(matrix)),
            sd=self._noise(batch),
            names=self.observations,
            orthonormal=has_orthonormal_rows(matrix),
            positive=tuple(name for name in self.observations if name in self.positive),
            limits=self._limits(),
        )

    def _network(self, *, key: PRNGKeyArray) -> AbstractBayesianNetwork:
        states = len(self.states)
        if self.hidden is None:
            return NothingLearned(states)
        return BayesianMLP.init(
            (states + len(self.inputs) + (not self.autonomous), *self.hidden, states),
            self.activation,
            sd=self.initial_sd,
            prior_sd=self.prior_sd,
            last=self.last_layer,
            key=key,
        )

    def _known(self, batch: Batch | None = None) -> KnownDrift:
        states, inputs = tuple(self.states), tuple(self.inputs)
        known = self.physics.known(states, inputs)
        physics = self.physics
        if self.positive:
            highest = jnp.zeros(len(self.positive)) if batch is None else self._highest(batch)
            physics = PositivePhysics(physics, tuple(self.positive), Fixed(highest))
        return KnownDrift(physics, make_gate(self.gate, states, known), states, inputs)

    def _highest(self, batch: Batch) -> Array:
        """The largest recorded logarithm of each positive state; zero where it is not measured."""
        names = self.observations
        largest = jnp.max(batch.values, (0, 1), where=batch.observed, initial=-jnp.inf)
        unseen = jnp.full((), -jnp.inf)
        found = [largest[names.index(name)] if name in names else unseen for name in self.positive]
        return jnp.nan_to_num(jnp.stack(found), neginf=0.0)

    def _measured_diffusion(self, batch: Batch, lift: Array) -> AbstractDiffusion:
        """G as declared, or a guess, to be kept or to begin with."""
        wanted = self._spread(self.diffusion)
        if wanted in (GUESS, LEARN):
            guess = Fixed(rough_diffusion(batch, lift) * self._sizes())
        if wanted == GUESS:
            return DiagonalDiffusion(guess)
        if wanted == LEARN:
            factor = Positive.of(np.full(len(self.states), 0.5), floor=SMALLEST)
            return DiagonalDiffusion(Relative(guess, factor))
        return self._diffusion()

    def _sizes(self) -> Array:
        """What guesses for states that are not measured are multiplied with; 1 for others."""
        typical = self.numerics.typical or {}
        return jnp.array([typical.get(name, (0.0, 1.0))[1] for name in self.states])

    def _diffusion(self) -> AbstractDiffusion:
        """G as declared."""
        states = tuple(self.states)
        if isinstance(self.diffusion, AbstractDiffusion):
            return self.diffusion
        if isinstance(self.diffusion, AbstractParameter):
            check_diagonal(np.asarray(self.diffusion.value, float), states)
            return DiagonalDiffusion(self.diffusion)
        if callable(self.diffusion):
            return function_diffusion(self.diffusion, states)
        return constant_diffusion(np.asarray(self.diffusion, float), states)

    def _noise(self, batch: Batch) -> AbstractParameter:
        if isinstance(self.noise, AbstractParameter):
            return self.noise
        if not isinstance(self.noise, str | None):
            return Fixed(jnp.asarray(self.noise, float))
        guess = Fixed(Standardiser.of(batch.values, batch.observed).sd / NOISE_PART)
        if self._spread(self.noise) == GUESS:
            return guess
        return Relative(guess, Positive.of(np.ones(batch.values.shape[-1]), floor=SMALLEST))

    def _spread(self, given: Any) -> str | None:
        """How a spread that is not declared as numbers comes about."""
        if given is None:
            return LEARN if self.latent is None else GUESS
        return given if isinstance(given, str) else None

    def _start(self) -> AbstractStart:
        if isinstance(self.start, AbstractStart):
            return self.start
        default = Free(jnp.zeros(len(self.states)))
        if self.start == "first":
            return FirstObservation(default, Fixed(jnp.zeros(())))
        starts = self.start if isinstance(self.start, Mapping) else {}
        middle, spread = np.zeros(len(self.states)), np.ones(len(self.states))
        given = np.full(len(self.states), np.nan)
        columns: list[int | None] = [None] * len(self.states)
        typical = self.numerics.typical or {}
        for position, name in enumerate(self.states):
            wanted = starts.get(name, INFER)
            mean, sd = typical.get(name, (0.0, 1.0))
            if isinstance(wanted, Sequence) and not isinstance(wanted, str):
                low, high = (self._coordinate(name, end) for end in wanted)
                middle[position] = (0.5 * (low + high) - mean) / sd
                spread[position] = max((high - low) / RANGE_SPREADS / sd, 2 * SMALLEST)
            elif not isinstance(wanted, str):
                given[position] = self._coordinate(name, float(wanted))
            elif wanted != INFER:
                columns[position] = tuple(self.inputs).index(wanted)
        return UncertainStart(
            Free(middle),
            Positive.of(spread, floor=SMALLEST),
            None if np.isnan(given).all() else Fixed(jnp.asarray(given)),
            tuple(columns) if any(one is not None for one in columns) else None,
        )

    def _coordinate(self, name: str, value: float) -> float:
        """A number of a state as the model keeps it."""
        return math.log(value) if name in self.positive else value


def _numbers(given: Numbers | AbstractParameter) -> np.ndarray:
    """Plain numbers, also while a program is traced that a model is declared in."""
    with jax.ensure_compile_time_eval():
        return np.asarray(given.value if isinstance(given, AbstractParameter) else given, float)


def _check_choice(value: str, choices: Mapping, what: str) -> None:
    if value not in choices:
        raise ValueError(f"`{what}` must be one of {', '.join(choices)}, but is {value!r}.")
