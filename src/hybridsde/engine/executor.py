"""Who does the tasks of a job: one interface, whatever stands behind it."""

import abc
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from hybridsde.engine.ledger import Ledger
from hybridsde.engine.task import AbstractJob, Outcome, Perform, Task


@dataclass(frozen=True)
class Done:
    """A task that is over: in the ledger, or lost."""

    task: Task
    fits: int = 0
    failures: int = 0
    """Fits that came to nothing, and that would again."""
    lost: str | None = None
    """Why the task is not in the ledger; None where it is."""
    worker: str | None = None
    """Who did it, and on what devices."""


class AbstractExecutor(abc.ABC):
    """Does tasks and writes them into a ledger. Results do not depend on which one is taken."""

    @property
    @abc.abstractmethod
    def description(self) -> str:
        """Where tasks are done, in words."""

    @abc.abstractmethod
    def do(self, job: AbstractJob, tasks: Sequence[Task], ledger: Ledger) -> Iterator[Done]:
        """All tasks in some order, as they come to an end."""

    @abc.abstractmethod
    def close(self) -> None:
        """Give back what it holds."""


@dataclass(frozen=True)
class Progress:
    """How far a job is."""

    done: int
    """Tasks in the ledger."""
    of: int
    fits: int
    """Fits of this session."""
    failures: int
    lost: int
    """Tasks that could not be done, such as for want of memory; the command can be repeated."""
    seconds: float
    """Of this session."""
    skipped: int
    """Tasks that were in the ledger before it."""
    news: tuple[str, ...] = ()
    """Who did the last task, and why it was lost."""

    @property
    def rate(self) -> float:
        """Fits per second."""
        return self.fits / self.seconds if self.seconds > 0 else 0.0

    @property
    def left(self) -> float | None:
        """Seconds; None before the first task is done."""
        session = self.done + self.lost - self.skipped
        remaining = self.of - self.done - self.lost
        return None if session < 1 else self.seconds / session * remaining


Report = Callable[[Progress], None]


@dataclass
class _Tally:
    """What was counted so far."""

    of: int
    skipped: int
    began: float = field(default_factory=time.monotonic)
    done: int = 0
    fits: int = 0
    failures: int = 0
    lost: int = 0

    def add(self, done: Done) -> Progress:
        self.done += done.lost is None
        self.lost += done.lost is not None
        self.fits += done.fits
        self.failures += done.failures
        said = [done.worker, None if done.lost is None else f"lost: {done.lost}"]
        return self.progress(tuple(one for one in said if one is not None))

    def progress(self, news: tuple[str, ...] = ()) -> Progress:
        return Progress(
            self.skipped + self.done,
            self.of,
            self.fits,
            self.failures,
            self.lost,
            time.monotonic() - self.began,
            self.skipped,
            news,
        )


def execute(
    executor: AbstractExecutor,
    job: AbstractJob,
    tasks: Sequence[Task],
    ledger: Ledger,
    report: Report,
) -> list[Task]:
    """Do what is not in the ledger yet. Returns the tasks that were lost.

    The rest goes on without them; repeating the command tries them again.
    """
    waiting = [task for task in tasks if task not in ledger]
    tally = _Tally(len(tasks), len(tasks) - len(waiting))
    report(tally.progress())
    lost = []
    for done in executor.do(job, waiting, ledger) if waiting else ():
        if done.lost is not None:
            lost.append(done.task)
        report(tally.add(done))
    return lost


def perform(do: Perform, task: Task, ledger: Ledger) -> Outcome:
    """Do one task, timed, and write it down."""
    began = time.monotonic()
    found = do(task)
    outcome = Outcome(found.rows, time.monotonic() - began)
    ledger.keep(task, outcome)
    return outcome
