"""Which recordings are trained on, which choose the epoch, and which are kept for scores."""

import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from hybridsde._errors import InputError, notice, suggest
from hybridsde.data import Columns, Trajectories, from_frame, to_frame

ID, TIME, PART, ORIGIN = "series id", "series time", "series part", "recording"
"""Columns of the saved table; names of states are single words."""
PARTS = ("train", "validation", "test")
FEWEST = 4
"""With fewer recordings than this to train on, validation is a block of rows of each."""
VALIDATION = 0.15
"""The share of the recordings that chooses the epoch, unless it is named."""
BLOCK_ROWS = 200
"""A recording is long enough to spare a block for validation from this many rows on."""
GAP = 0.02
"""Rows between training and a block of the same recording that are left out, as a share."""
SPLIT = 7919
"""Added to the seed for the second division, so that it does not repeat the first."""


@dataclass(frozen=True)
class Period:
    """A block of time of every recording: from `start` to `end`, both included."""

    start: float = -np.inf
    end: float = np.inf

    def rows(self, times: np.ndarray) -> np.ndarray:
        """Positions of the rows inside."""
        return np.flatnonzero((times >= self.start) & (times <= self.end))


Part = float | int | Sequence[str] | Period
"""Who belongs to a part: a share of the recordings, their names, or a period of all of them."""


@dataclass(frozen=True)
class Split:
    """Three disjoint parts; the last two may be absent."""

    train: Trajectories
    validation: Trajectories | None
    test: Trajectories | None

    @classmethod
    def of(
        cls,
        data: Trajectories,
        test: Part,
        validation: Part | None = None,
        *,
        seed: int,
        chooses: bool = True,
    ) -> "Split":
        """By share, name or period; a single recording is cut in time, its end kept for the test.

        A share for validation of fewer than four recordings is a block at the end of each, with a
        gap before it, where they are long enough. Left open, validation is a share of four
        recordings or more, and of fewer none: a block of a few is missed more than it helps. None
        is kept for a fit that `chooses` nothing.
        """
        rest, kept = _divided(data, test, "test", seed=seed)
        if validation is None:
            validation = VALIDATION if chooses and len(set(rest.origins)) >= FEWEST else 0
        if isinstance(validation, float | int) and len(set(rest.origins)) < FEWEST:
            rest, chosen = _end_blocks(rest, float(validation))
        else:
            rest, chosen = _divided(rest, validation, "validation", seed=seed + SPLIT)
        return cls(rest, chosen, kept)

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


def _divided(
    data: Trajectories, part: Part, what: str, *, seed: int
) -> tuple[Trajectories, Trajectories | None]:
    """What is left, and the part that is asked for."""
    if isinstance(part, Period):
        return _by_period(data, part, what)
    if not isinstance(part, float | int):
        return _by_name(data, part, what)
    if part == 0:
        return data, None
    if len(data) == 1:
        return _in_time(data, part)
    return data.split(1 - part, seed=seed)


def _by_name(
    data: Trajectories, names: Sequence[str], what: str
) -> tuple[Trajectories, Trajectories | None]:
    recordings = list(dict.fromkeys(data.origins))  # a period may have been taken out of each
    for name in names:
        if name not in recordings:
            shown = ", ".join(recordings[:8]) + (" …" if len(recordings) > 8 else "")
            raise InputError(
                f"data.{what} names {name!r}, but the recordings are {shown}."
                + suggest(name, recordings)
            )
    inside = np.isin(data.origins, list(names))
    if inside.all():
        raise InputError(f"data.{what} names every recording: none is left to learn from.")
    return data.take(~inside), data.take(inside) if inside.any() else None


def _by_period(
    data: Trajectories, period: Period, what: str
) -> tuple[Trajectories, Trajectories | None]:
    """Rows inside the period, and the rows before and after it."""
    kept, left = [], []
    for series, length in enumerate(map(int, data.lengths)):
        rows = period.rows(data.times[series, :length])
        if not rows.size:
            left.append((series, 0, length))
            continue
        first, last = int(rows[0]), int(rows[-1]) + 1
        kept.append((series, first, last))
        left += [cut for cut in ((series, 0, first), (series, last, length)) if cut[2] - cut[1] > 1]
    kept = [cut for cut in kept if cut[2] - cut[1] > 1]
    if not kept or not left:
        where = "no recording has two rows" if not kept else "nothing is left to learn from"
        raise InputError(
            f"data.{what} is the time from {period.start:g} to {period.end:g}, but {where} "
            f"{'in it' if not kept else 'outside it'}. Times go from {data.times.min():g} to "
            f"{data.times.max():g}."
        )
    return data.cut(left), data.cut(kept)


def _in_time(data: Trajectories, test: float) -> tuple[Trajectories, Trajectories]:
    length = int(data.lengths[0])
    end = int(np.clip(round((1 - test) * length), 2, max(2, length - 2)))
    if length < 4:
        raise InputError(
            f"The only recording has {length} times, too few to learn from and to test on."
        )
    return data.cut([(0, 0, end)]), data.cut([(0, end, length)])


def _end_blocks(data: Trajectories, share: float) -> tuple[Trajectories, Trajectories | None]:
    """The end of each long recording, after a gap, so that neighbours do not tell of each other."""
    if share == 0:
        return data, None
    if data.lengths.max() < BLOCK_ROWS:
        count = len(set(data.origins))
        notice(
            f"data.validation is {share:g}, but there "
            f"{'is 1 recording' if count == 1 else f'are {count} recordings'} to learn from, none "
            f"of {BLOCK_ROWS} rows or more: nothing is set apart. Name a recording, or a period."
        )
        return data, None
    left, kept = [], []
    for series, length in enumerate(map(int, data.lengths)):
        if length < BLOCK_ROWS:
            left.append((series, 0, length))
            continue
        first = length - round(share * length)
        left.append((series, 0, first - max(1, round(GAP * length))))
        kept.append((series, first, length))
    return data.cut(left), data.cut(kept)


def read_split(
    content: bytes, path: Path, states: tuple[str, ...], inputs: tuple[str, ...]
) -> Split:
    """The inverse of `Split.to_frame`, from the content of a CSV file."""
    columns = Columns(states, TIME, ID, inputs)
    parts = {}
    try:
        frame = pd.read_csv(
            io.BytesIO(content), dtype=str
        )  # numbers are read as those of a user are: exactly
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
