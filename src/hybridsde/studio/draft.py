"""Settings that are edited on the page: read, put together, written, and checked."""

import math
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import tomli_w
from rich.text import Text

from hybridsde._errors import InputError, InputNotice
from hybridsde._files import read_text, write_whole
from hybridsde.data import raw_table
from hybridsde.data.files import find_files
from hybridsde.project.guessing import equation_names
from hybridsde.project.look import look
from hybridsde.project.project import Project
from hybridsde.project.settings import Settings
from hybridsde.project.settings_file import MOST_BYTES, check_settings, settings_of
from hybridsde.report.look import look_content
from hybridsde.report.overview import overview
from hybridsde.studio.cells import is_own, spoiled_cells
from hybridsde.studio.workspace import MARK

KEPT = (("data", "files"), ("data", "separator"), ("physics", "python"))
"""Keys that the page cannot set: it names no file, and no code."""
SAMPLES = 3
"""Cells of a column that are shown."""


def read_draft(path: Path) -> tuple[Settings, dict[str, Any]]:
    """A settings file, checked, and as the page holds it: only what it says."""
    settings = settings_of(read_text(path, most=MOST_BYTES).encode(), path)
    return settings, plain(settings)


def plain(settings: Settings) -> dict[str, Any]:
    """What differs from the defaults, for JSON: a limit that is infinite is null there."""
    content = settings.model_dump(exclude_defaults=True, exclude_none=True)
    limits = content.get("data", {}).get("bounds", {})
    for name, ends in limits.items():
        limits[name] = [end if math.isfinite(end) else None for end in ends]
    return content


def merged(stored: Mapping[str, Any], sent: Mapping[str, Any], source: str) -> Settings:
    """What the page sent, with the keys that only the file may hold."""
    content = {str(name): table for name, table in sent.items()}
    for table, key in KEPT:
        inside = content.get(table) or {}
        if not isinstance(inside, dict):
            raise InputError(f"{source}: [{table}] must be a table.")
        inside = {name: value for name, value in inside.items() if name != key}
        if key in stored.get(table, {}):
            inside[key] = stored[table][key]
        content[table] = inside
    limits = content["data"].get("bounds")
    if isinstance(limits, dict):
        content["data"]["bounds"] = {name: _limits(ends) for name, ends in limits.items()}
    return check_settings(content, source)


def _limits(ends: Any) -> Any:
    if not isinstance(ends, list) or len(ends) != 2:
        return ends
    low, high = ends
    return [-math.inf if low is None else low, math.inf if high is None else high]


def settings_text(settings: Settings) -> str:
    """A settings file that says the same."""
    content = settings.model_dump(exclude_defaults=True, exclude_none=True)
    return tomli_w.dumps(content, multiline_strings=False)


def save_draft(path: Path, settings: Settings) -> Path:
    """Write settings; what a person wrote stays, and ours come beside it. Returns where."""
    if not read_text(path, most=MOST_BYTES).startswith(MARK):
        path = _beside(path)
    write_whole(path, MARK + settings_text(settings))
    return path


def _beside(path: Path) -> Path:
    """Another name in the same folder: one that the studio wrote before, or a new one."""
    for number in range(2, 10_000):
        other = path.with_name(f"{path.stem}-{number}.toml")
        if not other.exists() or read_text(other, most=MOST_BYTES).startswith(MARK):
            return other
    raise InputError(f"{path.parent} holds too many settings files. Remove some.")


def open_project(path: Path) -> Project:
    """A project whose physics are equations; Python is never run from the studio."""
    settings, _ = read_draft(path)
    if settings.physics.python:
        raise InputError(
            f"The known physics is Python code ({settings.physics.python}), which the studio does "
            "not run. Fit it with the command line, or write equations."
        )
    return Project.open(path)


def check_draft(path: Path) -> dict[str, Any]:
    """What a fit would do, as sentences, and notices about the input."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", InputNotice)
        project = open_project(path)
    parts = [part.plain for part in overview(project) if isinstance(part, Text)]
    return {
        "sentences": [line for part in parts for line in part.splitlines() if line.strip()],
        "notices": list(dict.fromkeys(str(one.message) for one in said)),
        "parts": {name: len(data) for name, data in project.split.parts().items()},
    }


def show_table(path: Path) -> dict[str, Any]:
    """The columns of a project's table, and its recordings as a first look sees them."""
    settings, content = read_draft(path)
    names = [settings.data.files] if isinstance(settings.data.files, str) else settings.data.files
    frame = raw_table(find_files([path.parent / one for one in names])[0], settings.data.separator)
    found = {
        "settings": content,
        "columns": _columns(frame, settings),
        "own": is_own(path, settings),
        "look": None,
        "said": "",
        "spoiled": None,
    }
    try:
        found["look"] = look_content(look(path))
    except InputError as error:
        found |= {"said": shortened(error, path), "spoiled": spoiled_cells(path, settings)}
    return found


def _columns(frame: pd.DataFrame, settings: Settings) -> list[dict[str, Any]]:
    """Columns of a table, what they are or could be called in equations, and their first cells."""
    sources = [str(name) for name in frame.columns]
    used = {settings.columns.source(name): name for name in settings.columns.wanted}
    free = equation_names([one for one in sources if one not in used], used.values())
    return [
        {
            "name": used.get(source) or free[source],
            "column": source,
            "sample": [str(cell) for cell in frame[source].dropna()[:SAMPLES]],
        }
        for source in sources
    ]


def shortened(error: InputError, path: Path) -> str:
    """What is wrong, without the folder that everything on the page is in."""
    return str(error).replace(f"{path}: ", "").replace(f"{path.parent}{os.sep}", "")
