"""What a model has seen, and whether recordings are among it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hybridsde._errors import InputError
from hybridsde._types import Bool
from hybridsde.data import Trajectories
from hybridsde.data.prints import pack, series_prints, step_prints, unpack

POSTERIOR = "posterior"
"""The part that only moved the weights away from a prior that had not seen it."""
REASONS = {
    "train": "the model was fitted to it",
    "validation": "it chose the epoch that was kept",
    "calibration": "it set the spread of the forecasts",
    "reference": "it is also the reference for the constants of the loss",
    POSTERIOR: "the weights were fitted to it",
}
SHARE = 0.1
"""A recording of which this share of steps was seen counts as seen."""


@dataclass(frozen=True)
class Seen:
    """Hashes of all recordings that had a part in a model, by the part they had."""

    series: Mapping[str, Mapping[str, str]]
    steps: Mapping[str, str]

    @classmethod
    def of(cls, **parts: Trajectories | None) -> "Seen":
        """What these recordings leave behind."""
        given = {name: data for name, data in parts.items() if data is not None}
        return cls(
            {name: series_prints(data) for name, data in given.items()},
            {name: pack(step_prints(data)) for name, data in given.items()},
        )

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> "Seen":
        """What a run remembers."""
        if "seen_steps" not in facts:
            raise InputError(
                "This run does not say what it has seen, because an older version wrote it. Fit "
                "again to certify."
            )
        return cls(facts["seen"], facts["seen_steps"])

    def facts(self) -> dict[str, Any]:
        """For a run to remember."""
        return {"seen": dict(self.series), "seen_steps": dict(self.steps)}

    def add(self, **parts: Trajectories) -> "Seen":
        """With further parts."""
        more = Seen.of(**parts)
        return Seen({**self.series, **more.series}, {**self.steps, **more.steps})

    def which(self, data: Trajectories, part: str) -> Bool[np.ndarray, " series"]:
        """The recordings that had this part, as a whole or in pieces."""
        known = unpack(self.steps[part])
        return np.array(
            [len(own & known) > SHARE * len(own) for own in step_prints(data)], dtype=bool
        )

    def any_of(
        self, data: Trajectories, *, but: tuple[str, ...] = ()
    ) -> Bool[np.ndarray, " series"]:
        """The recordings that had any part, but for some."""
        found = [self.which(data, part) for part in self.steps if part not in but]
        return np.any(found, 0) if found else np.zeros(len(data), bool)

    def refuse(self, data: Trajectories, *, but: tuple[str, ...] = ()) -> None:
        """An `InputError` that says which recording had which part, and what to do instead."""
        for part in self.steps:
            if part in but:
                continue
            found = np.flatnonzero(self.which(data, part))
            if found.size:
                reason = REASONS[part]
                if part == "train" and POSTERIOR in self.steps:
                    reason = "the prior, the scales and the noise were fitted to it"
                how = "data" if but else 'data, bound="holdout"'
                remedy = (
                    f"Certify on the others: `run.certifiable({how})` picks them."
                    if POSTERIOR in self.steps
                    else "Certify on recordings that the fit did not use, or fit with "
                    "`fit_certified`, which sets some apart."
                )
                raise InputError(
                    f"{found.size} of {len(data)} trajectories cannot be certified on: "
                    f"{data.ids[found[0]]!r} was seen before ({reason}). {remedy}"
                )


def check_dependence(data: Trajectories, dependence: str) -> None:
    """Windows of one recording are not independent, and must not overlap."""
    if dependence not in ("iid", "sequential"):
        raise ValueError(f"`dependence` must be iid or sequential, but is {dependence!r}.")
    origins = np.array(data.origins)
    names, counts = np.unique(origins, return_counts=True)
    if dependence == "iid" and counts.max() > 1:
        raise InputError(
            f"{counts.max()} of the trajectories are windows of one recording, "
            f"{names[counts.argmax()]!r}. They are not independent, and a bound for independent "
            "trajectories would be false. Give one window of each recording, or say "
            'dependence="sequential" for a weaker promise about these very windows.'
        )
    for name in names:
        rows = np.flatnonzero(origins == name)
        starts = data.times[rows, 0]
        ends = data.times[rows, data.lengths[rows] - 1]
        order = np.argsort(starts)
        if np.any(starts[order][1:] < ends[order][:-1] - 1e-9):
            raise InputError(
                f"Windows of {name!r} overlap, so that targets are shared. Cut windows that begin "
                "no earlier than the one before ends."
            )
