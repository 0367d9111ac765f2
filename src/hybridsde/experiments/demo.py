"""The embedded example: Lorenz with one equation known, against a black box."""

from dataclasses import dataclass, replace

import jax.random as jr
import numpy as np
import pandas as pd

from hybridsde.data import Batch, Trajectories
from hybridsde.datasets import lorenz
from hybridsde.experiments.lorenz import PRESETS, PROTOCOLS, SYSTEM
from hybridsde.fit import Watch
from hybridsde.forecast import SCORES, Forecast, evaluate
from hybridsde.physics import known_drift
from hybridsde.run import Run, fit
from hybridsde.simulate import EulerMaruyama

WRONG_KAPPA = 29.0
"""The parameter given to the hybrid; the truth is 28."""
DRAWS = 200
HORIZON = 150
"""Steps of the pictured forecast, some six times the length of a training sequence."""


@dataclass(frozen=True)
class Demo:
    """What the demo found."""

    runs: dict[str, Run]
    scores: pd.DataFrame
    """One row per forecaster, best possible last."""
    forecasts: dict[str, Forecast]
    truth: Trajectories


def run_demo(
    *,
    seed: int = 0,
    epochs: int | None = None,
    callbacks: Watch | None = None,
) -> Demo:
    """Fit both models, forecast, score. `callbacks` gives those of each fit by its name."""
    recording = lorenz.load(seed=seed)
    train, test = PROTOCOLS["24"].cut(recording)
    _, second = recording.windows(lorenz.RECORDER.observations // 2)
    truth = second.windows(HORIZON + 1).take([0])
    preset = PRESETS["recommended"]
    training = preset.training if epochs is None else replace(preset.training, epochs=epochs)
    declared = {
        "black box": preset.model,
        "hybrid": replace(preset.model, physics=known_drift(lorenz.y_equation, kappa=WRONG_KAPPA)),
    }
    runs = {
        name: fit(
            model,
            preset.pieces(train),
            objective=preset.objective("e-pac-bayes"),
            solver=preset.solver,
            training=training,
            callbacks=() if callbacks is None else callbacks(name),
            seed=seed,
        )
        for name, model in declared.items()
    }
    learned = {name: run.score(test, draws=DRAWS).loc["overall"] for name, run in runs.items()}
    rows = {"persistence": _persistence(test), **learned, "true equations": _oracle(test, seed)}
    scores = pd.DataFrame(rows).T.reindex(columns=SCORES).rename_axis("forecaster")
    forecasts = {
        name: run.forecast(truth.start(), truth.times[0, 1:], draws=DRAWS)
        for name, run in runs.items()
    }
    return Demo(runs, scores, forecasts, truth)


def _persistence(test: Trajectories) -> pd.Series:
    """Predict that nothing moves."""
    error = test.values[:, 1:] - test.values[:, :1]
    mse = float((error**2).mean())
    return pd.Series({"mse": mse, "rmse": mse**0.5, "crps": float(np.abs(error).mean())})


def _oracle(test: Trajectories, seed: int) -> pd.Series:
    """The true SDE with ten sub-steps per observation: in expectation, nothing is better.

    Its observations are exact, so it has no density and no NLL.
    """
    batch = Batch.of(test)
    truth = SYSTEM.exact().init(batch, key=jr.key(seed))
    scores = evaluate(truth, EulerMaruyama(substeps=10), batch, DRAWS, key=jr.key(seed))
    meaningful = {name: column for name, column in scores.items() if not name.startswith("nll")}
    return pd.Series({name: float(column[-1]) for name, column in meaningful.items()})
