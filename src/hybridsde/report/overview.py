"""What a project and its scores look like in a terminal."""

import pandas as pd
from rich.table import Table
from rich.text import Text

from hybridsde.physics import EquationPhysics
from hybridsde.physics.expression import text
from hybridsde.project.project import Project
from hybridsde.report.terminal import frame_table
from hybridsde.store.metadata import Scores

SHOWN = ("mse", "rmse", "nll", "crps", "coverage90")


def overview(project: Project) -> list[Table | Text]:
    """The data, the known equations, and what a fit would do."""
    return [_data_table(project), *_equations(project), _plan(project)]


def score_table(scores: Scores, title: str) -> Table:
    """Scores per state and overall."""
    rows = {**scores.states, "overall": scores.overall}
    frame = pd.DataFrame(rows).T.reindex(columns=list(SHOWN))
    return frame_table(frame.rename_axis("state"), title)


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


def _equations(project: Project) -> list[Text]:
    physics = project.model.physics
    known = physics.known(tuple(project.model.states), tuple(project.model.inputs))
    lines = []
    learned = "" if project.model.hidden is None else " + learned"
    if isinstance(physics, EquationPhysics):
        lines += [f"  d{e.state}/dt = {text(e.rate)}{learned}" for e in physics.equations]
    else:
        lines += [f"  d{name}/dt = known by Python function{learned}" for name in known]
    rest = "learned" if learned else "0"
    lines += [f"  d{name}/dt = {rest}" for name in project.model.states if name not in known]
    return [Text("\n".join(["Drift:", *lines]))]


def _plan(project: Project) -> Text:
    parts = ", ".join(f"{len(data)} for {n}" for n, data in project.split.parts().items())
    unit = project.settings.data.unit or "units of time"
    usual = f"{project.data.interval:.3g} {unit}"
    return Text(
        f"Trajectories: {parts}; training sees {project.pieces.count} pieces.\n"
        f"Usual interval {usual}, {project.substeps} solver steps in each; "
        f"{project.training.epochs} epochs, seed {project.settings.train.seed}."
    )
