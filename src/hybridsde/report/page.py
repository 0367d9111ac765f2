"""One self-contained HTML page about a run. It reads the run folder; it never trains."""

import json
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from hybridsde._files import write_whole
from hybridsde.data import Trajectories
from hybridsde.forecast import AbstractStateEstimator, Forecast
from hybridsde.forecast.calibration import coverage, pit
from hybridsde.forecast.diagnostics import diagnose
from hybridsde.hybrid import HybridSDE
from hybridsde.hybrid.free_run import Left
from hybridsde.project.project import SETTINGS, forecast_settings, judged_by, plain_scores, split_of
from hybridsde.project.split import Split
from hybridsde.report import drift, panels
from hybridsde.report.bands import clock_label
from hybridsde.report.certificates import read_certificates
from hybridsde.report.html import asset, render_template
from hybridsde.report.knowledge import knowledge_kept
from hybridsde.report.live import live_content
from hybridsde.report.portrait import Portrait
from hybridsde.run import Run
from hybridsde.store.folder import kept_file, read_content

DRAWS = 400
FANS = 3
"""Held-out trajectories that are shown."""
PATHS = 100
"""Sampled paths of smoothed states."""
WORDS = {
    "train": "recordings to learn from",
    "validation": "to choose between models",
    "test": "held out for scores",
}
"""What the parts of the data are for."""
MOST_DIAGNOSED = 40
"""Held-out trajectories whose innovations are looked at."""


def write_page(folder: Path, *, trust: bool = False) -> Path:
    """Write FOLDER/report.html."""
    run = Run.load(folder, trust=trust)
    text = render(folder, run, split_of(folder, run))
    path = folder / "report.html"
    write_whole(path, text)
    return path


def render(folder: Path, run: Run, split: Split) -> str:
    """The page as text."""
    settings = dict(run.metadata.settings or {})
    unit = settings.get("data", {}).get("unit")
    hybrid = drift.Hybrid.of(run, split.train)
    portrait = Portrait.of(hybrid, split) if hybrid else None
    certificates = read_certificates(folder)
    content = read_content(folder)
    clock = clock_label(unit, run.metadata.epoch)
    held_out = (
        None if split.test is None else forecast_settings(run).cut(split.test, run.spec.context)
    )
    forecast = None if held_out is None else _forecast(run, held_out)
    return render_template(
        "page.html",
        name=folder.resolve().name,
        title=f"Forecasts of {_listed(run.spec.observations)}",
        equations=drift.equations(hybrid) if hybrid else [],
        data=[
            panels.recordings(split.parts(), column, clock)
            for column in range(len(split.train.states))
        ],
        facts=_facts(split),
        drift=drift.slices(hybrid, split.train) if hybrid else [],
        fields=[] if portrait is None else portrait.pictures(),
        numbers=drift.numbers(hybrid) if hybrid else [],
        terms=drift.terms(hybrid) if hybrid else [],
        corrections=[str(one) for one in hybrid.discovered.corrections]
        if hybrid and hybrid.discovered
        else [],
        choice=run.metadata.choice,
        leaves=[Left.of(one).sentence(name) for name, one in (run.metadata.leaves or {}).items()],
        knowledge=[str(one) for one in knowledge_kept(run, split.train)],
        made_of=drift.made_of(hybrid) if hybrid else "",
        training=panels.training(run.history) if len(run.history) else None,
        epochs=len(run.history) if run.metadata.kept_epoch is not None else 0,
        diverged=run.diverged,
        scores=None
        if held_out is None
        else plain_scores(
            run.score(held_out, draws=forecast_settings(run).draws),
            *judged_by(split.train, held_out),
        ),
        floor=run.metadata.floor,
        live=None
        if forecast is None or held_out is None or split.test is None
        else live_content(
            run,
            hybrid,
            held_out,
            split.test,
            forecast,
            forecast_settings(run).horizon,
            clock,
        )
        | {
            "portrait": None if portrait is None else portrait.content(),
            "bounds": [one["parts"] for one in certificates],
        },
        charts=asset("assets/plotly-basic.min.js"),
        common=asset("common.js"),
        script=asset("live.js"),
        fans=[] if forecast is None or held_out is None else _fans(forecast, held_out, clock),
        calibration=[]
        if forecast is None or held_out is None
        else _calibrated(forecast, held_out, run.spec.context),
        shares=None
        if forecast is None or held_out is None
        else _shares(forecast, held_out.times[:, 0], clock),
        diagnostics=None if split.test is None else _diagnostics(run, split.test, clock),
        certificates=certificates,
        settings=_settings_text(folder, settings),
        versions=content["versions"],
        machine=content.get("machine", {}),
        hashes=content["sha256"],
        seed=run.seed,
    )


def _forecast(run: Run, held_out: Trajectories) -> Forecast:
    """From the first row of every held-out trajectory, at its own times.

    A system that moves in equal steps goes on with them where a shorter trajectory has ended.
    """
    given, interval = run.spec.context, run.metadata.interval
    times, inputs = held_out.times, held_out.inputs[:, given:]
    if interval is not None:
        over = np.maximum(0, np.arange(times.shape[1]) - held_out.lengths[:, None] + 1)
        times = times + interval * over
    clock = times[:, given:]
    start = held_out.start(given)
    return run.forecast(start, clock, inputs=inputs, draws=DRAWS, paths_per_weight=4)


def _listed(names: Sequence[str], most: int = 4) -> str:
    shown = [*names[:most], f"{len(names) - most} more"] if len(names) > most else list(names)
    return f"{', '.join(shown[:-1])} and {shown[-1]}" if len(shown) > 1 else shown[0]


def _facts(split: Split) -> list[dict[str, Any]]:
    rows = []
    for name, data in split.parts().items():
        gaps = 1 - data.observed.sum() / max(1, data.lengths.sum() * len(data.states))
        rows.append(
            {
                "part": name,
                "words": WORDS[name],
                "trajectories": len(data),
                "rows": int(data.lengths.sum()),
                "missing": f"{100 * gaps:.0f} %",
            }
        )
    return rows


def _fans(forecast: Forecast, held_out: Trajectories, clock: str) -> list[str]:
    draws = forecast.observations
    return [
        panels.fan(draws, held_out, row, column, clock)
        for row in range(min(FANS, len(held_out)))
        for column in range(draws.sizes["obs"])
    ]


def _calibrated(forecast: Forecast, held_out: Trajectories, context: int) -> list[str]:
    values, seen = held_out.values[:, context:], held_out.observed[:, context:]
    pits = pit(forecast.observations.values, values)
    covered = {
        str(name): coverage(pits[..., k], seen[..., k])
        for k, name in enumerate(held_out.states)
        if seen[..., k].any()
    }
    return [panels.calibration(covered), panels.pit_histogram(pits[seen])]


def _shares(forecast: Forecast, starts: np.ndarray, clock: str) -> str:
    """Mean over trajectories and states, each state in units of its own total variance."""
    parts = forecast.variance()
    whole = parts["total"].mean(("trajectory", "time"))
    scaled = (parts / whole).mean(("trajectory", "state"))
    elapsed = (parts["clock"] - starts[:, None]).mean("trajectory").values
    return panels.shares(
        elapsed, scaled["aleatoric"].values, scaled["epistemic"].values, f"{clock} since the start"
    )


def _diagnostics(run: Run, held_out: Trajectories, clock: str) -> dict[str, Any] | None:
    """Innovations along the held-out records, and their hidden states; None without states."""
    latent = isinstance(run.spec, HybridSDE) and run.spec.latent is not None
    if latent or not isinstance(run.forecaster, AbstractStateEstimator):
        return None
    shown = held_out.take(range(min(MOST_DIAGNOSED, len(held_out))))
    found = run.smooth(shown, estimator="extended", draws=PATHS)
    names = run.spec.observations
    z = found.innovations.values
    told = diagnose(z, names)
    hidden = run.spec.hidden_states if isinstance(run.spec, HybridSDE) else ()
    return {
        "advice": [one.advice() for one in told],
        "panels": [
            svg
            for k, one in enumerate(told)
            for svg in (
                panels.innovations(shown.times, z[..., k], one.name, clock),
                panels.correlations(one.correlation, one.band, one.name),
            )
        ],
        "hidden": [
            panels.hidden_state(found.states, row, name, clock)
            for name in hidden
            for row in range(min(FANS, len(shown)))
        ],
    }


def _settings_text(folder: Path, settings: dict[str, Any]) -> str:
    if (folder / SETTINGS).exists():
        return kept_file(folder, SETTINGS).decode("utf-8-sig", errors="replace")
    return escape(json.dumps(settings, indent=1))
