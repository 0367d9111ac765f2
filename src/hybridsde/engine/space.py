"""What a sweep tries: settings by their dotted names, each with values or a range."""

import abc
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hybridsde._errors import InputError

POINTS = 3
"""Of a range, in a grid."""
FREE_DATA = (
    "data.positive",
    "data.bounds",
    "data.saturates",
    "data.interpolation",
    "data.hidden_states",
)
"""What of the data may be swept: the rest would change what is scored."""
FIXED = ("data", "forecast", "sweep")
KEYS = ("low", "high", "log", "points")


class AbstractAxis(abc.ABC):
    """One setting and what is tried for it."""

    name: str

    @abc.abstractmethod
    def at(self, share: float) -> Any:
        """The value at a share of the way, from 0 up to, but not including, 1."""

    @abc.abstractmethod
    def grid(self) -> list[Any]:
        """The values of a grid."""

    @abc.abstractmethod
    def suggested(self, trial: Any) -> Any:
        """What Optuna proposes in one of its trials."""


@dataclass(frozen=True)
class Choice(AbstractAxis):
    """One of several values of any kind."""

    name: str
    values: tuple[Any, ...]

    def at(self, share: float) -> Any:
        """All are equally likely."""
        return self.values[int(share * len(self.values))]

    def grid(self) -> list[Any]:
        """All of them."""
        return list(self.values)

    def suggested(self, trial: Any) -> Any:
        """By position, since a value may be a list."""
        return self.values[trial.suggest_categorical(self.name, list(range(len(self.values))))]


@dataclass(frozen=True)
class Range(AbstractAxis):
    """Numbers between two ends, both included; evenly, or evenly in their logarithm."""

    name: str
    low: float | int
    high: float | int
    log: bool = False
    points: int = POINTS

    @property
    def whole(self) -> bool:
        """Whether only whole numbers are tried: both ends are written as such."""
        return isinstance(self.low, int) and isinstance(self.high, int)

    def at(self, share: float) -> Any:
        """Whole numbers are all equally likely, unless their logarithms are."""
        if self.whole and not self.log:
            return int(self.low + math.floor(share * (self.high - self.low + 1)))
        return self._number(share)

    def grid(self) -> list[Any]:
        """Evenly from end to end."""
        shares = [n / max(1, self.points - 1) for n in range(self.points)]
        return list(dict.fromkeys(self._number(share) for share in shares))

    def suggested(self, trial: Any) -> Any:
        """A number."""
        if self.whole:
            return trial.suggest_int(self.name, int(self.low), int(self.high), log=self.log)
        return trial.suggest_float(self.name, self.low, self.high, log=self.log)

    def _number(self, share: float) -> Any:
        if self.log:
            ends = math.log(self.low), math.log(self.high)
            found = math.exp(ends[0] + share * (ends[1] - ends[0]))
        else:
            found = self.low + share * (self.high - self.low)
        return round(found) if self.whole else float(f"{found:.4g}")


def axes_of(table: Mapping[str, Any], source: str) -> tuple[AbstractAxis, ...]:
    """What the table [sweep] says."""
    flat = _flat(table)
    if not flat:
        raise InputError(
            f"{source} has no table [sweep]. Say what to try, such as: [sweep] and "
            '"train.learning_rate" = { low = 1e-3, high = 3e-2, log = true }'
        )
    return tuple(_axis(name, given, source) for name, given in sorted(flat.items()))


def _flat(table: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Names with dots, whether they were quoted or not."""
    found: dict[str, Any] = {}
    for key, value in table.items():
        name = f"{above}{key}"
        if isinstance(value, Mapping) and not {"low", "high"} & set(value):
            found |= _flat(value, f"{name}.")
        else:
            found[name] = value
    return found


def _axis(name: str, given: Any, source: str) -> AbstractAxis:
    if (name.split(".")[0] in FIXED and name not in FREE_DATA) or name == "train.seed":
        raise InputError(
            f"{source}: [sweep] cannot change {name!r}: trials would not be scored alike."
        )
    if isinstance(given, Sequence) and not isinstance(given, str) and given:
        return Choice(name, tuple(given))
    if not isinstance(given, Mapping):
        raise InputError(f"{source}: [sweep] {name!r} must be a list, or {{ low = …, high = … }}.")
    unknown = sorted(set(given) - set(KEYS))
    ends = given.get("low"), given.get("high")
    numbers = all(isinstance(end, int | float) and math.isfinite(end) for end in ends)
    if unknown or not numbers:
        wrong = f"no key {unknown[0]!r}" if unknown else "two numbers, low and high"
        raise InputError(f"{source}: [sweep] {name!r} takes {wrong}. Keys: {', '.join(KEYS)}.")
    axis = Range(name, **given)
    if not axis.low < axis.high or (axis.log and axis.low <= 0) or axis.points < 1:
        raise InputError(
            f"{source}: [sweep] {name!r}: low must lie below high, and above zero with log = true."
        )
    return axis
