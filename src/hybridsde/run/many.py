"""One declared model from many seeds, as one program: comparisons and ensembles stand on it."""

from collections.abc import Iterable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from hybridsde._cache import make_room
from hybridsde._devices import same_for_seeds
from hybridsde._streams import Stream, stream
from hybridsde._types import Keys
from hybridsde.data import Trajectories
from hybridsde.fit import Callback, Fitted, Training
from hybridsde.forecast import AbstractForecaster, ModelSpec
from hybridsde.objective import AbstractObjective
from hybridsde.run.calibrate import best_factors_of_many, calibrated
from hybridsde.run.fitting import Prepared
from hybridsde.run.run import Run
from hybridsde.run.windows import forecast_windows


def fit_many(
    model: ModelSpec,
    data: Trajectories,
    *,
    seeds: Sequence[int],
    objective: AbstractObjective | None = None,
    training: Training | None = None,
    validation: Trajectories | None = None,
    horizon: int | None = None,
    callbacks: Iterable[Callback] = (),
) -> list[Run]:
    """As many fits as seeds, spread over all devices; each equals the `fit` of its seed.

    What the learned part is made of must be decided. A fit whose loss was never finite is not an
    error here: it is marked as diverged.
    """
    make_room()
    task = Prepared.of(model, data, objective, training, validation=validation)
    fitted = task.inference.fit_many(
        task.batch,
        validation=task.held_out,
        callbacks=callbacks,
        keys=jax.vmap(jr.key)(jnp.asarray(seeds)),
    )
    runs = [task.run(one_of(fitted, number), int(seed)) for number, seed in enumerate(seeds)]
    if validation is None or not runs[0].forecaster.spreads():
        return runs
    windows = forecast_windows(validation, horizon, task.model.context)
    batch = same_for_seeds(task.model.batch(windows), len(seeds))
    factors = best_factors_of_many(fitted.model, batch, keys_of(seeds, Stream.CALIBRATION))
    return [
        calibrated(run, windows, {name: each[number] for name, each in factors.items()})
        for number, run in enumerate(runs)
    ]


def one_of(fitted: Fitted[AbstractForecaster], number: int) -> Fitted[AbstractForecaster]:
    """One of the fits along a leading axis."""
    arrays, static = eqx.partition(fitted.model, eqx.is_array)
    ran = int(fitted.epochs[number])  # a fit that was stopped goes on empty beside the others
    return Fitted(
        eqx.combine(jax.tree.map(lambda leaf: leaf[number], arrays), static),
        {name: rows[:ran, number] for name, rows in fitted.history.items()},
        *(np.asarray(each[number]) for each in (fitted.diverged, fitted.epochs, fitted.kept)),
    )


def keys_of(seeds: Sequence[int], purpose: Stream) -> Keys:
    """The keys of several seeds for one purpose."""
    return jax.vmap(lambda seed: stream(seed, purpose))(np.asarray(seeds))
