"""Forecasts that the paper shows as figures: one recording, several models."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import jax.random as jr

from hybridsde.data import Trajectories
from hybridsde.datasets.mocap import Walking
from hybridsde.experiments import lorenz, lotka_volterra, mocap
from hybridsde.experiments.preset import Preset
from hybridsde.fit import Callback
from hybridsde.forecast import Forecast
from hybridsde.model import HybridSDE
from hybridsde.run import fit

Watch = Callable[[str], tuple[Callback, ...]]


@dataclass(frozen=True)
class Picture:
    """A recording, and what each model forecasts from one of its times."""

    recording: Trajectories
    truth: Trajectories
    """The stretch that is forecast."""
    forecasts: dict[str, Forecast]


def lorenz_picture(preset: Preset, *, seed: int, watch: Watch) -> Picture:
    """Black box against hybrid (third equation): 21 paths, 1000 steps from T = 10."""
    recording = lorenz.lorenz.load(seed=seed)
    half = lorenz.lorenz.RECORDER.observations // 2
    physics = lorenz.SYSTEM.noisy(key=jr.key(seed))
    models = {
        "black box": preset.model,
        "hybrid, dz known": replace(preset.model, physics=physics, gate={"z": 1.0}),
    }
    truth = recording.windows(half).take([1])
    train, _ = lorenz.PROTOCOLS["24"].cut(recording)
    return Picture(recording, truth, _forecasts(models, preset, train, truth, 21, seed, watch))


def lotka_volterra_picture(preset: Preset, *, seed: int, watch: Watch) -> Picture:
    """Black box, white box and hybrid: 10 paths, 200 steps from t = 1."""
    recording = lotka_volterra.lotka_volterra.load(seed=seed)
    physics = lotka_volterra.SYSTEM.noisy(key=jr.key(seed))
    models = {
        "black box": preset.model,
        "white box": replace(preset.model, physics=physics, hidden=None),
        "hybrid": replace(
            preset.model, physics=physics, gate="learn" if preset.learned_gate else None
        ),
    }
    truth = recording.windows(201, stride=100).take([1])
    train, _ = lotka_volterra.PROTOCOL.cut(recording)
    return Picture(recording, truth, _forecasts(models, preset, train, truth, 10, seed, watch))


def walking_picture(
    preset: mocap.Preset, data: Walking, sequence: int, *, seed: int, watch: Watch
) -> Picture:
    """E-PAC-Bayes on walking: 200 paths of one test sequence after its first frames."""
    train = preset.sequences(data.train)
    run = fit(
        preset.model,
        train,
        objective=mocap.OBJECTIVES["e-pac-bayes"],
        training=preset.training(len(train), train.times.shape[1]),
        validation=data.validation if preset.choose_epoch else None,
        callbacks=watch("figure"),
        seed=seed,
    )
    truth, context = data.test.take([sequence]), preset.model.context
    start, ahead = truth.start(context), truth.times[0, context:]
    forecast = run.forecast(start, ahead, draws=200, paths_per_weight=1)
    return Picture(data.train, truth, {"E-PAC-Bayes": forecast})


def _forecasts(
    models: dict[str, HybridSDE],
    preset: Preset,
    train: Trajectories,
    truth: Trajectories,
    draws: int,
    seed: int,
    watch: Watch,
) -> dict[str, Forecast]:
    """Fit each model and forecast the stretch; physics alone has nothing to fit but its start."""
    forecasts = {}
    for name, model in models.items():
        alone = model.hidden is None
        run = fit(
            model,
            preset.pieces(train),
            objective=preset.objective("e-pac-bayes"),
            solver=preset.solver,
            training=replace(preset.training, epochs=1) if alone else preset.training,
            callbacks=() if alone else watch(f"figure: {name}"),
            seed=seed,
        )
        ahead = truth.times[0, 1:]
        forecasts[name] = run.forecast(truth.start(), ahead, draws=draws, paths_per_weight=1)
    return forecasts
