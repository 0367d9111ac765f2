"""One declared model from many seeds, as one program: comparisons and ensembles stand on it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from hybridsde._devices import same_for_seeds
from hybridsde._streams import Stream, stream
from hybridsde._types import Array, Float, Keys
from hybridsde.data import Trajectories
from hybridsde.fit import Callback, Fitted, Training
from hybridsde.forecast import AbstractForecaster, ModelSpec, evaluate_many
from hybridsde.objective import AbstractObjective
from hybridsde.run.calibrate import best_factors_of_many, calibrated
from hybridsde.run.fitting import Prepared, forecast_windows
from hybridsde.run.run import Run


@dataclass(frozen=True)
class Runs:
    """Runs that differ by their seed alone."""

    each: tuple[Run, ...]

    @property
    def forecasters(self) -> AbstractForecaster:
        """All of them in one, along a leading `seed` axis."""
        return stacked([run.forecaster for run in self.each])

    def score(
        self, data: Trajectories, *, draws: int = 200
    ) -> dict[str, Float[Array, "seed column"]]:
        """The scores of `Run.score`, for each run."""
        spec, known = self.each[0].spec, self.each[0].metadata.plausible
        return evaluate_many(
            self.forecasters,
            same_for_seeds(spec.batch(data), len(self.each)),
            draws,
            _keys([run.seed for run in self.each], Stream.FORECAST),
            None if known is None else jnp.asarray(known),
        )


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
) -> Runs:
    """As many fits as seeds, spread over all devices; each equals the `fit` of its seed.

    What the learned part is made of must be decided. A fit whose loss was never finite is not an
    error here: it is marked as diverged.
    """
    task = Prepared.of(model, data, objective, training, validation=validation)
    fitted = task.inference.fit_many(
        task.batch,
        validation=task.held_out,
        callbacks=callbacks,
        keys=jax.vmap(jr.key)(jnp.asarray(seeds)),
    )
    runs = [task.run(_one_of(fitted, number), int(seed)) for number, seed in enumerate(seeds)]
    if validation is None or not runs[0].forecaster.spreads():
        return Runs(tuple(runs))
    windows = forecast_windows(validation, horizon, task.model.context)
    batch = same_for_seeds(task.model.batch(windows), len(seeds))
    factors = best_factors_of_many(fitted.model, batch, _keys(seeds, Stream.CALIBRATION))
    return Runs(
        tuple(
            calibrated(run, windows, {name: each[number] for name, each in factors.items()})
            for number, run in enumerate(runs)
        )
    )


def _one_of(fitted: Fitted[AbstractForecaster], number: int) -> Fitted[AbstractForecaster]:
    """One of the fits along a leading axis."""
    arrays, static = eqx.partition(fitted.model, eqx.is_array)
    return Fitted(
        eqx.combine(jax.tree.map(lambda leaf: leaf[number], arrays), static),
        {name: rows[:, number] for name, rows in fitted.history.items()},
        *(np.asarray(each[number]) for each in (fitted.diverged, fitted.epochs, fitted.kept)),
    )


def stacked(forecasters: Sequence[AbstractForecaster]) -> AbstractForecaster:
    """Forecasters of one shape along a leading axis."""
    parts = [eqx.partition(one, eqx.is_array) for one in forecasters]
    arrays = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(part[0] for part in parts))
    return eqx.combine(arrays, parts[0][1])


def _keys(seeds: Sequence[int], purpose: Stream) -> Keys:
    return jax.vmap(lambda seed: stream(seed, purpose))(np.asarray(seeds))
