"""A fleet from its settings to its table."""

from dataclasses import dataclass

import pandas as pd

from hybridsde._errors import InputError
from hybridsde._files import write_whole
from hybridsde.engine.executor import AbstractExecutor, Report, execute
from hybridsde.engine.fleet import FleetJob
from hybridsde.engine.fleet_table import fleet_frame, outliers, with_population
from hybridsde.engine.ledger import Ledger
from hybridsde.engine.member_folder import remove_partial_folders

TABLE, OUTLIERS = "fleet.csv", "outliers.csv"


@dataclass(frozen=True)
class Fleet:
    """What was found of a fleet."""

    table: pd.DataFrame
    outliers: pd.DataFrame
    lost: int
    """Groups of members that could not be done; repeating the command tries them again."""


def run_fleet(job: FleetJob, executor: AbstractExecutor, ledger: Ledger, report: Report) -> Fleet:
    """Fit all members; write `fleet.csv` and `outliers.csv` into the folder of the job."""
    members = job.recordings.members(job.by)
    start = job.start_task(members)
    if execute(executor, job, [start], ledger, _loudly(report)):
        raise InputError("What all members share could not be settled; see the line above.")
    tasks = job.member_tasks(members, ledger.outcome(start).rows[0])
    lost = execute(executor, job, tasks, ledger, report)
    remove_partial_folders(job.out)
    done = [task for task in tasks if task in ledger]
    if not done:
        raise InputError("None of the members could be fitted; see the lines above.")
    table = fleet_frame(ledger.outcome(task) for task in done)
    table = with_population(table) if job.common else table
    found = Fleet(table, outliers(table), len(lost))
    write_whole(ledger.folder / TABLE, table.to_csv(index=False))
    write_whole(ledger.folder / OUTLIERS, found.outliers.to_csv(index=False))
    return found


def _loudly(report: Report) -> Report:
    """Only what is news: the first task is not counted with the others."""

    def only_news(progress) -> None:
        if progress.news:
            report(progress)

    return only_news
