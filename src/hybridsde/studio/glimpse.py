"""What a fit under way knows by now, read from its checkpoint: parameters, and a forecast.

The trainer tells its callbacks the terms of the loss and nothing else. Its checkpoint holds all
that it moves, a few seconds old; the rest of the model is built again as the fit builds it, from
the same settings and the same seed.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax.random as jr
import numpy as np

from hybridsde._errors import InputError
from hybridsde._files import read_whole
from hybridsde._parameters import Fixed, trainable
from hybridsde._streams import Stream, stream
from hybridsde.fit.checkpoint import arrays_of, fill
from hybridsde.forecast import GradientDescent
from hybridsde.forecast.future import forecast
from hybridsde.hybrid import SDEForecaster
from hybridsde.hybrid.declaration import NETWORK
from hybridsde.hybrid.parameters import parameters_of
from hybridsde.project.project import Project
from hybridsde.report.bands import bands, recorded
from hybridsde.run.fitting import Prepared
from hybridsde.store.folder import CHECKPOINT

DRAWS = 60
MOST_ROWS = 200
PARAMETERS, EPOCH = "state.parameters", "state.epoch"
"""Places in a checkpoint."""


class Glimpse:
    """A project whose fit is under way, prepared once, and looked at as often as one likes."""

    def __init__(self, project: Project):
        model = project.model
        if model.undecided and project.objective is None:
            again = replace(model.numerics, typical=None)
            numerics = model.numerics if model.hidden_states else again
            model = replace(model, learned=NETWORK, numerics=numerics)
        first, _ = project.prior_and_bound
        self._task = Prepared.of(
            model,
            first,
            project.objective,
            project.training,
            project.settings.train.langevin,
            validation=project.split.validation,
        )
        self._project = project
        self._inference = self._task.inference

    def __call__(self, out: Path) -> dict[str, Any] | None:
        """Epoch, parameters and a forecast; None where there is no checkpoint of such a model."""
        path = out / CHECKPOINT
        if not path.exists() or not isinstance(self._inference, GradientDescent):
            return None
        arrays, _ = arrays_of(read_whole(path), path)
        try:
            forecaster = self._forecaster(arrays, path)
        except InputError:
            return None  # a trial of another model
        return {
            "epoch": int(arrays[EPOCH]) if EPOCH in arrays else None,
            "parameters": _parameters(forecaster),
            "forecast": self._forecast(forecaster),
        }

    def _forecaster(self, arrays: dict[str, np.ndarray], path: Path) -> SDEForecaster:
        assert isinstance(self._inference, GradientDescent)
        seed = jr.key(self._project.settings.train.seed)
        model = self._inference.init(self._task.batch, key=jr.split(seed)[0])
        moved, still = eqx.partition(model, trainable(model))
        cut = len(PARAMETERS)
        kept = {name[cut:]: one for name, one in arrays.items() if name.startswith(PARAMETERS)}
        found = self._inference.finish(eqx.combine(fill(moved, kept, path), still))
        assert isinstance(found, SDEForecaster)
        return found

    def _forecast(self, forecaster: SDEForecaster) -> dict[str, Any]:
        """Of one recording from its first rows, held out where there is one."""
        spec, split = self._task.model, self._project.split
        data = split.test or split.validation or split.train
        one = data.cut([(0, 0, min(int(data.lengths[0]), MOST_ROWS))])
        given = spec.context
        found = forecast(
            spec,
            forecaster,
            one.start(given),
            one.times[:, given:],
            one.inputs[:, given:],
            draws=DRAWS,
            key=stream(self._project.settings.train.seed, Stream.FORECAST),
        )
        shown = bands(found, 0, int(one.lengths[0]) - given)
        return {"id": str(data.ids[0]), **recorded(one, 0), "forecast": shown, "given": given}


def _parameters(forecaster: SDEForecaster) -> dict[str, float]:
    """Learned physical parameters as they are now."""
    found = parameters_of(forecaster.model.known.physics)
    values = {n: np.asarray(p.value, float) for n, p in found.items() if not isinstance(p, Fixed)}
    return {name: float(value) for name, value in values.items() if value.ndim == 0}
