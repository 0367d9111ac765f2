"""A fitted Bayesian SDE as a forecaster: the model, and the scheme that moves its paths."""

import math
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hybridsde._parameters import Fixed, Relative, trainable
from hybridsde._types import Array, Float, PRNGKeyArray, PyTree, Scalar
from hybridsde.data import Batch
from hybridsde.estimate.estimator import AbstractEstimator
from hybridsde.forecast import (
    AbstractBayesianForecaster,
    AbstractStateEstimator,
    Prediction,
    StatesGiven,
    noise_spread,
)
from hybridsde.hybrid.history import go_on, states_given
from hybridsde.hybrid.lost_paths import held_far_out
from hybridsde.model import (
    AbstractObservation,
    BayesianMLP,
    BayesianSDE,
    DiagonalDiffusion,
    GaussianObservation,
    MeanField,
    MixtureMLP,
)
from hybridsde.objective.base import estimate
from hybridsde.simulate import AbstractSolver, simulate

EVIDENCE_SAMPLES = 4
"""Draws of the weights for an estimate of the evidence."""


class SDEForecaster(AbstractBayesianForecaster, AbstractStateEstimator):
    """Sampled paths of dh = (f_θ + γ ∘ r_ξ) dt + G dW, θ ~ p_φ(θ), from a history's first rows."""

    model: BayesianSDE
    solver: AbstractSolver
    longest_step: float | None = eqx.field(static=True)
    """In units of time; None where steps follow rows."""
    past: AbstractEstimator | None
    """What reads the past of a forecast; None for the filter of the likelihood."""

    def __init__(
        self,
        model: BayesianSDE,
        solver: AbstractSolver,
        longest_step: float | None = None,
        past: AbstractEstimator | None = None,
    ):
        self.model, self.solver, self.longest_step, self.past = model, solver, longest_step, past

    @property
    def observation(self) -> AbstractObservation:
        """What is measured of the states."""
        return self.model.observation

    @property
    def context(self) -> int:
        """How many first rows a forecast is given."""
        return self.model.context

    def predict(
        self, batch: Batch, draws: int, *, paths_per_weight: int = 1, key: PRNGKeyArray
    ) -> Prediction:
        """Paths under `draws / paths_per_weight` draws of the weights, as many under each.

        They begin at the first rows, or, where the batch has a past, at what all of it says of the
        state. A decoder has no filter: then the last rows of the past are encoded.
        """
        if batch.past is not None and isinstance(self.observation, GaussianObservation):
            states, wild = go_on(
                self.model,
                self.solver,
                batch,
                draws,
                paths_per_weight=paths_per_weight,
                estimator=self.past,
                key=key,
            )
            return replace(self._seen(states), set_aside=wild[None])
        weights = draws // paths_per_weight
        paths = simulate(
            self.model, self.solver, batch, samples=weights, paths=paths_per_weight, key=key
        )
        return self._seen(paths.states, paths.kl)

    def _seen(
        self,
        states: Float[Array, "sample series time state"],
        kl: Float[Array, "sample series"] | None = None,
    ) -> Prediction:
        """What would be measured of paths; those that explode are held far out."""
        states = held_far_out(states, self.model.scale.value.states)
        return Prediction.of_states(self.observation, states, kl)

    def states_given(
        self,
        batch: Batch,
        draws: int,
        *,
        smooth: bool,
        estimator: AbstractEstimator,
        paths_per_weight: int = 1,
        key: PRNGKeyArray,
    ) -> StatesGiven:
        """By the estimator under each draw of the weights."""
        if not isinstance(self.observation, GaussianObservation):
            raise ValueError("States behind a decoder cannot be filtered; `forecast` encodes them.")
        return states_given(
            self.model,
            self.solver,
            batch,
            draws,
            smooth=smooth,
            estimator=estimator,
            paths_per_weight=paths_per_weight,
            key=key,
        )

    def reading(self, estimator: AbstractEstimator) -> "SDEForecaster":
        """The same, which goes on from what this estimator makes of the past."""
        return SDEForecaster(self.model, self.solver, self.longest_step, estimator)

    def spreads(self) -> dict[str, Relative]:
        """G, where it is learned from a guess, and the noise likewise."""
        g, noise = self.model.diffusion, noise_spread(self.observation)
        if isinstance(g, DiagonalDiffusion) and isinstance(g.sd, Relative):
            return {"diffusion": g.sd, **noise}
        return noise

    def describe(self) -> str:
        """By its scheme."""
        steps, scheme = self.solver.substeps, type(self.solver).__name__
        if self.longest_step is not None:
            return f"{scheme} with steps of at most {self.longest_step / steps:.4g} of time"
        plural = "s" if steps > 1 else ""
        return f"{scheme} with {steps} step{plural} from row to row"

    @property
    def held(self) -> bool:
        """Whether a draw of the weights is held along a path."""
        return self.model.weights.held

    @property
    def first_scored_row(self) -> int:
        """The first row that is not given: 0 where the start is encoded, so that it counts too."""
        return self.model.first_scored_row

    @property
    def has_path_kl(self) -> bool:
        """Whether every state moves with noise."""
        g = self.model.diffusion
        return not isinstance(g, DiagonalDiffusion) or bool(np.all(np.asarray(g.sd.value) > 0))

    def log_evidence(self, batch: Batch, *, key: PRNGKeyArray) -> Float[Array, " series"]:
        """By the filter, averaged over weights; by sampled paths where there is a decoder."""
        found = estimate(self.model, self.solver, batch, EVIDENCE_SAMPLES, "auto", key=key)
        return found.log_likelihood

    def kl_to_prior(self) -> Scalar:
        """KL(p_φ(θ) ‖ p_pri(θ))."""
        return self.model.network.kl_to_prior()

    def on_grid(self) -> "SDEForecaster":
        """With a learned γ at the nearest point of Γ."""
        gate = self.model.known.gate.quantised()
        return eqx.tree_at(lambda f: f.model.known.gate, self, gate)

    def at_prior(self) -> "SDEForecaster":
        """With weights drawn from the prior."""
        network = self.model.network
        if not isinstance(network, BayesianMLP | MixtureMLP):
            return self
        prior = BayesianMLP(network.prior.value, network.prior)
        return eqx.tree_at(lambda f: f.model.network, self, prior)

    def around_prior(self, sd: float | None = None) -> "SDEForecaster":
        """With a prior that is what was fitted, or N(μ, sd²) about it, and the posterior too."""
        network = self.model.network
        if not isinstance(network, BayesianMLP):
            return self
        both = network.posterior
        if sd is not None:
            log_sd = jax.tree.map(lambda leaf: jnp.full_like(leaf, math.log(sd)), both.mean)
            both = MeanField(both.mean, log_sd)
        return eqx.tree_at(lambda f: f.model.network, self, BayesianMLP(both, Fixed(both)))


def only_weights(model: BayesianSDE) -> PyTree:
    """Marks the weights of the network, and nothing else, as what training may move."""
    nothing = jax.tree.map(lambda _: False, model)
    return eqx.tree_at(lambda m: m.network, nothing, trainable(model.network))
