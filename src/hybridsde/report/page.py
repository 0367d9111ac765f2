"""One self-contained HTML page about a run. It reads the run folder; it never trains."""

import json
from html import escape
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from hybridsde._files import write_whole
from hybridsde.data import Trajectories
from hybridsde.forecast import Forecast
from hybridsde.forecast.calibration import coverage, pit
from hybridsde.physics import EquationPhysics, PositivePhysics
from hybridsde.physics.expression import mathml, symbol
from hybridsde.report import panels
from hybridsde.report.certificates import read_certificates
from hybridsde.report.html import render_template
from hybridsde.run import Run
from hybridsde.run.division import Division
from hybridsde.run.project import SETTINGS, as_scored, division_of, plain_scores

DRAWS = 400
FANS = 3
"""Held-out trajectories that are shown."""
WEIGHTS = 32
"""Draws of the weights behind a picture of the drift."""


def write_page(folder: Path, *, trust: bool = False) -> Path:
    """Write FOLDER/report.html."""
    run = Run.load(folder, trust=trust)
    text = render(folder, run, division_of(folder, run))
    path = folder / "report.html"
    write_whole(path, text)
    return path


def render(folder: Path, run: Run, division: Division) -> str:
    """The page as text."""
    settings = run.facts.get("settings", {})
    unit = settings.get("data", {}).get("unit")
    clock = f"time, {unit}" if unit else "time"
    held_out = None if division.test is None else as_scored(run, division.test)
    forecast = None if held_out is None else _forecast(run, held_out)
    return render_template(
        "page.html",
        name=folder.resolve().name,
        title=f"{', '.join(run.declared.states)}: {folder.resolve().name}",
        equations=_equations(run),
        data=[
            panels.recordings(division.parts(), column, clock)
            for column in range(len(division.train.states))
        ],
        facts=_facts(division),
        drift=_drift(run, division),
        numbers=_numbers(run),
        training=panels.training(run.history),
        epochs=len(run.history),
        diverged=run.diverged,
        scores=None if held_out is None else plain_scores(run.score(held_out, draws=DRAWS)),
        fans=[] if forecast is None or held_out is None else _fans(forecast, held_out, clock),
        calibration=[] if forecast is None or held_out is None else _calibrated(forecast, held_out),
        shares=None
        if forecast is None or held_out is None
        else _shares(forecast, held_out.times[:, 0], clock),
        certificates=read_certificates(folder),
        settings=_settings_text(folder, settings),
        versions=json.loads((folder / "run.json").read_text())["versions"],
        seed=run.seed,
    )


def _forecast(run: Run, held_out: Trajectories) -> Forecast:
    """From the first row of every held-out trajectory, at its own times."""
    given = run.declared.context
    clock, inputs = held_out.times[:, given:], held_out.inputs[:, given:]
    start = held_out.start(given)
    return run.forecast(start, clock, inputs=inputs, draws=DRAWS, paths_per_weight=4)


def _equations(run: Run) -> list[str]:
    """The drift of every state, typeset; what is learned stands as f."""
    physics = run.declared.physics
    states = tuple(run.declared.states)
    known = physics.known(states, tuple(run.declared.inputs))
    formulas = {}
    if isinstance(physics, EquationPhysics):
        formulas = {equation.state: mathml(equation.rate) for equation in physics.equations}
    arguments = "<mo>,</mo>".join(symbol(name) for name in states)
    network = run.declared.hidden is not None
    gate = np.asarray(run.model.known.gate.value)
    lines = []
    for index, name in enumerate(states):
        parts = []
        if name in known:
            part = formulas.get(name, f"<msub><mi>r</mi>{symbol(name)}</msub>")
            strength = float(gate[index])
            factor = "" if strength == 1 else f"<mn>{strength:.2f}</mn><mo>·</mo>"
            if name in run.declared.positive:
                part = f"<mfrac><mn>1</mn>{symbol(name)}</mfrac><mo>(</mo>{part}<mo>)</mo>"
            parts.append(f'<mrow class="known">{factor}{part}</mrow>')
        if network:
            parts.append(
                f'<mrow class="learned"><msub><mi>f</mi>{symbol(name)}</msub><mo>(</mo>'
                f"{arguments}<mo>)</mo></mrow>"
            )
        drift = "<mo>+</mo>".join(parts) or "<mn>0</mn>"
        logarithm = "<mi>ln</mi>" if name in run.declared.positive else ""
        lines.append(
            '<math display="block"><mrow><mi>d</mi>'
            f"{logarithm}{symbol(name)}<mo>=</mo><mo>[</mo>{drift}<mo>]</mo><mi>d</mi><mi>t</mi><mo>+</mo>"
            f"<msub><mi>G</mi>{symbol(name)}</msub><mi>d</mi><msub><mi>W</mi>{symbol(name)}</msub>"
            "</mrow></math>"
        )
    return lines


def _facts(division: Division) -> list[dict[str, Any]]:
    rows = []
    for name, data in division.parts().items():
        gaps = 1 - data.observed.sum() / max(1, data.lengths.sum() * len(data.states))
        rows.append(
            {
                "part": name,
                "trajectories": len(data),
                "rows": int(data.lengths.sum()),
                "missing": f"{100 * gaps:.0f} %",
            }
        )
    return rows


def _drift(run: Run, division: Division) -> list[str]:
    """Learned next to known: fields over two states, else slices."""
    states = tuple(run.declared.states)
    data = division.train
    seen = data.observed.all(-1)
    points = data.values[seen]
    complete = len(data.states) == len(states) and len(points) > 0
    if not complete or run.declared.inputs:
        return _slices(run, data) if complete else []
    if len(states) != 2:
        return _slices(run, data)
    ends = np.quantile(points, [0.01, 0.99], 0)
    axes = [np.linspace(ends[0, k], ends[1, k], 13) for k in range(2)]
    grid = np.stack(np.meshgrid(*axes), -1).reshape(-1, 2)
    learned, known = _rates(run, grid, data)
    flat = (grid[:, 0], grid[:, 1])
    thin = points[:: max(1, len(points) // 1500)]
    pictures = []
    if run.declared.hidden is not None:
        title = "Learned part"
        pictures.append(panels.field(flat, learned.mean(0), thin, states, title, panels.ORANGE))
    if np.any(known):
        pictures.append(panels.field(flat, known, thin, states, "Known part", panels.BLUE))
        both = learned.mean(0) + known
        pictures.append(panels.field(flat, both, thin, states, "Together", panels.GREEN))
    return pictures + _slices(run, data)


def _slices(run: Run, data: Trajectories, most: int = 6) -> list[str]:
    """The drift of each state along itself, the other states at their median."""
    states = tuple(run.declared.states)
    points = [data.values[..., k][data.observed[..., k]] for k in range(len(data.states))]
    middle = np.array([np.median(column) for column in points])
    names = run.declared.physics.known(states, tuple(run.declared.inputs))
    pictures = []
    for k, name in enumerate(states[:most]):
        low, high = np.quantile(points[k], [0.01, 0.99])
        at = np.linspace(low, high, 60)
        grid = np.repeat(middle[None], len(at), 0)
        grid[:, k] = at
        learned, known = _rates(run, grid, data)
        shown = known[:, k] if name in names else None
        pictures.append(panels.slice_of_drift(at, learned[..., k], shown, name, name))
    return pictures


def _rates(run: Run, grid: np.ndarray, data: Trajectories) -> tuple[np.ndarray, np.ndarray]:
    """Learned drifts under draws of the weights, and the known drift, γ included."""
    inputs = data.inputs[data.inputs.shape[0] // 2, 0] if data.input_names else np.zeros(0)
    logarithms = np.array([name in run.declared.positive for name in run.declared.states])
    places = np.where(logarithms, np.log(np.where(logarithms, grid, 1.0)), grid)
    u, t = jnp.asarray(inputs), jnp.asarray(float(np.median(data.times)))

    def one(key) -> tuple[jax.Array, jax.Array]:
        sde = run.model.draw(key=key)
        noise = jax.tree.map(
            lambda leaf: jnp.zeros(leaf.shape[2:], leaf.dtype),
            sde.learned.network.noise(jnp.zeros(1, jnp.uint32), 1, key=key),
        )
        return jax.vmap(lambda h: sde.drift(t, h, u, noise))(jnp.asarray(places))

    learned, known = jax.vmap(one)(jr.split(jr.key(run.seed), WEIGHTS))
    slope = np.where(logarithms, grid, 1.0)  # dx/dt = x d ln x/dt
    return np.asarray(learned) * slope, np.asarray(known[0]) * slope


def _numbers(run: Run) -> list[dict[str, str]]:
    """Spreads and parameters that training decided."""
    rows = []
    spread = getattr(run.model.diffusion, "sd", None)
    if spread is not None:
        values = np.broadcast_to(np.asarray(spread.value), (len(run.declared.states),))
        rows += [
            {"name": f"G, noise of {_scale(run, name)}", "value": f"{value:.3g}"}
            for name, value in zip(run.declared.states, values, strict=True)
        ]
    observation = run.model.observation
    values = np.broadcast_to(np.asarray(observation.sd.value), (len(observation.names),))
    rows += [
        {"name": f"measurement noise of {_scale(run, name)}", "value": f"{value:.3g}"}
        for name, value in zip(observation.names, values, strict=True)
    ]
    physics = run.model.known.physics
    inner = physics.inner if isinstance(physics, PositivePhysics) else physics
    parameters = getattr(inner, "parameters", {})
    rows += [
        {"name": name, "value": f"{float(parameter.value):.4g}"}
        for name, parameter in parameters.items()
        if np.ndim(parameter.value) == 0
    ]
    return rows


def _scale(run: Run, name: str) -> str:
    return f"ln {name}" if name in run.declared.positive else name


def _fans(forecast: Forecast, held_out: Trajectories, clock: str) -> list[str]:
    draws = forecast.observations
    return [
        panels.fan(draws, held_out, row, column, clock)
        for row in range(min(FANS, len(held_out)))
        for column in range(draws.sizes["obs"])
    ]


def _calibrated(forecast: Forecast, held_out: Trajectories) -> list[str]:
    values, seen = held_out.values[:, 1:], held_out.observed[:, 1:]
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


def _settings_text(folder: Path, settings: dict[str, Any]) -> str:
    path = folder / SETTINGS
    if path.exists():
        return path.read_text(encoding="utf-8")
    return escape(json.dumps(settings, indent=1))
