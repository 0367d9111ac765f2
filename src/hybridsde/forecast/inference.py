"""How a declared model becomes a forecaster: by gradient descent on a loss, or at once."""

import abc
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from hybridsde._devices import same_for_seeds
from hybridsde._types import Keys, PRNGKeyArray
from hybridsde.data import Batch
from hybridsde.fit import Callback, Checkpoint, Fitted, Langevin, Training, train, train_many
from hybridsde.forecast.forecaster import AbstractForecaster
from hybridsde.objective import AbstractObjective


class AbstractInference(abc.ABC):
    """From recordings to a forecaster, or to one for each of several keys."""

    @abc.abstractmethod
    def fit(
        self,
        data: Batch,
        *,
        validation: Batch | None = None,
        callbacks: Iterable[Callback] = (),
        checkpoint: Checkpoint | None = None,
        key: PRNGKeyArray,
    ) -> Fitted[AbstractForecaster]:
        """One fit. The same key gives the same numbers."""

    @abc.abstractmethod
    def fit_many(
        self,
        data: Batch,
        *,
        validation: Batch | None = None,
        callbacks: Iterable[Callback] = (),
        keys: Keys,
    ) -> Fitted[AbstractForecaster]:
        """A fit for each key, as one program; each equals the `fit` of its key."""


@dataclass(frozen=True)
class GradientDescent(AbstractInference):
    """An untrained model, a loss, Adam on it, and perhaps Langevin steps after that."""

    init: Callable[..., eqx.Module]
    """The untrained model, from data and a `key`. Can be mapped over repetitions."""
    loss: AbstractObjective
    training: Training
    langevin: Langevin | None = None
    finish: Callable[[Any], AbstractForecaster] = lambda model: model
    """The forecaster that a trained model is."""

    def fit(
        self,
        data: Batch,
        *,
        validation: Batch | None = None,
        callbacks: Iterable[Callback] = (),
        checkpoint: Checkpoint | None = None,
        key: PRNGKeyArray,
    ) -> Fitted[AbstractForecaster]:
        """Train; with validation data the best epoch on them is kept."""
        init_key, train_key = jr.split(key)
        fitted = train(
            self.init(data, key=init_key),
            data,
            self.loss,
            training=self.training,
            langevin=self.langevin,
            validation=validation,
            callbacks=callbacks,
            checkpoint=checkpoint,
            key=train_key,
        )
        return fitted.map(self.finish)

    def fit_many(
        self,
        data: Batch,
        *,
        validation: Batch | None = None,
        callbacks: Iterable[Callback] = (),
        keys: Keys,
    ) -> Fitted[AbstractForecaster]:
        """The same data for every key."""
        pairs = jax.vmap(jr.split)(keys)
        fitted = train_many(
            eqx.filter_vmap(lambda key: self.init(data, key=key))(pairs[:, 0]),
            same_for_seeds(data, len(keys)),
            self.loss,
            training=self.training,
            langevin=self.langevin,
            validation=None if validation is None else same_for_seeds(validation, len(keys)),
            callbacks=callbacks,
            keys=pairs[:, 1],
        )
        return fitted.map(self.finish)


@dataclass(frozen=True)
class ClosedForm(AbstractInference):
    """All numbers come from the recordings at once, without chance."""

    estimate: Callable[[Batch, tuple[Callback, ...]], Fitted[AbstractForecaster]]

    def fit(
        self,
        data: Batch,
        *,
        validation: Batch | None = None,
        callbacks: Iterable[Callback] = (),
        checkpoint: Checkpoint | None = None,
        key: PRNGKeyArray,
    ) -> Fitted[AbstractForecaster]:
        """Nothing is chosen on validation data, and nothing is worth a checkpoint."""
        del validation, checkpoint, key
        return self.estimate(data, tuple(callbacks))

    def fit_many(
        self,
        data: Batch,
        *,
        validation: Batch | None = None,
        callbacks: Iterable[Callback] = (),
        keys: Keys,
    ) -> Fitted[AbstractForecaster]:
        """The same for every key."""
        del validation
        one, count = self.estimate(data, tuple(callbacks)), len(keys)
        arrays, static = eqx.partition(one.model, eqx.is_array)
        history = {name: np.repeat(rows[:, None], count, 1) for name, rows in one.history.items()}
        return Fitted(
            eqx.combine(same_for_seeds(arrays, count), static),
            history,
            np.full(count, one.diverged),
            np.full(count, one.epochs),
            np.full(count, one.kept),
        )


@dataclass(frozen=True)
class FromRandomStarts(AbstractInference):
    """All numbers are found at once, from a start that a key decides."""

    estimate: Callable[[Batch, tuple[Callback, ...], PRNGKeyArray], Fitted[AbstractForecaster]]

    def fit(
        self,
        data: Batch,
        *,
        validation: Batch | None = None,
        callbacks: Iterable[Callback] = (),
        checkpoint: Checkpoint | None = None,
        key: PRNGKeyArray,
    ) -> Fitted[AbstractForecaster]:
        """Nothing is chosen on validation data, and nothing is worth a checkpoint."""
        del validation, checkpoint
        return self.estimate(data, tuple(callbacks), key)

    def fit_many(
        self,
        data: Batch,
        *,
        validation: Batch | None = None,
        callbacks: Iterable[Callback] = (),
        keys: Keys,
    ) -> Fitted[AbstractForecaster]:
        """One key after the other, by one program; histories are filled up at their ends."""
        del validation
        each = [self.estimate(data, tuple(callbacks), key) for key in keys]
        _, static = eqx.partition(each[0].model, eqx.is_array)
        arrays = [eqx.filter(one.model, eqx.is_array) for one in each]
        longest = max(int(one.epochs) for one in each)
        rows = {
            name: np.stack([_filled(one.history[name], longest) for one in each], 1)
            for name in each[0].history
        }
        return Fitted(
            eqx.combine(jax.tree.map(lambda *leaves: jnp.stack(leaves), *arrays), static),
            rows,
            np.stack([one.diverged for one in each]),
            np.stack([one.epochs for one in each]),
            np.stack([one.kept for one in each]),
        )


def _filled(rows: np.ndarray, length: int) -> np.ndarray:
    return np.pad(rows, (0, length - len(rows)), constant_values=np.nan)


def estimated(forecaster: AbstractForecaster) -> Fitted[AbstractForecaster]:
    """What an estimate without iterations has found."""
    return Fitted(forecaster, {}, np.array(False), np.array(0), np.array(0))
