"""A comparison on disk: scores as they come, so that one that was stopped goes on."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pandas as pd

from hybridsde._errors import InputError
from hybridsde._files import make_folder, write_whole
from hybridsde.baselines import AbstractBaseline
from hybridsde.data.prints import series_prints
from hybridsde.fit import Watch
from hybridsde.run.compare import compare, parts_of, summarise
from hybridsde.run.declaration import physics_source
from hybridsde.run.folder import fingerprint
from hybridsde.run.project import Project

SCORES_FILE, MARK_FILE = "scores.csv", "comparison.mark"


def check_folder(out: Path, project: Project, seeds: int, *, resume: bool) -> None:
    """An `InputError` unless this comparison may write into the folder."""
    mark = out / MARK_FILE
    if out.exists() and (not out.is_dir() or (any(out.iterdir()) and not mark.exists())):
        raise InputError(f"{out} exists and is not an empty folder. Choose another.")
    if mark.exists() and not resume:
        raise InputError(
            f"{out} holds a comparison. Say --resume to go on with it or to add systems, or choose "
            "another folder."
        )
    if mark.exists() and mark.read_text().strip() != _mark(project, seeds):
        raise InputError(
            f"{out} holds a comparison with other settings, recordings or seeds. Choose another "
            "folder."
        )


def compare_into(
    out: Path,
    project: Project,
    seeds: int,
    watch: Watch | None = None,
    compared: Mapping[str, AbstractBaseline] = MappingProxyType({}),
    *,
    resume: bool = False,
) -> pd.DataFrame:
    """`compare` into a folder: the scores of every system are there as soon as it is done.

    With `resume` what the folder holds is kept, if settings, recordings and seeds are the same.
    """
    check_folder(out, project, seeds, resume=resume)
    make_folder(out)
    write_whole(out / MARK_FILE, f"{_mark(project, seeds)}\n")
    path = out / SCORES_FILE
    scores = read_scores(path) if path.exists() else pd.DataFrame(columns=["method", "objective"])
    for part in compare(project, seeds, watch, compared, skip=parts_of(scores)):
        scores = pd.concat([scores, part], ignore_index=True) if len(scores) else part
        write_whole(path, scores.to_csv(index=False))
    return scores


def read_scores(path: Path) -> pd.DataFrame:
    """The scores that a comparison left; an `InputError` if they cannot be read."""
    try:
        scores = pd.read_csv(path)
        summarise(scores)
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{path} cannot be read: {error}. Compare again.") from None
    return scores


def _mark(project: Project, seeds: int) -> str:
    """A hash of all that a comparison depends on."""
    source = physics_source(project.model)
    code = source.read_text() if source else ""
    return fingerprint(project.settings.model_dump(), code, series_prints(project.data), seeds)
