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
from hybridsde.physics import EquationPhysics
from hybridsde.physics.expression import text
from hybridsde.project.project import Project
from hybridsde.report.knowledge import knowledge_kept
from hybridsde.report.terminal import frame_table
from hybridsde.run import Run
from hybridsde.store.metadata import Scores

EARLY = 10
"""An epoch among the first tenth is early."""
SHOWN = ("mse", "rmse", "nll", "crps", "coverage90")


def overview(project: Project) -> list[Table | Text]:
    """The data, the known equations, and what a fit would do."""
    return [_data_table(project), *_at_limits(project), *_equations(project), _plan(project)]


def score_table(scores: Scores, title: str, floor: Scores | None = None) -> Table:
    """Scores per state and overall; of the true equations below, where they are known."""
    rows = {**scores.states, "overall": scores.overall}
    if floor is not None:
        rows["true equations"] = floor.overall
    frame = pd.DataFrame(rows).T.reindex(columns=list(SHOWN))
    return frame_table(frame.rename_axis("state"), title)


def lead_table(scores: pd.DataFrame) -> Table:
    """Scores from rolling origins, by how many rows ahead; all leads together first."""
    overall = scores[scores["obs"] == "overall"].drop(columns=["obs", "origins"])
    frame = overall.set_index(overall.pop("lead").replace(0, "all")).rename_axis("rows ahead")
    origins = int(scores["origins"].iloc[0])
    return frame_table(frame.reindex(columns=list(SHOWN)), f"{origins} origins, all rows before")


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
    if known.parameters:
        frame = pd.DataFrame(known.parameters).T
        frame.columns = ["value", "standard error"]
        parts.append(frame_table(frame.rename_axis("parameter"), "Learned parameters"))
    return parts


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
        size = f", found by least squares about {typical[name][0]:.3g} ± {typical[name][1]:.3g}"
        how = {"infer": "learned"}.get(str(given), f"given as {given}")
        lines.append(f"  {name}: start {how}{size if name in typical else ''}")
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
        steps = f"{numerics.scheme} steps of at most {numerics.step:.3g} {unit}, by {numerics.why}"
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
