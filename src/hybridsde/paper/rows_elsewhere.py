"""Rows of the paper's tables as tasks of an engine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hybridsde._errors import InputError
from hybridsde.engine import AbstractExecutor, AbstractJob, Outcome, Task, execute
from hybridsde.engine.executor import Report
from hybridsde.engine.ledger import held
from hybridsde.engine.task import Perform
from hybridsde.paper import lorenz, lotka_volterra
from hybridsde.paper.experiment import Experiment
from hybridsde.paper.table import Row, RowKey, plain_row, row_of

TABLES: Mapping[str, Experiment] = {
    "lorenz": lorenz.EXPERIMENT,
    "lotka-volterra": lotka_volterra.EXPERIMENT,
}
FOLDER = "engine"
"""Of the ledger, inside that of the table."""


@dataclass(frozen=True)
class TableJob(AbstractJob):
    """A table of the paper; a task is one of its rows with all repetitions."""

    table: str

    @property
    def about(self) -> Mapping[str, Any]:
        """The name; everything else stands in the keys of its rows."""
        return {"kind": "table", "table": self.table}

    def open(self) -> Perform:
        """Rows are computed from their keys: the recordings are simulated."""
        experiment = TABLES[self.table]

        def perform(task: Task) -> Outcome:
            row = experiment.row(RowKey(**task.payload), lambda _: ())
            return Outcome([plain_row(row)])

        return perform


def compute(
    table: str,
    keys: Sequence[RowKey],
    out: Path,
    executor: AbstractExecutor,
    devices: int,
    report: Report,
) -> dict[RowKey, Row]:
    """Rows by their keys; those that the ledger holds are not computed again."""
    job = TableJob(table)
    tasks = {key: Task("row", key._asdict()) for key in keys}
    with held(out / FOLDER, job, devices) as ledger:
        lost = execute(executor, job, list(tasks.values()), ledger, report)
        if lost:
            raise InputError(f"{len(lost)} rows were lost. Repeat the command to try them again.")
        return {key: row_of(ledger.outcome(task).rows[0]) for key, task in tasks.items()}
