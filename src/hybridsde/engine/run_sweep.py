"""A sweep from its space to the best settings: rounds of trials, hopeless ones stopped early."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from hybridsde._errors import InputError
from hybridsde._files import write_whole
from hybridsde.engine.executor import AbstractExecutor, Report, execute
from hybridsde.engine.importance import importance
from hybridsde.engine.judging import Gain, gain
from hybridsde.engine.ledger import Ledger
from hybridsde.engine.sweep import SHOWN, SweepJob
from hybridsde.engine.task import FAILURE, Outcome
from hybridsde.project.overrides import with_overrides
from hybridsde.project.settings import Settings
from hybridsde.project.toml_text import settings_text

FACTOR = 3
"""A rung trains so many times as long as the one before, and so many times fewer trials."""
TABLE, BEST = "sweep.csv", "best.toml"


@dataclass
class Trial:
    """Settings that were tried, and what came of them at each rung."""

    number: int
    changes: Mapping[str, Any]
    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Of the longest training, one per seed."""
        return self.outcomes[-1].rows if self.outcomes else ()

    @property
    def whole(self) -> bool:
        """Whether it was trained to the end."""
        return bool(self.rows) and all(row.get("whole", False) for row in self.rows)

    def score_at(self, rung: int) -> float:
        """The mean over units and seeds; infinite where one of them came to nothing."""
        rows = self.outcomes[min(rung, len(self.outcomes) - 1)].rows if self.outcomes else ()
        units = [row.get("units") for row in rows]
        told = [value for one in units if one for value in one.values()]
        return float(np.mean(told)) if told and all(units) else math.inf

    @property
    def units(self) -> list[dict[str, float]]:
        """Scores of units after the longest training, for every seed."""
        found: dict[int, dict[str, float]] = {}
        for row in self.rows:
            found.setdefault(row.get("seed", 0), {}).update(row.get("units") or {})
        return [found[seed] for seed in sorted(found)]

    def gain_over(self, other: "Trial") -> Gain | None:
        """By how much it is better; None where that cannot be said."""
        if not (self.whole and other.whole):
            return None
        return gain(other.units, self.units)

    @property
    def score(self) -> float:
        """After the longest training."""
        return self.score_at(len(self.outcomes) - 1)


@dataclass(frozen=True)
class Sweep:
    """What was found."""

    trials: tuple[Trial, ...]
    """The first is the settings as they were."""
    table: pd.DataFrame
    importance: dict[str, float]
    settings: Settings
    """The best of them."""
    lost: int

    @property
    def first(self) -> Trial:
        """The settings as they were."""
        return self.trials[0]

    @property
    def lowest(self) -> Trial:
        """The lowest score of those that were trained to the end."""
        return lowest_of(self.trials)

    @property
    def best(self) -> Trial:
        """What is recommended."""
        return best_of(self.trials)


def lowest_of(trials: Sequence[Trial]) -> Trial:
    """The lowest score of those that were trained to the end."""
    return min((one for one in trials if one.whole), key=lambda one: (one.score, one.number))


def best_of(trials: Sequence[Trial]) -> Trial:
    """The lowest score of those that are better than the settings as they were beyond doubt.

    Without one these settings, which are the first, stay; unless they came to nothing.
    """
    first = trials[0]
    if not (first.whole and math.isfinite(first.score)):
        return lowest_of(trials)
    gains = [(one, one.gain_over(first)) for one in trials[1:]]
    return lowest_of([first, *(one for one, won in gains if won is not None and won.certain)])


def run_sweep(job: SweepJob, executor: AbstractExecutor, ledger: Ledger, report: Report) -> Sweep:
    """Try settings; write `sweep.csv` and `best.toml` into the folder of the job."""
    first = Trial(0, {})
    trials, lost = [first], 0
    search = job.new_search()
    while proposals := search.ask():
        number = len(trials)
        batch = [Trial(number + place, one) for place, one in enumerate(proposals)]
        racing = [first, *batch] if number == 1 else batch
        lost += _race(job, racing, executor, ledger, report)
        search.tell([(one.score, one.whole) for one in batch])
        trials += batch
    if not any(one.whole and math.isfinite(one.score) for one in trials):
        why = next((row[FAILURE] for one in trials for row in one.rows if row.get(FAILURE)), None)
        raise InputError(f"No trial came to an end{'' if why is None else f': {why}'}")
    best = with_overrides(job.settings, best_of(trials).changes, "[sweep]")
    found = Sweep(tuple(trials), _table(job, trials), _importances(job, trials), best, lost)
    write_whole(ledger.folder / TABLE, found.table.to_csv(index=False))
    text = settings_text(best, job.source.parent, ledger.folder)
    write_whole(ledger.folder / BEST, text)
    return found


def _race(
    job: SweepJob,
    trials: Sequence[Trial],
    executor: AbstractExecutor,
    ledger: Ledger,
    report: Report,
) -> int:
    """Successive halving (Jamieson and Talwalkar 2016): train briefly, keep a third, and again.

    Every rung begins anew, with a schedule of its own length, so that it is a task like any other.
    What is found without training is whole at the first rung. The settings as they were are taken
    along to the end. Returns how many tasks were lost.
    """
    lost, alive = 0, list(trials)
    for rung in range(job.rungs):
        share = float(FACTOR) ** (rung - job.rungs + 1)
        tasks = {one.number: job.task(one.changes, share) for one in alive if not one.whole}
        lost += len(execute(executor, job, list(tasks.values()), ledger, report))
        for one in alive:
            if one.number in tasks and tasks[one.number] in ledger:
                one.outcomes.append(ledger.outcome(tasks[one.number]))
        rivals = [one for one in alive if one.number != 0]
        order = sorted(rivals, key=lambda one: (one.score, one.number))
        kept = order[: -(-len(order) // FACTOR)]
        alive = [one for one in alive if (one in kept and one.outcomes) or one.number == 0]
    return lost


def _table(job: SweepJob, trials: Sequence[Trial]) -> pd.DataFrame:
    """A row per trial: its settings, how far it came, and its scores on validation."""
    rows = []
    for one in trials:
        told = pd.DataFrame([row for row in one.rows if row.get(FAILURE) is None])
        means = {} if told.empty else told[[*SHOWN, "epochs"]].mean().to_dict()
        won = None if one is trials[0] else one.gain_over(trials[0])
        rows.append(
            {
                "trial": one.number,
                **{axis.name: _cell(one.changes.get(axis.name)) for axis in job.axes},
                "score": one.score if math.isfinite(one.score) else None,
                "gain": None if won is None else won.mean,
                "gain_se": None if won is None else won.error,
                **means,
                "whole": one.whole,
                "seconds": sum(outcome.seconds for outcome in one.outcomes),
                FAILURE: next((row[FAILURE] for row in one.rows if row.get(FAILURE)), None),
            }
        )
    return pd.DataFrame(rows).sort_values(
        ["whole", "score"], ascending=[False, True], kind="stable", ignore_index=True
    )


def _cell(value: Any) -> Any:
    return value if value is None or isinstance(value, int | float | str) else str(value)


def _importances(job: SweepJob, trials: Sequence[Trial]) -> dict[str, float]:
    """By the scores at the first rung, which all trials have."""
    tried = [one for one in trials if one.changes and one.outcomes]
    scores = np.array([one.score_at(0) for one in tried])
    found = {
        axis.name: importance(axis, [one.changes[axis.name] for one in tried], scores)
        for axis in job.axes
    }
    return dict(sorted(found.items(), key=lambda pair: -np.nan_to_num(pair[1], nan=-1.0)))
