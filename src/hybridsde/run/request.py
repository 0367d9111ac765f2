"""What is asked before a fit begins, so that nothing is refused while it runs or after it."""

from pathlib import Path

from hybridsde._errors import InputError, notice
from hybridsde.data import Trajectories
from hybridsde.data.checks import check_whole
from hybridsde.fit import Langevin
from hybridsde.forecast import ModelSpec
from hybridsde.forecast.spec import common_step
from hybridsde.hybrid import HybridSDE
from hybridsde.hybrid.known_check import check_known
from hybridsde.objective import AbstractObjective, solver_of
from hybridsde.run.run import Run
from hybridsde.simulate.schemes import solver_notes
from hybridsde.store.spec_io import write_spec


def check_request(
    model: ModelSpec,
    data: Trajectories,
    objective: AbstractObjective | None,
    langevin: Langevin | None,
    *,
    validation: Trajectories | None,
    horizon: int | None,
    checkpoint: str | Path | None,
    start_from: Run | None,
) -> None:
    """An error that names what cannot be used; a notice where the run could not be saved."""
    for name, found, kind in (
        ("model", model, ModelSpec),
        ("data", data, Trajectories),
        ("validation", validation, Trajectories | None),
        ("objective", objective, AbstractObjective | None),
        ("start_from", start_from, Run | None),
    ):
        if not isinstance(found, kind):
            raise InputError(f"`{name}` of a fit cannot be {found!r}. See hybridsde.fit.")
    if horizon is not None:
        check_whole(horizon, "horizon")
    model.check_training(data)
    if validation is not None:
        model.check_later(validation)
        if model.requirements.regular:
            common_step(validation, model.name, common_step(data, model.name))
    if isinstance(model, HybridSDE):
        model.check_loss(objective, langevin)
        check_known(model, data)
    if checkpoint is not None and not Path(checkpoint).absolute().parent.is_dir():
        raise InputError(f"The checkpoint {checkpoint} lies in a folder that does not exist.")
    try:
        write_spec(model)
        solver = None if objective is None else solver_of(objective)
        if solver is not None:
            solver_notes(solver)
    except InputError as error:
        if checkpoint is not None:
            raise InputError(
                f"A fit with a checkpoint must be one that can be saved. {error}"
            ) from None
        notice(f"This run cannot be saved, only used while Python runs. {error}")
