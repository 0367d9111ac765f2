"""A fitted model and what one does with it."""

from collections.abc import Iterable
from dataclasses import dataclass

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pandas as pd

from hybridsde.data import Batch, Trajectories
from hybridsde.fit import Callback, Training, train
from hybridsde.forecast import Forecast, future, label, predict, score
from hybridsde.model import BayesianSDE, HybridSDE
from hybridsde.objective import AbstractObjective, EmpiricalPACBayes
from hybridsde.simulate import AbstractSolver, EulerMaruyama


@dataclass(frozen=True, eq=False)
class Run:
    """The result of `fit`: forecasts, scores and the history of training."""

    declared: HybridSDE
    model: BayesianSDE
    solver: AbstractSolver
    history: pd.DataFrame
    """One row per epoch; one column per term of the objective."""
    diverged: bool
    seed: int

    def forecast(
        self,
        start: Trajectories,
        times: np.ndarray | None = None,
        *,
        elapsed: np.ndarray | None = None,
        inputs: np.ndarray | None = None,
        draws: int = 200,
        paths_per_weight: int = 4,
        seed: int | None = None,
    ) -> Forecast:
        """Sampled futures of every trajectory in `start`.

        Give `times` on the clock of the data (one grid for all, or one row per trajectory), or
        `elapsed` since each trajectory's start. `inputs` hold u at those times, one row per
        trajectory; without them the first inputs are kept.
        """
        self.declared.check(start)
        clock = _clock(start, times, elapsed)
        draws, paths_per_weight = _check_draws(draws, paths_per_weight)
        if inputs is not None:
            inputs = np.asarray(inputs, float)
            wanted = (*clock.shape, len(self.declared.inputs))
            if inputs.shape != wanted:
                raise ValueError(f"`inputs` must have shape {wanted}, but has {inputs.shape}.")
        batch = future(start, clock, inputs)
        path_key, noise_key = jr.split(jr.key(self.seed + 1 if seed is None else seed))
        states = predict(
            self.model,
            self.solver,
            batch,
            draws=draws,
            paths_per_weight=paths_per_weight,
            key=path_key,
        )[:, :, 1:]
        seen = np.asarray(self.model.observation.sample(jnp.asarray(states), key=noise_key))
        names = self.model.observation.names
        return Forecast(
            label(states, clock, start.ids, tuple(self.declared.states), "state"),
            label(seen, clock, start.ids, names, "obs"),
            paths_per_weight,
        )

    def score(
        self,
        data: Trajectories,
        *,
        draws: int = 200,
        paths_per_weight: int = 4,
        seed: int | None = None,
    ) -> pd.DataFrame:
        """Scores of forecasts from the first time of every series, per observation and overall."""
        self.declared.check(data)
        draws, paths_per_weight = _check_draws(draws, paths_per_weight)
        path_key, noise_key = jr.split(jr.key(self.seed + 1 if seed is None else seed))
        batch = Batch.of(data)
        states = jnp.asarray(
            predict(
                self.model,
                self.solver,
                batch,
                draws=draws,
                paths_per_weight=paths_per_weight,
                key=path_key,
            )[:, :, 1:]
        )
        observation = self.model.observation
        table = score(
            observation.mean(states),
            observation.sample(states, key=noise_key),
            jnp.broadcast_to(observation.sd.value, (len(observation.names),)),
            batch.values[:, 1:],
            batch.observed[:, 1:],
        )
        rows = [*observation.names, "overall"]
        return pd.DataFrame({name: np.asarray(column) for name, column in table.items()}, rows)


def fit(
    model: HybridSDE,
    data: Trajectories,
    *,
    objective: AbstractObjective | None = None,
    solver: AbstractSolver | None = None,
    training: Training | None = None,
    validation: Trajectories | None = None,
    callbacks: Iterable[Callback] = (),
    seed: int = 0,
) -> Run:
    """Fit a declared model to recordings. The same seed gives the same numbers.

    By default Empirical PAC-Bayes, one Euler step per observation, Adam with cosine decay. With
    `validation` data the best epoch on them is kept.
    """
    for part in (data, validation):
        if part is not None:
            model.check(part)
    solver = solver or EulerMaruyama()
    init_key, train_key = jr.split(jr.key(seed))
    batch = Batch.of(data)
    fitted = train(
        model.init(batch, key=init_key),
        batch,
        objective or EmpiricalPACBayes(),
        solver=solver,
        training=training,
        validation=None if validation is None else Batch.of(validation),
        callbacks=callbacks,
        key=train_key,
    )
    history = pd.DataFrame(fitted.history).rename_axis("epoch")
    return Run(model, fitted.model, solver, history, bool(fitted.diverged), seed)


def _clock(start: Trajectories, times, elapsed) -> np.ndarray:
    """Forecast times on the clock of the data, one row per trajectory."""
    if (times is None) == (elapsed is None):
        raise ValueError("Give exactly one of `times` and `elapsed`.")
    first = start.times[:, :1]
    given = np.asarray(times if elapsed is None else elapsed, float)
    clock = np.broadcast_to(given, (len(start), given.shape[-1]))
    clock = clock if elapsed is None else first + clock
    name = "times" if elapsed is None else "elapsed"
    whole = np.concatenate([first, clock], 1)
    if not np.isfinite(whole).all():
        raise ValueError(f"`{name}` must be finite.")
    early = np.argwhere(np.diff(whole, axis=1) < 0)
    if early.size:
        series, index = early[0]
        raise ValueError(
            f"`{name}` must not decrease or lie before the start of a trajectory, but for "
            f"{start.ids[series]!r} entry {index} is {clock[series, index]:g} after "
            f"{whole[series, index]:g}. Use `elapsed` for times since each start."
        )
    return clock


def _check_draws(draws: int, paths_per_weight: int) -> tuple[int, int]:
    if paths_per_weight < 1 or draws < paths_per_weight or draws % paths_per_weight:
        raise ValueError(
            f"`draws` must be a multiple of `paths_per_weight`, but they are {draws} and "
            f"{paths_per_weight}."
        )
    return draws, paths_per_weight
