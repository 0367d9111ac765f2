"""Tasks in this process, one after the other; each is spread over all local devices."""

from collections.abc import Iterator, Sequence

import jax

from hybridsde.engine.executor import AbstractExecutor, Done, perform
from hybridsde.engine.ledger import Ledger
from hybridsde.engine.task import AbstractJob, Task


class LocalExecutor(AbstractExecutor):
    """No other process than this one, with all devices that it has."""

    @property
    def description(self) -> str:
        """With its devices."""
        return f"this process ({devices()})"

    def do(self, job: AbstractJob, tasks: Sequence[Task], ledger: Ledger) -> Iterator[Done]:
        """One after the other. A task that raises is lost, and the next one follows."""
        work = job.open()
        for task in tasks:
            try:
                outcome = perform(work, task, ledger)
            except Exception as error:
                yield Done(task, lost=f"{type(error).__name__}: {error}")
            else:
                yield Done(task, len(outcome.rows), outcome.failures)

    def close(self) -> None:
        """Nothing is held."""


def devices() -> str:
    """What this process computes on, in words."""
    found = jax.local_devices()
    kinds = ", ".join(dict.fromkeys(one.device_kind for one in found))
    return f"{len(found)} × {found[0].platform} ({kinds})"
