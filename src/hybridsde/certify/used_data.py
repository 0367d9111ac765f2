"""Which recordings had which part in a model, and whether others are among them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hybridsde._errors import InputError
from hybridsde._types import Bool
from hybridsde.data import Trajectories
from hybridsde.data.hashing import pack, series_hashes, step_hashes, unpack

POSTERIOR = "posterior"
"""The part that only moved the weights away from a prior that had not seen it."""
REASONS = {
    "train": "the model was fitted to it",
    "validation": "it chose the epoch that was kept",
    "calibration": "it set the spread of the forecasts",
    "reference": "it is also the reference for the constants of the loss",
    POSTERIOR: "the weights were fitted to it",
}


@dataclass(frozen=True)
class UsedData:
    """Hashes of all recordings that had a part in a model, by the part they had."""

    series: Mapping[str, Mapping[str, str]]
    steps: Mapping[str, str]
    origins: Mapping[str, Mapping[str, float]]
    """The latest time that each recording was used up to."""
    with_inputs: bool = True
    """Whether inputs make rows differ; they did not in older run folders."""

    @classmethod
    def of(cls, **parts: Trajectories | None) -> "UsedData":
        """A record of these recordings, by the part they had."""
        given = {name: data for name, data in parts.items() if data is not None}
        return cls(
            {name: series_hashes(data) for name, data in given.items()},
            {name: pack(step_hashes(data)) for name, data in given.items()},
            {name: _latest(data) for name, data in given.items()},
        )

    @classmethod
    def _older(cls, **parts: Trajectories) -> "UsedData":
        """As older run folders were written, so that both can be told together."""
        steps = {name: pack(step_hashes(data, inputs=False)) for name, data in parts.items()}
        return replace(cls.of(**parts), steps=steps, with_inputs=False)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "UsedData":
        """What `to_dict` wrote."""
        parts = (content["series"], content["steps"], content["origins"])
        return cls(*parts, bool(content.get("with_inputs", False)))

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "series": {name: dict(part) for name, part in self.series.items()},
            "steps": dict(self.steps),
            "origins": {name: dict(part) for name, part in self.origins.items()},
            "with_inputs": self.with_inputs,
        }

    @property
    def ids(self) -> set[str]:
        """Names of all recordings that had a part."""
        return {name for part in self.series.values() for name in part}

    def count(self, part: str) -> int:
        """How many recordings had this part."""
        return len(self.series.get(part, ()))

    def add(self, **parts: Trajectories) -> "UsedData":
        """With further recordings, beside those that had the same part."""
        more = UsedData.of(**parts) if self.with_inputs else UsedData._older(**parts)
        names = [*self.steps, *(name for name in more.steps if name not in self.steps)]
        steps = {
            name: pack([unpack(own.steps[name]) for own in (self, more) if name in own.steps])
            for name in names
        }
        later = {
            name: _later(self.origins.get(name, {}), more.origins.get(name, {})) for name in names
        }
        series = {
            name: {**self.series.get(name, {}), **more.series.get(name, {})} for name in names
        }
        return UsedData(series, steps, later, self.with_inputs)

    def which(self, data: Trajectories, part: str) -> Bool[np.ndarray, " series"]:
        """The recordings that had this part: two steps of theirs or more were used."""
        known = unpack(self.steps[part])
        return np.array(
            [
                len(own & known) >= min(2, max(1, len(own)))
                for own in step_hashes(data, inputs=self.with_inputs)
            ],
            dtype=bool,
        )

    def any_of(
        self, data: Trajectories, *, except_for: tuple[str, ...] = ()
    ) -> Bool[np.ndarray, " series"]:
        """The recordings that had any part, but for some."""
        found = [self.which(data, part) for part in self.steps if part not in except_for]
        return np.any(found, 0) if found else np.zeros(len(data), bool)

    def require_unused(
        self, data: Trajectories, *, except_for: tuple[str, ...] = (), set_apart: bool = True
    ) -> None:
        """An `InputError` that says which recording had which part, and what to do instead.

        `set_apart` says whether `fit_certified` is something that could be done.
        """
        for part in self.steps:
            if part in except_for:
                continue
            found = np.flatnonzero(self.which(data, part))
            if found.size:
                raise InputError(
                    f"{found.size} of {len(data)} trajectories cannot be certified on: "
                    f"{data.ids[found[0]]!r} was seen before ({self._reason(part)}). "
                    f"{self._remedy(except_for, set_apart)}"
                )

    def _reason(self, part: str) -> str:
        if part == "train" and POSTERIOR in self.steps:
            return "the prior, the scales and the noise were fitted to it"
        return REASONS[part]

    def _remedy(self, except_for: tuple[str, ...], set_apart: bool) -> str:
        how = "data" if except_for else 'data, bound="holdout"'
        if POSTERIOR in self.steps:
            return f"Certify on the others: `run.certifiable({how})` picks them."
        apart = ", or fit with `fit_certified`, which sets some apart" if set_apart else ""
        return f"Certify on recordings that the fit did not use{apart}."

    def require_no_windows(self, data: Trajectories, dependence: str) -> None:
        """Windows of a recording that the fit used: dependent on it, or in its past."""
        for name, origin, start in zip(data.ids, data.origins, data.times[:, 0], strict=True):
            for part, used in self.origins.items():
                if part == POSTERIOR or origin not in used:
                    continue
                if dependence == "iid" and name != origin:
                    raise InputError(
                        f"{name!r} is a window of {origin!r}, of which other windows were used "
                        f"({self._reason(part)}). They are not independent. Certify on other "
                        'recordings, or say dependence="sequential". If it is another recording, '
                        "give it another id."
                    )
                if dependence == "sequential" and start < used[origin]:
                    raise InputError(
                        f"{name!r} begins at {start:g}, but {origin!r} was used up to "
                        f"{used[origin]:g} ({self._reason(part)}). What is certified must come "
                        "later. If it is another recording, give it another id."
                    )


def _latest(data: Trajectories) -> dict[str, float]:
    found: dict[str, float] = {}
    for origin, end in zip(data.origins, data.ends, strict=True):
        found[origin] = max(float(end), found.get(origin, -np.inf))
    return found


def _later(one: Mapping[str, float], two: Mapping[str, float]) -> dict[str, float]:
    names = {**one, **two}
    return {n: max(one.get(n, -np.inf), two.get(n, -np.inf)) for n in names}


def check_dependence(data: Trajectories, dependence: str) -> None:
    """Windows of one recording are not independent, and must not overlap."""
    if dependence not in ("iid", "sequential"):
        raise InputError(f"`dependence` must be iid or sequential, but is {dependence!r}.")
    origins = np.array(data.origins)
    names, counts = np.unique(origins, return_counts=True)
    most = str(names[counts.argmax()])
    if dependence == "iid" and counts.max() > 1:
        raise InputError(
            f"{counts.max()} of the trajectories are windows of one recording, "
            f"{most!r}. They are not independent, and a bound for independent "
            "trajectories would be false. Give one window of each recording, or say "
            'dependence="sequential" for a weaker promise about these very windows.'
        )
    _check_copies(data)
    for name in names:
        rows = np.flatnonzero(origins == name)
        starts, ends = data.times[rows, 0], data.ends[rows]
        order = np.argsort(starts)
        if np.any(starts[order][1:] < ends[order][:-1]):
            raise InputError(
                f"Windows of {name!r} overlap, so that targets are shared. Cut windows that begin "
                "no earlier than the one before ends."
            )


def _check_copies(data: Trajectories) -> None:
    """No two trajectories share rows, whatever their names."""
    owner: dict[bytes, int] = {}
    for row, steps in enumerate(step_hashes(data)):
        shared = [owner[step] for step in steps if step in owner]
        if len(shared) >= min(2, max(1, len(steps))):
            raise InputError(
                f"{data.ids[row]!r} and {data.ids[shared[0]]!r} share rows: they are copies or "
                "overlapping windows of one recording, so they are not independent. Keep one."
            )
        owner.update(dict.fromkeys(steps, row))
