"""Cells of a table that hold no measurement: words where numbers belong, and faults of a sensor.

Words are listed as missing in the settings. Other cells can be emptied in a table that was dropped
on the page, because that is a copy; tables of somebody else are left alone.
"""

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hybridsde._errors import InputError
from hybridsde._files import read_text, write_whole
from hybridsde.data import find_files, raw_table
from hybridsde.data.files import without_comments
from hybridsde.project.guessing import are_words
from hybridsde.project.settings import Settings
from hybridsde.project.settings_file import MOST_BYTES
from hybridsde.studio.workspace import MARK, TABLE

MOST_NAMED = 5
"""Cells that are named."""


def spoiled_cells(path: Path, settings: Settings) -> dict[str, Any]:
    """How many cells of states and inputs hold words, the first of them, and all those words."""
    columns, names = settings.columns, settings.data.files
    table = find_files(
        [path.parent / one for one in ([names] if isinstance(names, str) else names)]
    )
    frame = raw_table(table[0], settings.data.separator)
    measured = [columns.value] if columns.value else [*columns.states, *columns.inputs]
    count, first, words = 0, [], {}
    for source in (columns.source(one) for one in measured if one):
        if source not in frame.columns:
            continue
        wrong = are_words(frame, source, columns)
        if wrong.all():  # a column of words is another mistake
            continue
        count += int(wrong.sum())
        cells = frame[source].astype(str).str.strip()
        words |= dict.fromkeys(cells[wrong])
        first += [
            {"line": int(frame.index[row]), "column": source, "cell": cells.iloc[row][:40]}
            for row in np.flatnonzero(wrong)
        ]
    return {"count": count, "first": first[:MOST_NAMED], "words": list(words)}


def is_own(path: Path, settings: Settings) -> bool:
    """Whether the studio wrote both the settings and the table that they name."""
    ours = read_text(path, most=MOST_BYTES).startswith(MARK)
    return ours and settings.data.files == TABLE and (path.parent / TABLE).is_file()


def empty_cells(path: Path, settings: Settings, state: str, lines: Sequence[int]) -> int:
    """Empty the cells of a state on these lines of the studio's copy; returns how many they were.

    All other lines stay as they are, so that a line has the same number as in the user's own file.
    """
    if not is_own(path, settings):
        raise InputError("This table is not the studio's own copy. Empty the cells where it is.")
    columns, separator = settings.columns, settings.data.separator
    table, wanted = path.parent / TABLE, set(lines)
    text = read_text(table).replace("\r\n", "\n").replace("\r", "\n")
    whole, (below, skipped) = text.split("\n"), without_comments(text)
    rows = csv.reader(io.StringIO(below), delimiter=separator, skipinitialspace=True)
    header = [name.strip() for name in next(rows)]
    source = columns.value or columns.source(state)
    if source not in header:
        raise InputError(f"The table has no column {source!r}. Reload the page.")
    place, before, count = header.index(source), rows.line_num, 0
    for row in rows:
        begin, before = skipped + before, rows.line_num
        if begin + 1 not in wanted or len(row) <= place:
            continue
        row[place] = ""
        written = io.StringIO()
        csv.writer(written, delimiter=separator, lineterminator="").writerow(row)
        whole[begin : skipped + before] = written.getvalue().split("\n")
        count += 1
    write_whole(table, "\n".join(whole))
    return count
