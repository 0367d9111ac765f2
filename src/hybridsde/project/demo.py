"""The embedded example: Lorenz with one equation known, against a black box."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from hybridsde._streams import Stream, stream
from hybridsde.data import Batch, Trajectories
from hybridsde.datasets import lorenz
from hybridsde.fit import CallbackFactory, Training
from hybridsde.forecast import SCORES, Forecast, evaluate
from hybridsde.hybrid import HybridSDE, SDEForecaster
from hybridsde.objective import EmpiricalPACBayes
from hybridsde.physics import equations
from hybridsde.project.project import DATA
from hybridsde.project.split import Split
from hybridsde.run import Run, fit
from hybridsde.simulate import EulerMaruyama

WRONG_KAPPA = 29.0
"""The parameter given to the hybrid; the truth is 28."""
SEQUENCES, LENGTH = 20, 24
"""Of training, and of the test."""
WINDOW, STRIDE = 8, 4
"""Pieces that the training sequences are cut into."""
DRAWS = 200
HORIZON = 150
"""Steps of the pictured forecast, some six times the length of a training sequence."""
EPOCHS = 500


@dataclass(frozen=True)
class Demo:
    """What the demo found."""

    runs: dict[str, Run]
    scores: pd.DataFrame
    """One row per forecaster, best possible last."""
    forecasts: dict[str, Forecast]
    truth: Trajectories
    split: Split
    """The sequences that the models were fitted to, and those that they were scored on."""

    def keep(self, out: Path) -> Path:
        """Save the hybrid with its sequences into a new folder inside `out`; returns it."""
        names = (f"hybrid{end}" for end in ("", *(f"-{number}" for number in range(2, 1000))))
        folder = next(out / name for name in names if not (out / name).exists())
        content = self.split.to_frame().to_csv(index=False).encode()
        self.runs["hybrid"].save(folder, {DATA: content})
        return folder


def run_demo(
    *, seed: int = 0, epochs: int = EPOCHS, callbacks: CallbackFactory | None = None
) -> Demo:
    """Fit both models, forecast, score. `callbacks` gives those of each fit by its name."""
    first, second = lorenz.load(seed=seed).windows(lorenz.RECORDER.observations // 2)
    train, test = (half.windows(LENGTH).take(range(SEQUENCES)) for half in (first, second))
    truth = second.windows(HORIZON + 1).take([0])
    known = equations("dy = x*(kappa - z) - y", kappa=WRONG_KAPPA)
    shape = {"states": lorenz.STATES, "diffusion": lorenz.DIFFUSION, "noise": 0.4}
    declared = {
        "black box": HybridSDE(**shape, hidden=(64, 64), members=1, start="first"),
        "hybrid": HybridSDE(**shape, hidden=(64, 64), members=1, start="first", physics=known),
    }
    loss = EmpiricalPACBayes(estimator="mean_log", path_kl="sum", solver=EulerMaruyama())
    training = Training(epochs=epochs, batch_size=10, learning_rate=5e-3)
    runs = {
        name: fit(
            model,
            train.windows(WINDOW, STRIDE),
            objective=loss,
            training=training,
            callbacks=() if callbacks is None else callbacks(name),
            progress=False,
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
    return Demo(runs, scores, forecasts, truth, Split(train, None, test))


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
    exact = HybridSDE(
        states=lorenz.STATES,
        physics=lorenz.true_physics(),
        diffusion=lorenz.DIFFUSION,
        noise=1e-3,
        hidden=None,
        start="first",
    )
    model = exact.init(batch, key=stream(seed, Stream.INIT))
    truth = SDEForecaster(model, EulerMaruyama(substeps=10))
    scores = evaluate(truth, batch, DRAWS, key=stream(seed, Stream.FORECAST))
    meaningful = {name: scores[name] for name in SCORES if not name.startswith("nll")}
    return pd.Series({name: float(column[-1]) for name, column in meaningful.items()})
