"""What every system to compare with has in common: how it is declared, fitted and asked."""

import abc
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from hybridsde._devices import over_seeds, repetitions, same_for_seeds
from hybridsde._errors import InputError, InputNotice
from hybridsde._parameters import AbstractParameter, Fixed, Positive, Relative
from hybridsde._types import Array, Float, Keys, Numbers, PRNGKeyArray
from hybridsde.data import Batch, Trajectories
from hybridsde.data.checks import check_names, check_whole
from hybridsde.fit import Callback, Fitted, Training, train, train_many
from hybridsde.forecast import score_seen
from hybridsde.model import AbstractObservation, GaussianObservation
from hybridsde.model.declared import Declared
from hybridsde.model.latent import Channels
from hybridsde.model.observation import check_noise
from hybridsde.objective import AbstractObjective, Terms
from hybridsde.simulate import AbstractSolver

SMALLEST = 1e-2
"""Learned noise stays above this share of the spread of its observation."""
FIRST_NOISE = 0.1
"""Learned noise begins at this share."""
SAME_STEP = 1e-3
"""Relative difference of two time steps that count as equal."""


class Prediction(NamedTuple):
    """Sampled forecasts of every row, those that were given included."""

    means: Float[Array, "sample series time obs"]
    """Without measurement noise."""
    sd: Float[Array, "#sample #series #time obs"]
    """Of the noise."""

    @classmethod
    def of(
        cls, observation: AbstractObservation, states: Float[Array, "sample series time state"]
    ) -> "Prediction":
        """What would be measured of sampled states, with the noise of the observation."""
        sd = jnp.broadcast_to(observation.sd.value, (1, 1, 1, len(observation.names)))
        return cls(observation.mean(states), sd)


class AbstractForecaster(eqx.Module):
    """A system with all its numbers, ready to be asked."""

    observation: eqx.AbstractVar[AbstractObservation]

    @abc.abstractmethod
    def predict(self, batch: Batch, samples: int, *, key: PRNGKeyArray) -> Prediction:
        """Forecasts at the times of the batch, from its first rows alone."""


class AbstractTrained(AbstractForecaster):
    """A system that is trained by gradient descent."""

    @abc.abstractmethod
    def loss(self, batch: Batch, total: int, *, key: PRNGKeyArray) -> Terms:
        """What training makes small: the terms on `batch`, which stands for `total` series."""


class OwnLoss(AbstractObjective):
    """The loss that a trained system comes with."""

    def __call__(
        self, model: Any, solver: AbstractSolver, batch: Batch, total: int, *, key: PRNGKeyArray
    ) -> Terms:
        """The terms on `batch`."""
        del solver
        return model.loss(batch, total, key=key)


@dataclass(frozen=True, kw_only=True, eq=False)
class AbstractBaseline(Declared):
    """A system to compare with, as it is declared.

    - `observed`: the columns of the recordings.
    - `positive`: those that cannot be zero or less, which are modelled by their logarithm.
    - `noise`: standard deviation of a measurement; learned by default.
    """

    observed: Sequence[str]
    positive: Sequence[str] = ()
    noise: Numbers | None = None

    @property
    def inputs(self) -> tuple[str, ...]:
        """None: these systems have no place for inputs."""
        return ()

    @property
    def observations(self) -> tuple[str, ...]:
        """The columns of the recordings."""
        return tuple(self.observed)

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """As in its paper."""

    @property
    def discrete(self) -> bool:
        """Whether all rows must come in equal steps of time."""
        return False

    @property
    def complete(self) -> bool:
        """Whether no value may be missing."""
        return False

    @property
    def package(self) -> str | None:
        """What it needs of the extra `baselines`, if anything."""
        return None

    @property
    def training(self) -> Training:
        """How it is trained unless something else is asked for."""
        return Training(epochs=500, batch_size=8, learning_rate=3e-3)

    @abc.abstractmethod
    def init(self, batch: Batch, *, key: PRNGKeyArray) -> AbstractForecaster:
        """Before training, its scales measured on `batch`. Can be mapped over repetitions."""

    def __post_init__(self):
        check_names(self.observations, "observed")
        if not self.observations:
            raise ValueError("`observed` is empty. Name at least one column.")
        unknown = [name for name in self.positive if name not in self.observations]
        if unknown:
            raise ValueError(f"`positive` names {unknown[0]!r}, which is not observed.")
        if self.noise is not None:
            check_noise(np.asarray(self.noise, float), self.observations)

    def check(self, data: Trajectories) -> None:
        """A `ValueError` unless it is installed and takes recordings of this kind."""
        if self.package and find_spec(self.package) is None:
            raise InputError(
                f"{self.name} needs {self.package}. Install it with: pip install "
                "'hybridsde[baselines]'"
            )
        if data.input_names:
            raise ValueError(
                f"{self.name} takes no inputs, but the data hold {', '.join(data.input_names)}."
            )
        super().check(data)
        if self.discrete:
            check_regular(data, self.name)
        if self.complete:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", InputNotice)
                check_complete(self.encode(data), self.name)

    def fit(
        self,
        batch: Batch,
        *,
        validation: Batch | None = None,
        training: Training | None = None,
        callbacks: Iterable[Callback] = (),
        key: PRNGKeyArray,
    ) -> Fitted[AbstractForecaster]:
        """Train by gradient descent on its own loss."""
        init_key, train_key = jr.split(key)
        return train(
            self.init(batch, key=init_key),
            batch,
            OwnLoss(),
            training=training or self.training,
            validation=validation,
            callbacks=callbacks,
            key=train_key,
        )

    def fit_many(
        self,
        batch: Batch,
        *,
        validation: Batch | None = None,
        training: Training | None = None,
        callbacks: Iterable[Callback] = (),
        keys: Keys,
    ) -> Fitted[AbstractForecaster]:
        """One fit for each key, as one program; each equals the `fit` of its key."""
        pairs = jax.vmap(jr.split)(keys)
        models = eqx.filter_vmap(lambda key: self.init(batch, key=key))(pairs[:, 0])
        return train_many(
            models,
            same_for_seeds(batch, len(keys)),
            OwnLoss(),
            training=training or self.training,
            validation=None if validation is None else same_for_seeds(validation, len(keys)),
            callbacks=callbacks,
            keys=pairs[:, 1],
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class AbstractGiven(AbstractBaseline):
    """A system without an encoder.

    - `given`: first rows of a series that a forecast is given.
    """

    given: int = 1

    def __post_init__(self):
        super().__post_init__()
        check_whole(self.given, "given")

    @property
    def context(self) -> int:
        """How many first rows a forecast is given."""
        return self.given


class AbstractEstimated(AbstractGiven):
    """A system whose numbers come from the recordings at once, without chance."""

    def __post_init__(self):
        super().__post_init__()
        if self.noise is not None:
            raise ValueError(
                f"`noise` cannot be set: for {self.name} it is estimated with everything else."
            )

    def estimate(self, batch: Batch, callbacks: tuple[Callback, ...]) -> Fitted[AbstractForecaster]:
        """All numbers, by `init` unless that is only the beginning."""
        del callbacks
        return Fitted(self.init(batch, key=jr.key(0)), {}, np.array(False), np.array(0))

    def fit(
        self,
        batch: Batch,
        *,
        validation: Batch | None = None,
        training: Training | None = None,
        callbacks: Iterable[Callback] = (),
        key: PRNGKeyArray,
    ) -> Fitted[AbstractForecaster]:
        """Nothing is trained."""
        del validation, training, key
        return self.estimate(batch, tuple(callbacks))

    def fit_many(
        self,
        batch: Batch,
        *,
        validation: Batch | None = None,
        training: Training | None = None,
        callbacks: Iterable[Callback] = (),
        keys: Keys,
    ) -> Fitted[AbstractForecaster]:
        """The same for every key."""
        del validation, training
        one, count = self.estimate(batch, tuple(callbacks)), len(keys)
        arrays, static = eqx.partition(one.model, eqx.is_array)
        models = eqx.combine(same_for_seeds(arrays, count), static)
        history = {name: np.repeat(rows[:, None], count, 1) for name, rows in one.history.items()}
        return Fitted(models, history, np.full(count, one.diverged), np.full(count, one.epochs))


def noise_of(declared: AbstractBaseline, batch: Batch) -> AbstractParameter:
    """σ as declared, or to be learned in units of each observation's spread."""
    if declared.noise is not None:
        return Fixed(jnp.asarray(declared.noise, float))
    share = np.full(batch.values.shape[-1], FIRST_NOISE)
    return Relative(Fixed(Channels.of(batch).sd), Positive.of(share, floor=SMALLEST))


def direct(declared: AbstractBaseline, sd: AbstractParameter) -> GaussianObservation:
    """Observations that are what the system itself is about."""
    return GaussianObservation(
        matrix=Fixed(jnp.eye(len(declared.observations))),
        sd=sd,
        names=declared.observations,
        orthonormal=True,
        positive=tuple(declared.positive),
    )


def likelihood_terms(log_likelihood: Float[Array, " series"], price: Float[Array, ""]) -> Terms:
    """Minus the mean log-likelihood and what is added to it."""
    zero, found = jnp.zeros(()), log_likelihood.mean()
    return Terms(price - found, found, zero, price, price)


def since_start(batch: Batch) -> Float[Array, "series time"]:
    """Times since the first row."""
    return jnp.pad(jnp.cumsum(batch.steps, 1), [(0, 0), (1, 0)])


def check_regular(data: Trajectories, name: str, interval: float | None = None) -> float:
    """The time step that all rows share; a `ValueError` where there is none."""
    steps = np.concatenate([np.diff(t[:n]) for t, n in zip(data.times, data.lengths, strict=True)])
    step = float(np.median(steps)) if interval is None and steps.size else interval or 1.0
    wrong = np.abs(steps - step) > SAME_STEP * step
    if wrong.any():
        raise ValueError(
            f"{name} moves in equal steps of time, here of {step:g}, but a step of the data is "
            f"{steps[wrong][0]:g}. Resample them to a grid, with missing values where it allows "
            "them, or compare with a system in continuous time."
        )
    return step


def check_complete(data: Trajectories, name: str) -> None:
    """A `ValueError` where a value is missing."""
    recorded = np.arange(data.times.shape[1]) < data.lengths[:, None]
    missing = np.argwhere(recorded[..., None] & ~data.observed)
    if missing.size:
        series, _, column = missing[0]
        raise ValueError(
            f"{name} needs every value of every row, but {data.states[column]!r} is missing in "
            f"series {data.ids[series]!r}. Fill it in, or compare with another system."
        )


@eqx.filter_jit
def score_forecaster(
    model: AbstractForecaster, batch: Batch, context: int, draws: int, *, key: PRNGKeyArray
) -> dict[str, Float[Array, " column"]]:
    """Every score after the given rows, and `mse_all`, which counts those too."""
    path_key, noise_key = jr.split(key)
    found = model.predict(batch, draws, key=path_key)
    observation, later = model.observation, found.means[:, :, context:]
    sd = jnp.broadcast_to(found.sd, found.means.shape)[:, :, context:]
    draw = later + sd * jr.normal(noise_key, later.shape, later.dtype)
    table = score_seen(observation, later, draw, sd, batch, context)
    raw = observation.raw
    error = (raw(found.means).mean(0) - raw(batch.values)) ** 2
    return table | {"mse_all": jnp.mean(error, where=batch.observed)[None]}


@eqx.filter_jit
def score_forecasters(
    models: AbstractForecaster, batch: Batch, context: int, draws: int, keys: Keys
) -> dict[str, Float[Array, "seed column"]]:
    """Scores of every repetition on the same recordings, one after the other."""

    def one(model: AbstractForecaster, batch: Batch, key: PRNGKeyArray):
        return score_forecaster(model, batch, context, draws, key=key)

    test = same_for_seeds(batch, repetitions(models))
    return over_seeds(one, models, test, keys, one_by_one=True)
