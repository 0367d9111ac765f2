"""What trials of a sweep are trained and scored on, and when one is better beyond doubt.

The doubt is that of few recordings: another record of the same system would give other scores. So
a trial is judged by paired differences of scores over *units*, which are recordings that it was not
trained on, or blocks of them where there are few.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from hybridsde._errors import InputError
from hybridsde._types import Bool, Float
from hybridsde.data import Trajectories
from hybridsde.project.settings import Settings, part_of
from hybridsde.project.split import GAP, Split
from hybridsde.run.choice import LEAST_ROWS

FOLDS = 4
"""Parts that take turns in being scored, where validation recordings are not named."""
ENOUGH = 8
"""So many validation recordings need no folds."""
BLOCKS = 4
"""Units at least: fewer recordings are cut into blocks of time."""
CONFIDENCE = 0.975
"""One-sided, of the test that a trial is better than the settings as they are."""
Units = Mapping[str, float]
"""Scores by unit."""


@dataclass(frozen=True)
class Fold:
    """What trials are trained on, and what they are scored on. No test recordings are here."""

    train: Trajectories
    validation: Trajectories | None
    """What chooses the epoch, as in a fit; None where the scored part must stay unseen."""
    scored: Trajectories


def folds_of(settings: Settings, data: Trajectories) -> tuple[Fold, ...]:
    """The validation recordings where they are named or many, or else parts that take turns.

    Four parts of the recordings; of fewer than four, a quarter of the rows of each, with a gap to
    the rows that are trained on; of short ones, each recording once.
    """
    parts = (part_of(settings.data.test), part_of(settings.data.validation))
    split = Split.of(data, parts[0] or 0, parts[1], seed=settings.train.seed)
    named = settings.data.validation not in (None, 0)
    chosen = split.validation
    if chosen is not None and (named or len(set(chosen.origins)) >= ENOUGH):
        return (Fold(split.train, chosen, chosen),)
    rest = split.train if chosen is None else split.train.join(chosen)
    recordings = sorted(set(rest.origins))
    if len(recordings) >= FOLDS:
        order = np.random.default_rng(settings.train.seed).permutation(len(recordings))
        groups = [[recordings[i] for i in order[k::FOLDS]] for k in range(FOLDS)]
        return tuple(_without(rest, group, chosen is not None) for group in groups)
    if rest.lengths.min() >= FOLDS * LEAST_ROWS:
        return tuple(_without_block(rest, block) for block in range(FOLDS))
    if len(recordings) > 1:
        return tuple(_without(rest, [one], keeps=False) for one in recordings)
    raise InputError(
        f"A sweep needs recordings to judge on, but the only one has fewer than "
        f"{FOLDS * LEAST_ROWS} rows. Set data.validation, or give more recordings."
    )


def _without(data: Trajectories, recordings: Sequence[str], keeps: bool) -> Fold:
    inside = np.isin(data.origins, list(recordings))
    train, scored = data.take(~inside), data.take(inside)
    return Fold(train, scored if keeps else None, scored)


def _without_block(data: Trajectories, block: int) -> Fold:
    """One of equal blocks of time of every recording is scored; neighbours of it are left out."""
    left, scored = [], []
    for series, rows in enumerate(map(int, data.lengths)):
        ends = np.linspace(0, rows, FOLDS + 1).round().astype(int)
        first, last = int(ends[block]), int(ends[block + 1])
        gap = max(1, round(GAP * rows))
        scored.append((series, first, last))
        around = ((series, 0, first - gap), (series, last + gap, rows))
        left += [cut for cut in around if cut[2] - cut[1] > 1]
    return Fold(data.cut(left), None, data.cut(scored))


def blocks_in(folds: Sequence[Fold]) -> int:
    """Into how many blocks of time every scored recording is cut."""
    recordings = sum(len(set(fold.scored.origins)) for fold in folds)
    return -(-BLOCKS // recordings)


def row_losses(
    crps: Float[np.ndarray, "window time obs"],
    observed: Bool[np.ndarray, "window time obs"],
    spread: Float[np.ndarray, " obs"],
) -> Float[np.ndarray, "window time"]:
    """CRPS of every row in spreads of the data; not a number where nothing was measured.

    It is infinite where something was measured and the forecast is no number.
    """
    scaled = np.where(np.isfinite(crps), crps / spread, np.inf)
    with np.errstate(invalid="ignore"):
        return np.sum(scaled, -1, where=observed) / observed.sum(-1)


def units_of(
    losses: Float[np.ndarray, "window time"], origins: Sequence[str], fold: int, blocks: int
) -> dict[str, float]:
    """Mean losses by recording and block of it; windows of a recording follow each other."""
    found = {}
    for name in dict.fromkeys(origins):
        rows = losses[[origin == name for origin in origins]].ravel()
        rows = rows[~np.isnan(rows)]
        for number, part in enumerate(np.array_split(rows, blocks)):
            if part.size:
                found[f"{fold}/{name}/{number}"] = float(part.mean())
    return found


@dataclass(frozen=True)
class Gain:
    """By how much the score of a trial is below that of the settings as they are."""

    mean: float
    error: float
    """Its standard error: over units, and over seeds where there are several."""
    units: int

    @property
    def certain(self) -> bool:
        """Whether it is above zero beyond the doubt that so few units leave (Student's t)."""
        if self.units < 2 or not math.isfinite(self.mean):
            return False
        return bool(self.mean > stdtrit(self.units - 1, CONFIDENCE) * self.error)


def gain(before: Sequence[Units], after: Sequence[Units]) -> Gain | None:
    """Of paired scores, a mapping for every seed; None where they are not of the same units."""
    if not before or len(before) != len(after) or not before[0]:
        return None
    names = list(before[0])
    if any(set(one) != set(names) for one in (*before, *after)):
        return None
    rows = np.array(
        [[old[name] - new[name] for name in names] for old, new in zip(before, after, strict=True)]
    )
    seeds, count = rows.shape
    variance = rows.mean(0).var(ddof=1) / count if count > 1 else math.inf
    if seeds > 1:
        variance += rows.mean(1).var(ddof=1) / seeds
    return Gain(float(rows.mean()), math.sqrt(variance), count)
