"""What everything that forecasts has in common: sampled futures after the rows of a history."""

import abc
from dataclasses import replace

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from hybridsde._parameters import Relative
from hybridsde._types import Array, Bool, Float, Int, PRNGKeyArray
from hybridsde.data import Batch
from hybridsde.estimate.estimator import AbstractEstimator
from hybridsde.model import AbstractObservation


class Prediction(eqx.Module):
    """Sampled forecasts of every row of a batch, those that were given included.

    Numbers are those of the model: logarithms of positive quantities.
    """

    means: Float[Array, "sample series time obs"]
    """What would be measured, without noise."""
    sd: Float[Array, "#sample #series #time obs"]
    """Of the measurement noise."""
    states: Float[Array, "sample series time state"]
    """What moves; the same as `means` where a system has no other states."""
    path_kl: Float[Array, "sample series"]
    """KL between the learned and the prior process along each path; 0 where there is no prior."""
    set_aside: Bool[Array, "#sample series obs"] | None = None
    """Which values of the last given row were beyond belief; None where nobody looked."""

    @classmethod
    def of_observations(
        cls,
        means: Float[Array, "sample series time obs"],
        sd: Float[Array, "#sample #series #time obs"],
    ) -> "Prediction":
        """Of a system that is about the observations themselves."""
        return cls(means, sd, means, jnp.zeros(means.shape[:2], means.dtype))

    @classmethod
    def of_states(
        cls,
        observation: AbstractObservation,
        states: Float[Array, "sample series time state"],
        path_kl: Float[Array, "sample series"] | None = None,
    ) -> "Prediction":
        """Of states that are seen through an observation map, with its noise."""
        sd = jnp.broadcast_to(observation.sd.value, (1, 1, 1, len(observation.names)))
        none = jnp.zeros(states.shape[:2], states.dtype)
        means = observation.shown(observation.mean(states))
        return cls(means, sd, states, none if path_kl is None else path_kl)

    def after(self, rows: int) -> "Prediction":
        """Without the first rows."""
        sd = self.sd if self.sd.shape[2] == 1 else self.sd[:, :, rows:]
        means, states = self.means[:, :, rows:], self.states[:, :, rows:]
        return replace(self, means=means, sd=sd, states=states)

    def at(self, rows: Int[np.ndarray, "series asked"] | None) -> "Prediction":
        """At these rows of each series; at all of them by default."""
        if rows is None:
            return self

        def taken(numbers: Float[Array, "..."]) -> Float[Array, "..."]:
            return jnp.take_along_axis(numbers, rows[None, :, :, None], 2)

        sd = self.sd if self.sd.shape[2] == 1 else taken(self.sd)
        return replace(self, means=taken(self.means), sd=sd, states=taken(self.states))

    def draws(self, *, key: PRNGKeyArray) -> Float[Array, "sample series time obs"]:
        """What would be measured, with noise."""
        return self.means + self.sd * jr.normal(key, self.means.shape, self.means.dtype)


class AbstractForecaster(eqx.Module):
    """A fitted system, ready to be asked. Nobody asks what kind of system it is."""

    observation: eqx.AbstractVar[AbstractObservation]
    """Names of the observations, which of them are positive, and their noise."""
    context: eqx.AbstractVar[int]
    """How many first rows a forecast is given; it is judged on those after them."""

    @abc.abstractmethod
    def predict(
        self, batch: Batch, draws: int, *, paths_per_weight: int = 1, key: PRNGKeyArray
    ) -> Prediction:
        """Sampled futures at the times of a batch, from its first rows alone.

        Inputs of all rows are known. Draws come in groups of `paths_per_weight` that share their
        parameters, where these have a distribution; it divides `draws`. Can be compiled and
        mapped over repetitions.
        """

    @abc.abstractmethod
    def spreads(self) -> dict[str, Relative]:
        """Standard deviations that calibration may multiply, by name; dynamics before noise."""

    @abc.abstractmethod
    def describe(self) -> str:
        """How forecasts are made, for a certificate to say."""


class StatesGiven(eqx.Module):
    """Draws of the states at the rows of a record, and what came out on the way."""

    states: Float[Array, "sample series time state"]
    log_evidence: Float[Array, " series"]
    """Ln p(y_1, y_2, … | y_0), the weights integrated out."""
    effective: Float[Array, " series"]
    """How many of the draws of the weights the record leaves, as an effective sample size."""
    innovations: Float[Array, "series time obs"]
    """(y_k − E y_k)/sd y_k given the rows before; NaN where nothing was measured."""


class AbstractStateEstimator(AbstractForecaster):
    """A forecaster with states that a record says something about, hidden ones too."""

    @abc.abstractmethod
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
        """Draws of every state at every row, given the rows up to it, or given all (`smooth`)."""

    @abc.abstractmethod
    def reading(self, estimator: AbstractEstimator) -> "AbstractStateEstimator":
        """The same forecaster, which reads the past of a forecast by this estimator."""


class AbstractBayesianForecaster(AbstractForecaster):
    """A forecaster that draws its weights from a distribution with a prior: PAC-Bayes applies."""

    @property
    @abc.abstractmethod
    def held(self) -> bool:
        """Whether a draw of the weights is held along a path."""

    @property
    @abc.abstractmethod
    def first_scored_row(self) -> int:
        """The first row that the likelihood counts."""

    @property
    @abc.abstractmethod
    def has_path_kl(self) -> bool:
        """Whether the KL of its paths to those of the prior is finite: every state has noise."""

    @abc.abstractmethod
    def log_evidence(self, batch: Batch, *, key: PRNGKeyArray) -> Float[Array, " series"]:
        """Ln p(y_1, y_2, … | y_0) of every series: the sum of its one-step forecasts."""

    @abc.abstractmethod
    def kl_to_prior(self) -> Float[Array, ""]:
        """KL between the distribution of the weights and their prior; infinite for a sample."""

    @abc.abstractmethod
    def at_prior(self) -> "AbstractBayesianForecaster":
        """With weights drawn from the prior."""


def noise_spread(observation: AbstractObservation) -> dict[str, Relative]:
    """The measurement noise, where it was estimated and not declared."""
    return {"noise": observation.sd} if isinstance(observation.sd, Relative) else {}
