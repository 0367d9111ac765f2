"""A job cut into tasks: plain data, so that any process on any machine can do them."""

import abc
import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

FAILURE = "failure"
"""The column of a row that says why there is nothing else in it."""


def as_json(content: Any) -> Any:
    """Plain data with numbers that JSON does not know, such as an endless limit, as text."""
    if isinstance(content, Mapping):
        return {name: as_json(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [as_json(value) for value in content]
    return str(content) if isinstance(content, float) and not math.isfinite(content) else content


def digest(content: Any) -> str:
    """Sixteen hexadecimal digits that change with plain data, and with nothing else."""
    text = json.dumps(as_json(content), sort_keys=True, ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Task:
    """A group of fits that are done together, as data.

    Who does it changes nothing: how fits are grouped depends on the job alone.
    """

    kind: str
    payload: Mapping[str, Any]
    """Names, numbers and settings, as JSON has them."""

    @cached_property
    def id(self) -> str:
        """The same for the same work, whoever asks for it and when."""
        return digest([self.kind, self.payload])


@dataclass(frozen=True)
class Outcome:
    """What a task has found: a row of plain data for each of its fits."""

    rows: Sequence[Mapping[str, Any]]
    seconds: float = 0.0

    @property
    def failures(self) -> int:
        """How many of the fits came to nothing."""
        return sum(row.get(FAILURE) is not None for row in self.rows)


Perform = Callable[[Task], Outcome]


class AbstractJob(abc.ABC):
    """What all tasks of a job share: sent once to every worker, and opened once there."""

    @property
    @abc.abstractmethod
    def about(self) -> Mapping[str, Any]:
        """Everything that the results depend on, as plain data.

        A folder that was begun with something else is refused.
        """

    @abc.abstractmethod
    def open(self) -> Perform:
        """Read what the tasks share; what is returned does one after the other.

        A fit that comes to nothing is a row that says why. An exception is for what could go
        otherwise another time.
        """
