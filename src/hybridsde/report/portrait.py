"""The phase portrait of a system of two states: where its drift leads from every place."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from hybridsde.data import Trajectories
from hybridsde.project.split import Split
from hybridsde.report import panels
from hybridsde.report.bands import plain
from hybridsde.report.drift import Hybrid, rates_at

PLACES = 13
"""Along each axis."""
MOST_SEEN = 1500
"""Recorded states that are drawn."""
MOST_PATHS = 6
LEARNED, KNOWN, TOGETHER = "Learned part", "Known part", "Together"
SHADES = {LEARNED: "--learned", KNOWN: "--known", TOGETHER: "--together"}
"""Colours of the page, which follow its theme."""
COLOURS = {LEARNED: panels.ORANGE, KNOWN: panels.BLUE, TOGETHER: panels.GREEN}


@dataclass(frozen=True)
class Portrait:
    """Drifts on a grid over the recorded states, in the units of the data per time."""

    names: tuple[str, str]
    places: np.ndarray
    drifts: dict[str, np.ndarray]
    """By the part of the drift; of what is learned, the mean over draws."""
    seen: np.ndarray
    paths: tuple[np.ndarray, ...]
    """Recordings that were held out, or else trained on."""

    @classmethod
    def of(cls, fitted: Hybrid, split: Split) -> "Portrait | None":
        """None unless there are two states, all measured, and no inputs."""
        states, data = tuple(fitted.spec.states), split.train
        points = data.values[data.observed.all(-1)]
        measured = len(data.states) == len(states) and len(points) > 0
        if len(states) != 2 or not measured or fitted.spec.inputs:
            return None
        ends = np.quantile(points, [0.01, 0.99], 0)
        axes = [np.linspace(ends[0, k], ends[1, k], PLACES) for k in range(2)]
        grid = np.stack(np.meshgrid(*axes), -1).reshape(-1, 2)
        learned, known = rates_at(fitted, grid, data)
        drifts = {LEARNED: learned.mean(0)} if fitted.spec.pieces else {}
        if np.any(known):
            drifts |= {KNOWN: known, TOGETHER: learned.mean(0) + known}
        shown = split.test if split.test is not None else split.train
        thin = points[:: max(1, len(points) // MOST_SEEN)]
        return cls((states[0], states[1]), grid, drifts, thin, tuple(_paths(shown)))

    def pictures(self) -> list[str]:
        """A small picture of every part, for pages without scripts."""
        flat = (self.places[:, 0], self.places[:, 1])
        return [
            panels.field(flat, drift, self.seen, self.names, part, COLOURS[part])
            for part, drift in self.drifts.items()
        ]

    def content(self) -> dict[str, Any]:
        """For the page: each drift as a line from its place, nearly all shorter than a gap.

        Lines are measured in shares of the range of each state, so that they can be compared.
        """
        spread = np.ptp(self.places, axis=0)
        parts = {}
        for part, drift in self.drifts.items():
            length = np.linalg.norm(drift / spread, axis=1)
            reach = 1.0 / (PLACES - 1) / max(float(np.quantile(length, 0.95)), 1e-12)
            ends = self.places + drift * min(reach, 1e12)
            parts[part] = {"ends": plain(ends.T), "rates": plain(drift.T), "shade": SHADES[part]}
        return {
            "names": list(self.names),
            "places": plain(self.places.T),
            "parts": parts,
            "paths": [plain(path.T) for path in self.paths],
        }


def _paths(data: Trajectories) -> list[np.ndarray]:
    """Recordings as lines in the plane."""
    found = []
    for row in range(min(MOST_PATHS, len(data))):
        last = int(data.lengths[row])
        found.append(data.values[row, :last][data.observed[row, :last].all(-1)])
    return found
