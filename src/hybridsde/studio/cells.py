"""Cells of a table that hold words where numbers belong: shown, and left out where asked for.

A table that was dropped on the page is a copy, which the studio may change; others it leaves alone.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hybridsde._errors import InputError
from hybridsde._files import read_text, write_whole
from hybridsde.data import raw_table
from hybridsde.project.guessing import are_words
from hybridsde.project.settings import Settings
from hybridsde.project.settings_file import MOST_BYTES
from hybridsde.studio.workspace import MARK, TABLE

MOST_NAMED = 5
"""Cells that are named."""


def spoiled_cells(path: Path, settings: Settings) -> dict[str, Any]:
    """How many cells of states and inputs hold words, the first of them, and whether to blank."""
    if not _is_own(path, settings):
        return {"count": 0, "first": []}
    frame = raw_table(path.parent / TABLE, settings.data.separator)
    found = [
        {"row": int(frame.index[row]) + 1, "column": name, "cell": str(frame[name].iloc[row])[:40]}
        for name in _measured(frame, settings)
        for row in np.flatnonzero(are_words(frame, name))
    ]
    return {"count": len(found), "first": found[:MOST_NAMED]}


def blank_cells(path: Path, settings: Settings) -> int:
    """Leave these cells empty in the studio's copy of the table; returns how many they were."""
    if not _is_own(path, settings):
        raise InputError("This table is not the studio's own copy. Correct it where it is.")
    table = path.parent / TABLE
    frame = raw_table(table, settings.data.separator)
    total = 0
    for name in _measured(frame, settings):
        words = are_words(frame, name)
        total += int(words.sum())
        frame[name] = frame[name].mask(words)
    write_whole(table, frame.to_csv(index=False, sep=settings.data.separator))
    return total


def _measured(frame: pd.DataFrame, settings: Settings) -> list[str]:
    """Columns that should hold numbers; a column without any is another mistake."""
    data = settings.data
    names = [data.value] if data.value else [*data.states, *data.inputs]
    there = [name for name in names if name in frame.columns]
    return [name for name in there if not are_words(frame, name).all()]


def _is_own(path: Path, settings: Settings) -> bool:
    """Whether the studio wrote both the settings and the table that they name."""
    ours = read_text(path, most=MOST_BYTES).startswith(MARK)
    return ours and settings.data.files == TABLE and (path.parent / TABLE).is_file()
