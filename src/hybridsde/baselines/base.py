"""What every system to compare with has in common: how it is declared and fitted."""

import abc
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import jax.numpy as jnp
import jax.random as jr
import numpy as np

from hybridsde._parameters import AbstractParameter, Fixed, Positive, Relative
from hybridsde._types import Array, Float, Numbers, PRNGKeyArray
from hybridsde.data import Batch, Clock, Trajectories
from hybridsde.data.checks import check_names, check_whole
from hybridsde.fit import Callback, Fitted, Langevin, Training
from hybridsde.forecast import (
    AbstractForecaster,
    ClosedForm,
    GradientDescent,
    ModelSpec,
    Prediction,
)
from hybridsde.forecast.spec import blank_batch, offsets_of, smallest_of
from hybridsde.model import AbstractObservation, GaussianObservation, Standardiser
from hybridsde.model.observation import check_noise
from hybridsde.objective import AbstractObjective, Terms

SMALLEST = 1e-2
"""Learned noise stays above this share of the spread of its observation."""
FIRST_NOISE = 0.1
"""Learned noise begins at this share."""
TRAINING = Training(epochs=500, batch_size=8, learning_rate=3e-3)
"""How most of them are trained."""


@dataclass(frozen=True, kw_only=True, eq=False)
class AbstractBaseline(ModelSpec):
    """A system to compare with, as it is declared.

    - `observed`: the columns of the recordings.
    - `positive`: those that cannot be zero or less, which are modelled by their logarithm.
    - `offsets`: what is subtracted from columns that lie far from zero; `fit` chooses it.
    - `smallest`: what a zero of a positive column is taken for; `fit` chooses it.
    """

    observed: Sequence[str]
    positive: Sequence[str] = ()
    offsets: Mapping[str, float] | None = field(default=None, kw_only=True)
    smallest: Mapping[str, float] | None = field(default=None, kw_only=True)

    def __post_init__(self):
        check_names(self.observations, "observed")
        if not self.observations:
            raise ValueError("`observed` is empty. Name at least one column.")
        unknown = [name for name in self.positive if name not in self.observations]
        if unknown:
            raise ValueError(f"`positive` names {unknown[0]!r}, which is not observed.")
        check_whole(self.context, "given")
        self.check_settings()

    @abc.abstractmethod
    def check_settings(self) -> None:
        """A `ValueError` where a setting of its own makes no sense."""

    @abc.abstractmethod
    def init(self, batch: Batch, *, key: PRNGKeyArray) -> AbstractForecaster:
        """Before training, its scales measured on `batch`."""

    @property
    def observations(self) -> tuple[str, ...]:
        """The columns of the recordings."""
        return tuple(self.observed)

    @property
    def state_names(self) -> tuple[str, ...]:
        """Forecasts are of the observations themselves."""
        return self.observations

    @property
    def clock(self) -> Clock:
        """The times of the table, from row to row."""
        return Clock()

    def settled(self, data: Trajectories) -> "AbstractBaseline":
        """With offsets of columns that lie far from zero, and what zeros of positive ones are."""
        offsets = offsets_of(data, self.positive) or None
        return replace(self, offsets=offsets, smallest=smallest_of(data, self.positive) or None)


class NoInputs:
    """A system without a place for inputs."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """None."""
        return ()


@dataclass(frozen=True, kw_only=True, eq=False)
class WithInputs:
    """A system that takes recordings with inputs.

    - `inputs`: their names.
    """

    inputs: Sequence[str] = ()


class AbstractSameShape(AbstractBaseline):
    """A system whose arrays have shapes that follow from its declaration."""

    def restore(self, notes: Mapping[str, Any]) -> AbstractForecaster:
        """The structure follows from the declaration."""
        del notes
        return self.init(blank_batch(self), key=jr.key(0))

    def notes_of(self, forecaster: AbstractForecaster) -> dict[str, Any]:
        """Nothing but its arrays."""
        del forecaster
        return {}


@dataclass(frozen=True, kw_only=True, eq=False)
class FixedContext:
    """A system without an encoder.

    - `given`: first rows of a series that a forecast is given.
    """

    given: int = 1

    @property
    def context(self) -> int:
        """How many first rows a forecast is given."""
        return self.given


class AbstractTrained(AbstractForecaster):
    """A system that is trained by gradient descent on a loss of its own."""

    @abc.abstractmethod
    def loss(self, batch: Batch, total: int, *, key: PRNGKeyArray) -> Terms:
        """What training makes small: the terms on `batch`, which stands for `total` series."""


class OwnLoss(AbstractObjective):
    """The loss that a trained system comes with."""

    def __call__(
        self, model: AbstractTrained, batch: Batch, total: int, *, key: PRNGKeyArray
    ) -> Terms:
        """The terms on `batch`."""
        return model.loss(batch, total, key=key)


class AbstractTrainedBaseline(NoInputs, AbstractSameShape):
    """Declares an `AbstractTrained`. Its `init` can be mapped over repetitions."""

    @property
    @abc.abstractmethod
    def training(self) -> Training:
        """How it is trained unless something else is asked for."""

    def inference(
        self,
        data: Batch,
        objective: AbstractObjective | None = None,
        training: Training | None = None,
        langevin: Langevin | None = None,
    ) -> GradientDescent:
        """Adam on its own loss."""
        del data
        refuse_choices(self, objective=objective, langevin=langevin)
        return GradientDescent(self.init, OwnLoss(), training or self.training)


class AbstractEstimatedBaseline(AbstractBaseline):
    """Declares a system whose numbers come from the recordings at once, without chance."""

    @abc.abstractmethod
    def estimate(self, batch: Batch, callbacks: tuple[Callback, ...]) -> Fitted[AbstractForecaster]:
        """All numbers."""

    def inference(
        self,
        data: Batch,
        objective: AbstractObjective | None = None,
        training: Training | None = None,
        langevin: Langevin | None = None,
    ) -> ClosedForm:
        """Nothing is trained, so `training` changes nothing."""
        del data, training
        refuse_choices(self, objective=objective, langevin=langevin)
        return ClosedForm(self.estimate)


@dataclass(frozen=True, kw_only=True, eq=False)
class AbstractSimpleBaseline(NoInputs, FixedContext, AbstractSameShape, AbstractEstimatedBaseline):
    """Estimated at once, without inputs, its size known before any data are."""


def refuse_choices(spec: ModelSpec, **given: object) -> None:
    """A `ValueError` for a choice that a system does not leave open."""
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"{spec.name} takes no `{name}`. Leave it out.")


def check_own_noise(noise: Numbers | None, names: tuple[str, ...]) -> None:
    """A `ValueError` unless the noise is left open, or positive."""
    if noise is not None:
        check_noise(np.asarray(noise, float), names)


def noise_of(noise: Numbers | None, batch: Batch) -> AbstractParameter:
    """σ as declared, or to be learned in units of each observation's spread."""
    if noise is not None:
        return Fixed(jnp.asarray(noise, float))
    share = np.full(batch.values.shape[-1], FIRST_NOISE)
    spread = Standardiser.of(batch.values, batch.observed).sd
    return Relative(Fixed(spread), Positive.of(share, floor=SMALLEST))


def direct(spec: AbstractBaseline, sd: Float[Array, " obs"]) -> GaussianObservation:
    """Observations that are what the system itself is about, with an estimated noise."""
    return GaussianObservation(
        matrix=Fixed(jnp.eye(len(spec.observations))),
        sd=Relative(Fixed(sd), Fixed(jnp.ones(()))),
        names=spec.observations,
        orthonormal=True,
        positive=tuple(spec.positive),
    )


def seen_through(
    observation: AbstractObservation, states: Float[Array, "sample series time state"]
) -> Prediction:
    """A forecast of the observations, by sampled states of a system's own."""
    found = Prediction.of_states(observation, states)
    return Prediction.of_observations(found.means, found.sd)


def likelihood_terms(log_likelihood: Float[Array, " series"], penalty: Float[Array, ""]) -> Terms:
    """Minus the mean log-likelihood and what is added to it."""
    zero, found = jnp.zeros(()), log_likelihood.mean()
    return Terms(penalty - found, found, zero, penalty, penalty)
