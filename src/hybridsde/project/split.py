"""Which recordings are trained on, which choose the epoch, and which are kept for scores."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from hybridsde._errors import InputError
from hybridsde.data import Columns, Trajectories, from_frame, to_frame

ID, TIME, PART, ORIGIN = "series id", "series time", "series part", "recording"
"""Columns of the saved table; names of states are single words."""
PARTS = ("train", "validation", "test")
FEWEST = 4
"""With fewer training recordings none is spared for validation."""
SPLIT = 7919
"""Added to the seed for the second division, so that it does not repeat the first."""


@dataclass(frozen=True)
class Split:
    """Three disjoint parts; the last two may be absent."""

    train: Trajectories
    validation: Trajectories | None
    test: Trajectories | None

    @classmethod
    def of(cls, data: Trajectories, test: float, validation: float, *, seed: int) -> "Split":
        """By recording; a single recording is cut in time, its end kept for the test."""
        if len(data) == 1:
            return cls._in_time(data, test)
        rest, kept = (data, None) if test == 0 else data.split(1 - test, seed=seed)
        if validation == 0 or len(rest) < FEWEST:
            return cls(rest, None, kept)
        rest, chosen = rest.split(1 - validation, seed=seed + SPLIT)
        return cls(rest, chosen, kept)

    @classmethod
    def _in_time(cls, data: Trajectories, test: float) -> "Split":
        length = int(data.lengths[0])
        end = int(np.clip(round((1 - test) * length), 2, length - 2 if test else length))
        if length < 4:
            raise InputError(
                f"The only recording has {length} times, too few to learn from and to test on."
            )
        train = data.cut([(0, 0, end)])
        return cls(train, None, data.cut([(0, end, length)]) if test else None)

    @property
    def whole(self) -> Trajectories:
        """All recordings."""
        first, *others = self.parts().values()
        for data in others:
            first = first.join(data)
        return first

    def parts(self) -> dict[str, Trajectories]:
        """The parts that there are, by name."""
        found = {name: getattr(self, name) for name in PARTS}
        return {name: data for name, data in found.items() if data is not None}

    def to_frame(self) -> pd.DataFrame:
        """All recordings in one table with a column that says which part each belongs to."""
        frames = []
        for name, data in self.parts().items():
            origins = dict(zip(data.ids, data.origins, strict=True))
            frame = to_frame(data, id=ID, time=TIME)
            frames.append(
                frame.assign(**{PART: name, ORIGIN: [origins[name] for name in frame[ID]]})
            )
        return pd.concat(frames, ignore_index=True)


def read_split(path: Path, states: tuple[str, ...], inputs: tuple[str, ...]) -> Split:
    """The inverse of `Split.to_frame`, from a CSV file."""
    columns = Columns(states, TIME, ID, inputs)
    parts = {}
    try:
        frame = pd.read_csv(path, dtype=str)  # numbers are read as those of a user are: exactly
        if ORIGIN not in frame:  # as older versions wrote it
            frame[ORIGIN] = frame[ID]
        origins = dict(zip(frame[ID], frame[ORIGIN], strict=True))
        for name in PARTS:
            rows = frame.loc[frame[PART] == name]
            found = from_frame(rows, columns, strict=False) if len(rows) else None
            parts[name] = found and replace(found, origins=tuple(origins[i] for i in found.ids))
        return Split(**parts)
    except (OSError, KeyError, ValueError, pd.errors.ParserError) as error:
        raise InputError(f"{path} is damaged ({error}). Fit again.") from None
