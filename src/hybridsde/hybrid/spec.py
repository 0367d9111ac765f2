"""`HybridSDE`: what the user declares about a system before any data are seen."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from hybridsde._parameters import AbstractParameter, Fixed, Free, Positive, Relative
from hybridsde._types import Array, Numbers, PRNGKeyArray
from hybridsde.data import Batch
from hybridsde.data.checks import check_names, check_positive, check_whole
from hybridsde.fit import Langevin, Training
from hybridsde.forecast import AbstractForecaster, GradientDescent, ModelSpec, Requirements
from hybridsde.forecast.spec import structure_of
from hybridsde.hybrid.defaults import default_solver, default_training
from hybridsde.hybrid.forecaster import SDEForecaster
from hybridsde.model.bayesian import (
    AbstractBayesianNetwork,
    BayesianMLP,
    NothingLearned,
    SampledNetworks,
)
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

LEARN, GUESS = "learn", "guess"
SMALLEST = 1e-2
"""Learned spreads stay above this share of the guess that they begin from."""
NOISE_PART = 20
"""A guess at the noise: this part of an observation's spread."""
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
      observation with its noise and a learned spread for what it does not show.
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
    start: AbstractStart | str | None = None
    positive: Sequence[str] = ()
    interpolation: str = "held"
    latent: Latent | None = None

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
        # Building the pieces checks them, so that a mistake is told here and not during a fit.
        self._known()
        if self.latent is not None:
            self._check_latent()
        names = self.observations
        if isinstance(self.start, str):
            _check_choice(self.start, {"first": 0, "uncertain": 0}, "start")
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
        """Empirical PAC-Bayes by default, Heun's rule, and a few thousand steps of Adam."""
        loss = EmpiricalPACBayes() if objective is None else objective
        if not isinstance(loss, AbstractSDEObjective):
            raise ValueError(f"`objective` must be a loss of an SDE, but is {loss!r}.")
        if langevin is not None and not isinstance(loss, LogPosterior):
            raise ValueError(
                "`langevin` steps follow the log posterior: say objective=LogPosterior()."
            )
        solver = loss.solver or default_solver(data)
        if callable(self.diffusion) or isinstance(self.diffusion, AbstractDiffusion):
            check_starts(self.init(data, key=jr.key(0)), data)
        return GradientDescent(
            self.init,
            loss.with_solver(solver),
            training or default_training(data.count),
            langevin,
            finish=lambda model: SDEForecaster(model, solver),
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

        return SDEForecaster(structure_of(self, build), solver_from_notes(notes["solver"]))

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
            lift = jnp.asarray(np.linalg.pinv(matrix))
            start, observation = self._start(), self._linear(matrix, batch)
        else:
            lift = jnp.zeros((len(states), len(names)))
            start, observation = encoder_and_decoder(
                self.latent, batch, len(states), names, self._noise(batch), key=latent_key
            )
        measured = Scale.of(batch, lift)
        raw = Scale.identity(len(states), len(self.inputs))
        return BayesianSDE(
            network=self._network(key=network_key),
            weights=WEIGHTS[self.weights],
            known=self._known(batch),
            diffusion=self._measured_diffusion(batch, lift),
            observation=observation,
            start=start,
            scale=Fixed(measured if self.standardise else raw),
            autonomous=self.autonomous,
            interpolation=self.interpolation,
            context=self.context,
            first_scored_row=1 if self.latent is None else 0,
        )

    def _linear(self, matrix: np.ndarray, batch: Batch) -> GaussianObservation:
        """States, or combinations of them, measured with noise."""
        return GaussianObservation(
            matrix=Fixed(jnp.asarray(matrix)),
            sd=self._noise(batch),
            names=self.observations,
            orthonormal=has_orthonormal_rows(matrix),
            positive=tuple(name for name in self.observations if name in self.positive),
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
        if wanted == GUESS:
            return DiagonalDiffusion(Fixed(rough_diffusion(batch, lift)))
        if wanted == LEARN:
            guess = Fixed(rough_diffusion(batch, lift))
            factor = Positive.of(np.full(len(self.states), 0.5), floor=SMALLEST)
            return DiagonalDiffusion(Relative(guess, factor))
        return self._diffusion()

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
        return UncertainStart(default, Positive.of(np.ones(len(self.states)), floor=SMALLEST))


def _numbers(given: Numbers | AbstractParameter) -> np.ndarray:
    """Plain numbers, also while a program is traced that a model is declared in."""
    with jax.ensure_compile_time_eval():
        return np.asarray(given.value if isinstance(given, AbstractParameter) else given, float)


def _check_choice(value: str, choices: Mapping, what: str) -> None:
    if value not in choices:
        raise ValueError(f"`{what}` must be one of {', '.join(choices)}, but is {value!r}.")
