"""A fitted system to compare with: the same questions as to a `Run`."""

from collections.abc import Iterable
from dataclasses import dataclass

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pandas as pd

from hybridsde._types import Numbers, PRNGKeyArray
from hybridsde.baselines import AbstractBaseline, AbstractForecaster, Prediction, score_forecaster
from hybridsde.baselines.base import check_regular
from hybridsde.data import Batch, Trajectories
from hybridsde.data.checks import check_whole
from hybridsde.fit import Callback, Training
from hybridsde.forecast import SCORES, Forecast, clock_of, future, label

FORECASTS = 1
"""Folded into the seed of a run to give the key of its forecasts."""


@dataclass(frozen=True, eq=False)
class BaselineRun:
    """The result of `fit` for a system of `hybridsde.baselines`."""

    declared: AbstractBaseline
    model: AbstractForecaster
    history: pd.DataFrame
    """One row per epoch; one column per term of the loss. Empty where nothing was trained."""
    diverged: bool
    seed: int
    interval: float | None
    """The step of time that all rows share, where the system needs one."""

    def forecast(
        self,
        start: Trajectories,
        times: Numbers | None = None,
        *,
        elapsed: Numbers | None = None,
        draws: int = 200,
        seed: int | None = None,
    ) -> Forecast:
        """Sampled futures of every trajectory in `start`, as `Run.forecast` gives them.

        `states` are the observations without measurement noise.
        """
        self.declared.check(start)
        check_whole(draws, "draws", least=2)
        context = self.declared.context
        if np.any(start.lengths < context):
            raise ValueError(
                f"A forecast is given the first {context} rows. Some series has fewer."
            )
        clock = clock_of(start, times, elapsed, context)
        begun = np.concatenate([start.times[:, :context], clock], 1)
        self._check_steps(np.diff(begun, axis=1))
        path_key, noise_key = jr.split(self._key(seed))
        asked = future(self.declared.encode(start), clock, None, context)
        found = _predict(self.model, asked, draws, path_key)
        means = found.means[:, :, context:]
        sd = jnp.broadcast_to(found.sd, found.means.shape)[:, :, context:]
        seen = means + sd * jr.normal(noise_key, means.shape, means.dtype)
        where = (clock, start.times[:, 0], start.ids)
        raw, names = self.model.observation.raw, self.declared.observations
        return Forecast(
            label(np.asarray(raw(means)), *where, names, "state"),
            label(np.asarray(raw(seen)), *where, names, "obs"),
            1,
        )

    def score(
        self, data: Trajectories, *, draws: int = 200, seed: int | None = None
    ) -> pd.DataFrame:
        """Scores of forecasts from the first rows of every series, as `Run.score` gives them."""
        self.declared.check_later(data)
        check_whole(draws, "draws", least=2)
        if self.interval is not None:
            check_regular(data, self.declared.name, self.interval)
        batch, context = self.declared.batch(data), self.declared.context
        table = score_forecaster(self.model, batch, context, draws, key=self._key(seed))
        rows = [*self.declared.observations, "overall"]
        return pd.DataFrame({name: np.asarray(table[name]) for name in SCORES}, rows)

    def _check_steps(self, steps: np.ndarray) -> None:
        if self.interval is not None and not np.allclose(steps, self.interval, rtol=1e-3):
            raise ValueError(
                f"{self.declared.name} moves in steps of {self.interval:g}: forecast times must "
                "follow the given rows one by one at that step."
            )

    def _key(self, seed: int | None) -> PRNGKeyArray:
        return jr.fold_in(jr.key(self.seed), FORECASTS) if seed is None else jr.key(seed)


@eqx.filter_jit
def _predict(model: AbstractForecaster, batch: Batch, draws: int, key: PRNGKeyArray) -> Prediction:
    return model.predict(batch, draws, key=key)


def fit_baseline(
    model: AbstractBaseline,
    data: Trajectories,
    *,
    training: Training | None = None,
    validation: Trajectories | None = None,
    callbacks: Iterable[Callback] = (),
    seed: int = 0,
) -> BaselineRun:
    """Fit a system to recordings. The same seed gives the same numbers."""
    model.check_training(data)
    interval = check_regular(data, model.name) if model.discrete else None
    if validation is not None:
        model.check_later(validation)
        if interval is not None:
            check_regular(validation, model.name, interval)
    fitted = model.fit(
        model.batch(data),
        validation=None if validation is None else model.batch(validation),
        training=training,
        callbacks=callbacks,
        key=jr.key(seed),
    )
    history = pd.DataFrame(fitted.history).rename_axis("epoch")
    return BaselineRun(model, fitted.model, history, bool(fitted.diverged), seed, interval)
