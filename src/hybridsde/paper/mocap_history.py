"""Walking, the second protocol of the literature: 100 frames given, the next 200 forecast.

Everything is trained on the first 200 frames of the 16 training sequences. Beside the test
sequences every row has scores of the validation sequences and of training sequences that were left
out of the fit one by one; the latter two chose all settings.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import jax.numpy as jnp
import jax.random as jr
import numpy as np

from hybridsde._devices import same_for_seeds
from hybridsde._streams import Beside, Stream, beside, stream
from hybridsde._types import Array
from hybridsde.baselines import AbstractBaseline
from hybridsde.data import Trajectories
from hybridsde.fit import CallbackFactory
from hybridsde.forecast import evaluate, evaluate_many
from hybridsde.forecast.future import forecast
from hybridsde.paper import mocap_sde
from hybridsde.paper.amc import CHANNELS
from hybridsde.paper.figure_data import Picture
from hybridsde.paper.gait import GaitSDE
from hybridsde.paper.mocap_data import Walking, walking
from hybridsde.paper.mocap_history_notes import NOTES, TITLE, tables
from hybridsde.paper.ridge import RidgeComponents
from hybridsde.paper.table import Results, Row, RowKey, fingerprint, summarise

TRAINED, GIVEN = 200, 100
"""Frames of a training sequence that are trained on; frames that a forecast is given."""
DRAWS = 200
"""Sampled paths of every sequence."""
GAITS = {
    "centred": GaitSDE(observed=CHANNELS, given=GIVEN),
    "uncentred": GaitSDE(observed=CHANNELS, given=GIVEN, stance_spread=1.0, noise_spread=10.0),
}
"""With means that are not taken away, poses that stay and larger noise of new walkers."""
SYSTEMS: dict[str, dict[tuple[str, str], AbstractBaseline]] = {
    name: {
        ("none", "ridge 12×30"): RidgeComponents(observed=CHANNELS, given=GIVEN, lags=30),
        ("none", "ridge 12×50"): RidgeComponents(observed=CHANNELS, given=GIVEN, lags=50),
        ("phase", "gait SDE"): gait,
    }
    for name, gait in GAITS.items()
}
"""What is known, the method, and how it is declared for each kind of data."""
LATENT = ("none", "e-pac-bayes")
"""The latent SDE of the paper, which sees the last three of the given frames."""
PRESETS = ("paper", "recommended")
Scores = dict[str, Array]
"""Seeds or series × columns, by the name of the score."""


@dataclass(frozen=True)
class Scored:
    """Scores by seed of the test and the validation sequences, and of those left out."""

    test: Scores
    validation: Scores
    left_out: Scores
    """Empty where no sequence was left out."""
    diverged: int = 0


def reproduce(
    folder: Path,
    *,
    presets: tuple[str, ...] = PRESETS,
    centred: bool = True,
    repetitions: int = 10,
    seed: int = 0,
    data: Walking | None = None,
    watch: CallbackFactory,
) -> Results:
    """Every row, saved as it finishes. `data` replace those of the literature."""
    data = data or walking(centred=centred)
    results = Results(folder, TITLE, NOTES, tables)
    protocol = "centred" if centred else "uncentred"

    def row(known: str, method: str, preset: str, settings: object, compute: Callable) -> None:
        mark = fingerprint(settings, DRAWS)
        key = RowKey(known, method, preset, protocol, repetitions, seed, mark)
        results.get(key, lambda: _timed(key, compute))

    if "paper" in presets:
        settings = mocap_sde.PRESETS["paper"]
        row(*LATENT, "paper", settings, lambda key: _latent(key, settings, data, watch))
    if "recommended" in presets:
        for (known, method), spec in SYSTEMS[protocol].items():
            row(known, method, "recommended", spec, lambda key, s=spec: _closed(key, s, data))
    results.extra = {"seconds": sum(one.seconds for one in results.rows)}
    results.save()
    return results


def _timed(key: RowKey, compute: Callable[[RowKey], Scored]) -> Row:
    began = time.monotonic()
    found = compute(key)
    return Row(
        *key,
        **summarise(found.test),
        validation_mse=_overall(found.validation, "mse"),
        validation_coverage90=_overall(found.validation, "coverage90"),
        left_out_mse=_overall(found.left_out, "mse"),
        left_out_coverage90=_overall(found.left_out, "coverage90"),
        diverged=found.diverged,
        seconds=time.monotonic() - began,
    )


def _overall(scores: Scores, name: str) -> float:
    """The mean over seeds or series, all channels together; NaN where nothing was scored."""
    return float(np.mean(np.asarray(scores[name])[:, -1])) if scores else math.nan


def first_frames(data: Trajectories) -> Trajectories:
    """What is trained on."""
    return data.cut([(one, 0, TRAINED) for one in range(len(data))])


def _closed(key: RowKey, spec: AbstractBaseline, data: Walking) -> Scored:
    """A system that is estimated at once: seeds differ in their draws alone."""
    batch, count, root = spec.batch(first_frames(data.train)), key.repetitions, jr.key(key.seed)
    found = spec.inference(batch).fit_many(batch, keys=jr.split(root, count))

    def scores(part: Trajectories, purpose: Beside) -> Scores:
        keys = jr.split(beside(root, purpose), count)
        return evaluate_many(found.model, same_for_seeds(spec.batch(part), count), DRAWS, keys)

    return Scored(
        scores(data.test, Beside.TEST),
        scores(data.validation, Beside.VALIDATION),
        left_out(spec, data.train, seed=key.seed),
    )


def left_out(spec: AbstractBaseline, train: Trajectories, *, seed: int) -> Scores:
    """Each training sequence forecast by a fit to the first frames of the others."""
    keys = jr.split(beside(jr.key(seed), Beside.RESIDUALS), len(train))
    found = []
    for one, key in enumerate(keys):
        others = [other for other in range(len(train)) if other != one]
        batch = spec.batch(first_frames(train.take(others)))
        fit_key, score_key = jr.split(key)
        fitted = spec.inference(batch).fit(batch, key=fit_key)
        found.append(evaluate(fitted.model, spec.batch(train.take([one])), DRAWS, key=score_key))
    return {name: jnp.stack([one[name] for one in found]) for name in found[0]}


def _latent(
    key: RowKey, settings: mocap_sde.Preset, data: Walking, watch: CallbackFactory
) -> Scored:
    """The paper's model; validation sequences choose the epoch, and none is left out."""
    first = GIVEN - settings.model.context

    def later(part: Trajectories) -> Trajectories:
        rows = part.times.shape[1]
        return part.cut([(one, first, rows) for one in range(len(part))])

    cut = Walking(first_frames(data.train), later(data.validation), later(data.test))
    trainer = mocap_sde.Trainer(settings, cut, None, key.repetitions, key.seed, watch)
    fitted = trainer.fit(*LATENT, " ".join(("paper", LATENT[1])))
    models = trainer.ensembles(fitted.model)

    def scores(part: Trajectories, purpose: Beside) -> Scores:
        keys = jr.split(beside(jr.key(key.seed), purpose), key.repetitions)
        batch = same_for_seeds(settings.model.batch(part), key.repetitions)
        return evaluate_many(models, batch, DRAWS, keys)

    return Scored(
        scores(cut.test, Beside.TEST),
        scores(cut.validation, Beside.VALIDATION),
        {},
        diverged=int(fitted.diverged.sum()),
    )


def picture(data: Walking, sequence: int, *, centred: bool, seed: int) -> Picture:
    """The gait SDE on one test sequence: 200 paths after its given frames."""
    spec = SYSTEMS["centred" if centred else "uncentred"]["phase", "gait SDE"]
    batch = spec.batch(first_frames(data.train))
    fitted = spec.inference(batch).fit(batch, key=stream(seed, Stream.INIT))
    truth = data.test.take([sequence])
    start, ahead = truth.start(GIVEN), truth.times[:, GIVEN:]
    key = stream(seed, Stream.FORECAST)
    shown = forecast(spec, fitted.model, start, ahead, draws=DRAWS, paths_per_weight=1, key=key)
    return Picture(data.train, truth, {"gait SDE": shown})
