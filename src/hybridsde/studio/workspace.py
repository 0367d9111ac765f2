"""The folder that the studio works in: settings files and run folders, as commands leave them."""

import json
import os
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hybridsde._errors import InputError
from hybridsde._files import make_folder, read_text, read_whole, write_whole
from hybridsde.project.example import write_example
from hybridsde.project.settings_file import MOST_BYTES
from hybridsde.project.settings_template import settings_template
from hybridsde.store.folder import CHECKPOINT, RUN, UNFINISHED

DEEPEST = 4
"""Folders inside each other that are looked into."""
MOST_FOLDERS = 3000
SETTINGS, TABLE = "settings.toml", "recordings.csv"
MARK = "# Written by hybridsde studio.\n"
"""First line of settings that the studio may write again; those of a person are left alone."""

SNAPSHOT = "# Settings of one run of hybridsde studio.\n"
"""First line of settings that are kept beside a run, and are no project of their own."""


@dataclass(frozen=True)
class Workspace:
    """A folder, and everything in it by names relative to it.

    The page never names a path: what it says is looked up among what was found here.
    """

    root: Path

    def settings(self) -> list[str]:
        """Settings files, without those that belong to one run."""
        found = []
        for folder in self._folders():
            if _begun(folder):  # its settings are a copy
                continue
            for path in sorted(folder.glob("*.toml")):
                if (
                    not path.is_symlink()
                    and not _begun(path.with_suffix(""))
                    and _is_settings(path)
                ):
                    found.append(self.name_of(path))
        return found

    def runs(self) -> list[str]:
        """Folders of fits, finished or not, the newest first."""
        found = [folder for folder in self._folders() if _begun(folder)]
        return [self.name_of(one) for one in sorted(found, key=_moment, reverse=True)]

    def settings_path(self, name: str) -> Path:
        """The file of this name; an `InputError` where there is none."""
        return self._known(name, self.settings(), "settings file")

    def run_path(self, name: str) -> Path:
        """The folder of this name; an `InputError` where there is none."""
        return self._known(name, self.runs(), "run")

    def name_of(self, path: Path) -> str:
        """As the page calls it."""
        return path.relative_to(self.root).as_posix()

    def add_table(self, label: str, content: bytes) -> str:
        """Keep a table in a new folder, with guessed settings; returns their name.

        Of the name of the file only letters and digits are used, for the name of the folder. What
        cannot be read leaves nothing behind.
        """
        folder = self._fresh(slug(Path(label).stem))
        make_folder(folder)
        table = folder / TABLE
        try:
            write_whole(table, content)
            write_whole(folder / SETTINGS, MARK + settings_template(table, folder))
        except InputError:
            table.unlink(missing_ok=True)
            folder.rmdir()
            raise
        return self.name_of(folder / SETTINGS)

    def add_example(self) -> str:
        """The built-in recordings of predators and prey; returns the name of their settings."""
        path = write_example(self._fresh("predators"))
        write_whole(path, MARK + read_text(path))
        return self.name_of(path)

    def next_run(self, settings: Path) -> Path:
        """A folder for another run of a project, which nothing has used."""
        taken = lambda path: path.exists() or path.with_suffix(".toml").exists()  # noqa: E731
        numbered = (settings.parent / f"run-{number}" for number in range(1, 10_000))
        return next(path for path in numbered if not taken(path))

    def _fresh(self, name: str) -> Path:
        candidates = [name, *(f"{name}-{number}" for number in range(2, 10_000))]
        return next(self.root / one for one in candidates if not (self.root / one).exists())

    def _known(self, name: str, names: list[str], what: str) -> Path:
        if name not in names:
            raise InputError(f"There is no {what} {name[:100]!r} in {self.root}. Reload the page.")
        return self.root / name

    def _folders(self) -> Iterator[Path]:
        """The root and folders below it; no links, nothing hidden."""
        level, seen = [self.root], 0
        for _ in range(DEEPEST):
            yield from level
            below = [one for folder in level for one in _inside(folder)]
            seen += len(below)
            level = below[: max(0, MOST_FOLDERS - seen + len(below))]


def slug(label: str) -> str:
    """Letters and digits of a name, in small letters, with hyphens between."""
    words = re.findall(r"[a-z0-9]+", label.lower())
    return "-".join(words)[:40].strip("-") or "table"


def about_run(folder: Path) -> dict[str, Any]:
    """What a list says of a run, without building it."""
    facts = {"finished": (folder / RUN).exists(), "moment": _moment(folder)}
    if not facts["finished"]:
        return {**facts, "scores": None, "choice": None, "states": []}
    try:
        content = json.loads(read_text(folder / RUN, most=2**24))
        metadata = content.get("metadata", {})
        scores = metadata.get("test_scores") or {}
        spec = content.get("spec", {})
        return {
            **facts,
            "scores": scores.get("overall"),
            "choice": metadata.get("choice"),
            "states": list(spec.get("states") or ()),
            "seed": content.get("seed"),
        }
    except (InputError, ValueError, AttributeError, TypeError):
        return {**facts, "scores": None, "choice": None, "states": [], "damaged": True}


def _inside(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            found = [one for one in entries if one.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    return sorted(Path(one.path) for one in found if not one.name.startswith((".", "node_modules")))


def _begun(folder: Path) -> bool:
    return any((folder / name).exists() for name in (RUN, UNFINISHED, CHECKPOINT))


def _moment(folder: Path) -> float:
    marks = [folder / name for name in (RUN, UNFINISHED, CHECKPOINT) if (folder / name).exists()]
    return max((path.stat().st_mtime for path in marks), default=0.0)


def _is_settings(path: Path) -> bool:
    """Whether a TOML file has the table that all settings have."""
    try:
        text = read_whole(path, most=MOST_BYTES).decode("utf-8-sig")
        content = {} if text.startswith(SNAPSHOT) else tomllib.loads(text)
    except (InputError, ValueError, RecursionError):
        return False
    data = content.get("data")
    return isinstance(data, dict) and "states" in data and "files" in data
