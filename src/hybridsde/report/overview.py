"""What a project and its scores look like in a terminal."""

from collections.abc import Mapping

import jax.numpy as jnp
import numpy as np
import pandas as pd
from rich.table import Table
from rich.text import Text

from hybridsde.data import Trajectories
from hybridsde.estimate.censored import at_limit
from hybridsde.hybrid import HybridSDE
from hybridsde.hybrid.build import library_terms, seen_by
from hybridsde.hybrid.declaration import LIBRARY, PROCESS
from hybridsde.hybrid.numerics import HEUN
from hybridsde.physics import EquationPhysics
from hybridsde.physics.expression import text
from hybridsde.project.project import Project
from hybridsde.report.knowledge import knowledge_kept
from hybridsde.report.terminal import frame_table
from hybridsde.run import Run
from hybridsde.store.metadata import SCALED, Scores

MOST = 50.0
"""Of logarithms that are printed as numbers."""
EARLY = 10
"""An epoch among the first tenth is early."""
IN_SPREADS = ", in spreads of the data"
SHOWN = ("mse", "rmse", "nll", "crps", "coverage90")


def overview(project: Project) -> list[Table | Text]:
    """The data, the known equations, and what a fit would do."""
    return [_data_table(project), *_at_limits(project), *_equations(project), _plan(project)]


def score_table(scores: Scores, title: str, floor: Scores | None = None) -> Table:
    """Scores per state in its own units, and of all together, in spreads where units would mix.

    Those of the true equations stand below, where they are known.
    """
    rows = {**scores.states, f"all{IN_SPREADS if scores.in_spreads else ''}": _together(scores)}
    if floor is not None:
        rows["true equations"] = _together(floor)
    frame = pd.DataFrame(rows).T.reindex(columns=list(SHOWN))
    return frame_table(frame.rename_axis("state"), title)


def _together(scores: Scores) -> dict[str, float | None]:
    """Overall scores as they are shown: squared errors of several units have no mean."""
    found = {name: scores.shown(name) for name in SHOWN}
    return {name: one for name, one in found.items() if not (scores.in_spreads and name == "mse")}


def lead_table(scores: pd.DataFrame) -> Table:
    """Scores from rolling origins, by how many rows ahead; all leads together first.

    Where several observations would mix their units, errors are in spreads of the data, and the
    CRPS of each in its own units stands beside.
    """
    title = f"{int(scores['origins'].iloc[0])} origins, all rows before"
    overall = scores[scores["obs"] == "overall"].set_index("lead")
    frame = overall.reindex(columns=list(SHOWN))
    if f"crps{SCALED}" in scores:
        names = ("rmse", "crps")
        frame = pd.DataFrame({name: overall[f"{name}{SCALED}"] for name in names})
        frame = frame.assign(coverage90=overall["coverage90"])
        for name, rows in scores[scores["obs"] != "overall"].groupby("obs", sort=False):
            frame = frame.assign(**{f"crps of {name}": rows.set_index("lead")["crps"]})
        title += f"; rmse and crps{IN_SPREADS}"
    frame.index = ["all" if lead == 0 else str(lead) for lead in frame.index]
    return frame_table(frame.rename_axis("rows ahead"), title)


def fit_notes(run: Run, data: Trajectories) -> list[Table | Text]:
    """What a fit found beside its scores: equations, the kept epoch, parameters, calibration."""
    known, epochs = run.metadata, len(run.history)
    parts: list[Table | Text] = []
    if known.choice:
        parts.append(Text(f"Learned part, chosen by the fit: {known.choice}"))
    if isinstance(run.spec, HybridSDE) and LIBRARY in run.spec.pieces:
        found = run.equations(data)
        lines = [*(f"  {one}" for one in found.lines()), *map(str, found.corrections)]
        parts.append(Text("\n".join(["Found:", *lines])))
    kept = knowledge_kept(run, data)
    if kept:
        parts.append(Text("\n".join(["Known beside equations:", *(f"  {one}" for one in kept)])))
    if known.kept_epoch is not None:
        line = f"Trained for {epochs} epochs; without validation recordings the last is kept."
        if "validation_loss" in run.history:
            line = f"Kept the model after epoch {known.kept_epoch} of {epochs}, by validation."
        elif known.kept_epoch < epochs:
            line = (
                f"Kept the model after epoch {known.kept_epoch} of {epochs}: the training loss "
                "was far higher at the end. A smaller learning rate may help."
            )
        if epochs > EARLY and known.kept_epoch <= epochs / EARLY:
            line += (
                " That is early: the validation recordings differ from the training ones, or the "
                "learning rate is too high."
            )
        parts.append(Text(line))
    changed = {name: c for name, c in (known.calibration or {}).items() if c != 1}
    if changed:
        listed = ", ".join(f"{name} by {factor:.3g}" for name, factor in changed.items())
        parts.append(Text(f"Calibration on the validation recordings multiplied {listed}."))
    for numbers, of, title in (
        (known.parameters, "parameter", "Learned parameters"),
        (known.diffusion, "diffusion of", "How much the dynamics are disturbed: G"),
        (known.noise, "noise of", "How much measurements are off: σ"),
    ):
        if numbers:
            parts.append(numbers_table(numbers, of, title))
    return parts


def profile_table(run: Run, data: Trajectories) -> Table:
    """Intervals that follow the likelihood; a dash for an end that the data leave open."""
    frame = run.profile(data).rename(columns={"low": "5 %", "high": "95 %"})
    return frame_table(frame, "Learned parameters, profile intervals")


def numbers_table(numbers: Mapping[str, Mapping[str, float | None]], of: str, title: str) -> Table:
    """Learned numbers with standard errors and intervals."""
    frame = pd.DataFrame(numbers).T.rename(
        columns={"error": "standard error", "low": "5 %", "high": "95 %"}
    )
    return frame_table(frame.rename_axis(of), title)


def _data_table(project: Project) -> Table:
    data = project.data
    frame = pd.DataFrame(
        {
            name: {
                "mean": data.values[..., k][data.observed[..., k]].mean(),
                "sd": data.values[..., k][data.observed[..., k]].std(),
                "smallest": data.values[..., k][data.observed[..., k]].min(),
                "largest": data.values[..., k][data.observed[..., k]].max(),
                "missing %": 100 * (1 - data.observed[..., k].sum() / data.lengths.sum()),
            }
            for k, name in enumerate(data.states)
        }
    ).T
    return frame_table(frame.rename_axis("state"), f"{len(data)} trajectories")


def _at_limits(project: Project) -> list[Text]:
    """How many measurements are read as "there or beyond"."""
    data, limits = project.data, {**project.model.bounds, **project.model.saturates}
    lines = []
    for k, name in enumerate(data.states):
        if name not in limits:
            continue
        column = jnp.asarray(data.values[..., k, None], float)
        low, high = map(float, limits[name])
        side = np.asarray(at_limit(column, ((low, high),)))[..., 0]
        count = int(((side != 0) & data.observed[..., k]).sum())
        if count:
            lines.append(
                f"{name}: {count} of {int(data.observed[..., k].sum())} measurements are at a "
                "limit, and are read as there or beyond."
            )
    return [Text("\n".join(lines))] if lines else []


def _equations(project: Project) -> list[Text]:
    model, physics = project.model, project.model.physics
    known = physics.known(tuple(model.states), tuple(model.inputs))
    written = {}
    if isinstance(physics, EquationPhysics):
        written = {e.state: text(e.rate) for e in physics.equations}
    lines = []
    for name in model.states:
        parts = [written.get(name, "known by Python function")] if name in known else []
        seen = seen_by(model, name)
        if seen:
            whole = seen == model.features
            parts.append("learned" if whole else f"learned({', '.join(seen)})")
        exact = ", exact" if name in model.exact else ""
        lines.append(f"  d{name}/dt = {' + '.join(parts) or '0'}{exact}")
    return [Text("\n".join(["Drift:", *lines])), *_hidden(project)]


def _hidden(project: Project) -> list[Text]:
    """Where states begin that are not measured, as it is used."""
    model = project.model
    starts = model.start if isinstance(model.start, Mapping) else {}
    typical = model.numerics.typical or {}
    lines = []
    for name in model.hidden_states:
        given = starts.get(name, "infer")
        how = {"infer": "learned"}.get(str(given), f"given as {given}")
        if name in typical:
            mean, sd = typical[name]
            about = f"{mean:.3g} ± {sd:.3g}"
            if name in model.positive:
                about = f"{np.exp(mean):.3g}, times or divided by {np.exp(min(sd, MOST)):.3g}"
            how += f", found by least squares about {about}"
        lines.append(f"  {name}: start {how}")
    return [Text("\n".join(["Unmeasured states:", *lines]))] if lines else []


def _plan(project: Project) -> Text:
    parts = [
        f"{len(data)} for {name} ({_names(data.ids)})"
        for name, data in project.split.parts().items()
    ]
    unit = project.settings.data.unit or "units of time"
    interval, numerics = project.data.interval, project.model.numerics
    usual = f"{interval:.3g} {unit}" if interval else "unknown"
    if project.settings.published:
        count = project.settings.train.substeps or 1
        steps = f"{count} Euler–Maruyama step{'s' * (count > 1)} from row to row, as published"
    else:
        scheme = numerics.scheme or HEUN
        steps = f"{scheme} steps of at most {numerics.step:.3g} {unit}, by {numerics.why}"
    origin = f"\nIn equations t counts from {numerics.origin:.17g}." if numerics.origin else ""
    return Text(
        f"Trajectories: {'; '.join(parts)}. Training sees {project.pieces.count} pieces.\n"
        f"Usual interval {usual}; {steps}.{origin}\n"
        f"{_learned(project)}{_knowledge(project)}Seed {project.settings.train.seed}."
    )


def _knowledge(project: Project) -> str:
    """What the drift is held to beside equations."""
    said = "; ".join(text for _, text in project.model.knowledge.sentences())
    return f"It is held to this: {said}. " if said else ""


def _learned(project: Project) -> str:
    """What the learned part will be made of."""
    model, epochs = project.model, f"{project.training.epochs} epochs"
    if not model.pieces:
        return f"Nothing is learned beside the physics; {epochs}. "
    columns = len(library_terms(model))
    if model.undecided and project.objective is None:
        return (
            f"The learned part is a library of {columns} terms; where that leaves a doubt, "
            f"{model.networks} networks are tried for {epochs}. "
        )
    library = f"a library of {columns} terms" if LIBRARY in model.pieces else ""
    process = "a Gaussian process" if PROCESS in model.pieces else ""
    several = "s" * (model.networks > 1)
    network = f"{model.networks} network{several}, {epochs}" if model.networks else ""
    if model.ensemble:
        network = f"an ensemble of {model.networks} small networks, by second-order steps"
    return f"The learned part is {' and '.join(filter(None, (library, process, network)))}. "


def _names(ids: tuple[str, ...], most: int = 6) -> str:
    return ", ".join(ids[:most]) + (f" and {len(ids) - most} more" if len(ids) > most else "")
