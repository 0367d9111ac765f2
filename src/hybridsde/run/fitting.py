"""`fit`: from a declared model and recordings to a run."""

from collections.abc import Iterable
from pathlib import Path
from typing import overload

import equinox as eqx
import jax.random as jr
import numpy as np
import pandas as pd

from hybridsde._errors import InputError
from hybridsde.baselines import AbstractBaseline
from hybridsde.certify import Seen
from hybridsde.data import Trajectories
from hybridsde.fit import Callback, Checkpoint, Training, train
from hybridsde.model import BayesianSDE, FrozenDrift, HybridSDE, check_starts
from hybridsde.objective import AbstractObjective, EmpiricalPACBayes
from hybridsde.run.baseline import BaselineRun, fit_baseline
from hybridsde.run.declaration import declare, physics_source
from hybridsde.run.folder import fingerprint
from hybridsde.run.run import Run
from hybridsde.simulate import AbstractSolver, EulerMaruyama


@overload
def fit(
    model: HybridSDE,
    data: Trajectories,
    *,
    objective: AbstractObjective | None = ...,
    solver: AbstractSolver | None = ...,
    training: Training | None = ...,
    validation: Trajectories | None = ...,
    callbacks: Iterable[Callback] = ...,
    checkpoint: str | Path | None = ...,
    start_from: Run | None = ...,
    seed: int = ...,
) -> Run: ...


@overload
def fit(
    model: AbstractBaseline,
    data: Trajectories,
    *,
    training: Training | None = ...,
    validation: Trajectories | None = ...,
    callbacks: Iterable[Callback] = ...,
    seed: int = ...,
) -> BaselineRun: ...


def fit(
    model: HybridSDE | AbstractBaseline,
    data: Trajectories,
    *,
    objective: AbstractObjective | None = None,
    solver: AbstractSolver | None = None,
    training: Training | None = None,
    validation: Trajectories | None = None,
    callbacks: Iterable[Callback] = (),
    checkpoint: str | Path | None = None,
    start_from: Run | None = None,
    seed: int = 0,
) -> Run | BaselineRun:
    """Fit a declared model to recordings. The same seed gives the same numbers.

    By default Empirical PAC-Bayes, one Euler step per observation, Adam with cosine decay. With
    `validation` data the best epoch on them is kept. With `checkpoint`, the name of a file, a fit
    that was killed goes on where it was and ends with the same numbers. Encoder and decoder of a
    latent model begin as those of `start_from`, so that its latent states mean the same.

    A system of `hybridsde.baselines` comes with a loss and a solver of its own.
    """
    if isinstance(model, AbstractBaseline):
        own = {"objective": objective, "solver": solver, "checkpoint": checkpoint}
        for name, given in (own | {"start_from": start_from}).items():
            if given is not None:
                raise ValueError(f"{model.name} takes no `{name}`. Leave it out.")
        return fit_baseline(
            model, data, training=training, validation=validation, callbacks=callbacks, seed=seed
        )
    model.check_training(data)
    if validation is not None:
        model.check_later(validation)
    solver = solver or EulerMaruyama()
    init_key, train_key = jr.split(jr.key(seed))
    batch = model.batch(data)
    untrained = model.init(batch, key=init_key)
    if start_from is not None:
        untrained = _with_maps_of(untrained, model, start_from)
    check_starts(untrained, batch, data.ids)
    objective, training = objective or EmpiricalPACBayes(), training or Training()
    seen = Seen.of(train=data, validation=validation)
    keeper = None
    if checkpoint is not None:
        source = physics_source(model)
        code = source.read_text() if source else ""
        begun = None if start_from is None else start_from.facts.get("seen")
        facts = (
            declare(model),
            code,
            repr(objective),
            repr(solver),
            training,
            seed,
            seen.series,
            begun,
        )
        keeper = Checkpoint(Path(checkpoint), fingerprint(*facts))
    fitted = train(
        untrained,
        batch,
        objective,
        solver=solver,
        training=training,
        validation=None if validation is None else model.batch(validation),
        callbacks=callbacks,
        checkpoint=keeper,
        key=train_key,
    )
    history = pd.DataFrame(fitted.history).rename_axis("epoch")
    spread = np.std(np.asarray(batch.values), (0, 1), where=np.asarray(batch.observed))
    facts = {
        **seen.facts(),
        "objective": type(objective).__name__,
        "spread": [float(one) if one > 0 else 1.0 for one in spread],
    }
    return Run(model, fitted.model, solver, history, bool(fitted.diverged), seed, facts)


def _with_maps_of(model: BayesianSDE, declared: HybridSDE, other: Run) -> BayesianSDE:
    """Encoder and decoder of another run, its scales included."""
    same = ("latent", "observed", "states")
    if declared.latent is None or any(
        getattr(declared, name) != getattr(other.declared, name) for name in same
    ):
        raise InputError(
            "`start_from` must be a run of a latent model with the same `latent`, `observed` and "
            "`states`."
        )
    maps = (other.model.start, other.model.observation, other.model.scale)
    return eqx.tree_at(lambda m: (m.start, m.observation, m.scale), model, maps)


def frozen_drift(run: Run) -> FrozenDrift:
    """What a run has learned, as known physics for another: learned plus known drift, held fixed.

    For latent states begin the other fit with `start_from=run`, so that they mean the same.
    """
    return FrozenDrift.of(run.declared, run.model)
