"""Are the files of a run as they were written, and do its scores come out again?"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from hybridsde.forecast import SCORES
from hybridsde.project.project import DATA
from hybridsde.project.recordings import score_run
from hybridsde.run import Run
from hybridsde.store.folder import kept_file, machine, read_content, versions
from hybridsde.store.metadata import Scores

CLOSE = 1e-3
"""Scores may differ by this share where they are computed on another machine or version."""


@dataclass(frozen=True)
class Verification:
    """What was checked, and what came out."""

    files: tuple[str, ...]
    """Files whose hashes are right."""
    elsewhere: tuple[str, ...]
    """What differs from where the run was made, as `what: there, here`."""
    scores: pd.DataFrame | None
    """Stored and computed again, one row per state and score; None where none are stored."""
    agrees: bool

    @property
    def statement(self) -> str:
        """The result in a sentence."""
        if self.scores is None:
            return "The files are as they were written. The run holds no scores to compute again."
        if not self.agrees:
            return "The scores do NOT come out as they are stored."
        exact = bool((self.scores["stored"] == self.scores["again"]).all())
        how = "to the last digit" if exact else f"to {CLOSE:.1%}"
        return f"The files are as they were written, and the scores come out again {how}."


def verify(folder: Path, *, trust: bool = False) -> Verification:
    """Check every file of a run against its hash, and compute the stored scores again.

    An `InputError` names a file that was changed.
    """
    content = read_content(folder)
    names = tuple(sorted(content["sha256"]))
    for name in names:
        kept_file(folder, name, content)
    here = {**machine(), **versions()}
    there = {**content.get("machine", {}), **content["versions"]}
    elsewhere = tuple(
        f"{what}: {value}, here {here.get(what, 'unknown')}"
        for what, value in there.items()
        if value != here.get(what)
    )
    if "machine" not in content:
        elsewhere = (*elsewhere, "machine: not recorded")
    stored = Run.load(folder, trust=trust).metadata.test_scores
    if stored is None or not (folder / DATA).exists():
        return Verification(names, elsewhere, None, agrees=True)
    again, _ = score_run(folder, None, None, trust=trust)
    table = pd.DataFrame({"stored": _numbers(stored), "again": _numbers(again)})
    apart = np.abs(table["again"] - table["stored"]) / np.maximum(np.abs(table["stored"]), 1e-12)
    same = (table["stored"] == table["again"]) | table.isna().all(axis=1)
    agrees = bool((same | ((apart <= CLOSE) & bool(elsewhere))).all())
    return Verification(names, elsewhere, table, agrees)


def _numbers(scores: Scores) -> dict[tuple[str, str], float]:
    rows = {**scores.states, "overall": scores.overall}
    return {
        (state, name): np.nan if row.get(name) is None else float(row[name] or 0.0)
        for state, row in rows.items()
        for name in SCORES
        if name in row
    }
