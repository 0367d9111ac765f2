"""Forecasts that the paper shows as figures: one recording, several models."""

from dataclasses import dataclass, replace

import jax
import jax.random as jr

from hybridsde._streams import Stream, stream
from hybridsde.data import Trajectories
from hybridsde.fit import CallbackFactory
from hybridsde.forecast import Forecast
from hybridsde.forecast.future import forecast
from hybridsde.hybrid import HybridSDE
from hybridsde.paper import lorenz, lotka_volterra, mocap_sde
from hybridsde.paper.mocap_data import Walking
from hybridsde.paper.preset import Preset
from hybridsde.run import fit


@dataclass(frozen=True)
class Picture:
    """A recording, and what each model forecasts from one of its times."""

    recording: Trajectories
    truth: Trajectories
    """The stretch that is forecast."""
    forecasts: dict[str, Forecast]


def lorenz_picture(preset: Preset, *, seed: int, watch: CallbackFactory) -> Picture:
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


def lotka_volterra_picture(preset: Preset, *, seed: int, watch: CallbackFactory) -> Picture:
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
    preset: mocap_sde.Preset, data: Walking, sequence: int, *, seed: int, watch: CallbackFactory
) -> Picture:
    """E-PAC-Bayes on walking: 200 paths of one test sequence after its first frames."""
    trainer = mocap_sde.Trainer(preset, data, None, 1, seed, watch)
    fitted = trainer.fit(mocap_sde.NONE, "e-pac-bayes", "figure")
    truth, context = data.test.take([sequence]), preset.model.context
    start, ahead = truth.start(context), truth.times[0, context:]
    ensemble = jax.tree.map(lambda leaf: leaf[0], trainer.ensembles(fitted.model))
    key = stream(seed, Stream.FORECAST)
    shown = forecast(
        preset.model, ensemble, start, ahead[None], draws=200, paths_per_weight=1, key=key
    )
    return Picture(data.train, truth, {"E-PAC-Bayes": shown})


def _forecasts(
    models: dict[str, HybridSDE],
    preset: Preset,
    train: Trajectories,
    truth: Trajectories,
    draws: int,
    seed: int,
    watch: CallbackFactory,
) -> dict[str, Forecast]:
    """Fit each model and forecast the stretch; physics alone has nothing to fit but its start."""
    forecasts = {}
    for name, model in models.items():
        alone = model.hidden is None
        run = fit(
            model,
            preset.pieces(train),
            objective=preset.objective("e-pac-bayes"),
            training=replace(preset.training, epochs=1) if alone else preset.training,
            callbacks=() if alone else watch(f"figure: {name}"),
            progress=False,
            seed=seed,
        )
        ahead = truth.times[0, 1:]
        forecasts[name] = run.forecast(truth.start(), ahead, draws=draws, paths_per_weight=1)
    return forecasts
