"""A comparison on disk: scores as they come, so that one that was stopped goes on."""

import io
import re
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from hybridsde._errors import InputError, notice
from hybridsde._files import make_folder, own_folder, read_text, remove_partial, write_whole
from hybridsde.data.hashing import series_hashes
from hybridsde.fit import CallbackFactory
from hybridsde.fit.checkpoint import fingerprint
from hybridsde.forecast import SCORES
from hybridsde.project.compare import (
    FLOOR,
    OWN,
    Candidate,
    compare,
    name_of,
    parts_of,
    seeds_of,
)
from hybridsde.project.project import Project, judged_by, scaled_by_lead
from hybridsde.registry import SYSTEMS
from hybridsde.run import Run
from hybridsde.store.folder import RUN, kept_file
from hybridsde.store.lock import is_unused, locked
from hybridsde.store.spec_io import PHYSICS_FILE, physics_source

SCORES_FILE, BACKTEST_FILE, MARK_FILE = "scores.csv", "backtest.csv", "comparison.mark"
RUNS = "runs"
"""The folder of the fits."""


def check_folder(out: Path, project: Project, seeds: int, *, resume: bool) -> None:
    """An `InputError` unless this comparison is possible and may write into the folder."""
    if project.test is None:
        raise InputError("A comparison needs held-out recordings: set data.test above 0.")
    mark = out / MARK_FILE
    if out.exists() and (not out.is_dir() or not (is_unused(out) or mark.exists())):
        raise InputError(f"{out} exists and is not an empty folder. Choose another.")
    if not (out / SCORES_FILE).exists():
        return
    if not resume:
        raise InputError(
            f"{out} holds a comparison. Say --resume to go on with it or to add systems, or choose "
            "another folder."
        )
    if read_text(mark).strip() != _fingerprint(project, seeds):
        raise InputError(
            f"{out} holds a comparison with other settings, recordings or seeds, or of another "
            "version. Choose another folder."
        )


@contextmanager
def comparing(out: Path, project: Project, seeds: int, *, resume: bool) -> Iterator[pd.DataFrame]:
    """Hold the folder of a comparison; gives the scores that it holds already.

    With `resume` these are kept, if settings, recordings and seeds are the same.
    """
    check_folder(out, project, seeds, resume=resume)
    make_folder(out)
    with locked(out):
        check_folder(out, project, seeds, resume=resume)  # somebody may have used it a moment ago
        remove_partial(out)
        write_whole(out / MARK_FILE, f"{_fingerprint(project, seeds)}\n")
        path = out / SCORES_FILE
        scores = pd.DataFrame(columns=["method", "objective"])
        if path.exists():
            scores = _complete(out, read_scores(path), seeds_of(project, seeds))
        yield scores


def compare_into(
    out: Path,
    project: Project,
    seeds: int,
    watch: CallbackFactory | None = None,
    compared: Collection[Candidate] = (),
    *,
    resume: bool = False,
) -> pd.DataFrame:
    """`compare` into a folder: the scores of every system are there as soon as it is done."""
    with comparing(out, project, seeds, resume=resume) as scores:
        for found in compare(project, seeds, watch, compared, skip=parts_of(scores)):
            for run in found.runs:
                _keep(run_folder(out, found.candidate.name, run.seed), run, project)
            new = found.scores
            scores = pd.concat([scores, new], ignore_index=True) if len(scores) else new
            write_whole(out / SCORES_FILE, scores.to_csv(index=False))
        return scores


def run_folder(out: Path, name: str, seed: int) -> Path:
    """Where a comparison keeps a fit, as `hybridsde fit` would have written it."""
    word = re.sub(r"[^\w]+", "-", name)
    return out / RUNS / f"{word}-{seed}"


def _keep(folder: Path, run: Run, project: Project) -> None:
    """Save a fit; one that is there already was left by a comparison that was stopped."""
    own_folder(own_folder(folder.parent) / folder.name)
    if (folder / RUN).exists() or not is_unused(folder):
        shutil.rmtree(folder)
    run.save(folder, project.kept_files)


def _is_kept(out: Path, method: str, objective: str, seed: int) -> bool:
    folder = run_folder(out, name_of(method, objective), seed)
    return not (out / RUNS).is_symlink() and not folder.is_symlink() and (folder / RUN).is_file()


def _load(folder: Path, project: Project) -> Run:
    """A kept fit. Python physics is only run where it is the project's own."""
    source = physics_source(project.model)
    code = None if source is None else source.read_bytes()
    own = (folder / PHYSICS_FILE).exists() and kept_file(folder, PHYSICS_FILE) == code
    return Run.load(folder, trust=own)


def backtest_into(
    out: Path, project: Project, scores: pd.DataFrame, horizon: int, origins: int | None
) -> pd.DataFrame:
    """Scores by lead time of every fit of a comparison, from the same rolling origins.

    Each system is given all rows before an origin. Where one cannot begin so far from the first
    row, it is left out, and it is said why.
    """
    assert project.split.test is not None
    judged = judged_by(project.split.train, project.split.test)
    tables = []
    for method, objective in parts_of(scores):
        own = (scores["method"] == method) & (scores["objective"] == objective)
        for seed in scores.loc[own, "seed"]:
            run = _load(run_folder(out, name_of(method, objective), int(seed)), project)
            try:
                found = run.backtest(
                    project.split.test,
                    horizon=horizon,
                    origins=origins,
                    draws=project.settings.forecast.draws,
                )
            except ValueError as error:
                notice(f"No backtest of {method}: {error}")
                break
            found = scaled_by_lead(found, *judged)
            tables.append(found.assign(seed=int(seed), method=method, objective=objective))
    if not tables:
        raise InputError("None of the systems can be tried from rolling origins.")
    table = pd.concat(tables, ignore_index=True)
    with locked(out):
        write_whole(out / BACKTEST_FILE, table.to_csv(index=False))
    return table


def _complete(out: Path, scores: pd.DataFrame, seeds: list[int]) -> pd.DataFrame:
    """The rows of those systems that have one, and a fit, for every seed."""
    whole = []
    for method, objective in parts_of(scores):
        own = (scores["method"] == method) & (scores["objective"] == objective)
        rows = scores.loc[own, "seed"]
        kept = all(_is_kept(out, method, objective, seed) for seed in seeds)
        if kept and sorted(rows) == sorted(seeds):
            whole.append(rows.index)
    return scores.loc[sorted(row for rows in whole for row in rows)]


def read_scores(path: Path) -> pd.DataFrame:
    """The scores that a comparison left; an `InputError` if they cannot be read."""
    return _read(path, [*SCORES, "seed"])


def read_backtest(path: Path) -> pd.DataFrame:
    """Scores by lead time that a comparison left; an `InputError` if they cannot be read."""
    scores = _read(path, ["crps", "seed", "lead", "origins"])
    if "obs" not in scores or np.max(scores["lead"]) < 1:
        raise InputError(f"{path} is damaged. Remove it, and compare again with --resume.")
    return scores


def _read(path: Path, numbers: list[str]) -> pd.DataFrame:
    try:
        scores = pd.read_csv(io.StringIO(read_text(path)))
    except ValueError:
        scores = pd.DataFrame()
    sound = len(scores) > 0 and {"method", "objective", *numbers} <= set(scores.columns)
    sound = sound and all(is_numeric_dtype(scores[name]) for name in numbers)
    others = set(scores.loc[scores["objective"] == OWN, "method"]) if sound else set()
    if not sound or not others <= {*SYSTEMS, FLOOR}:
        raise InputError(f"{path} is damaged. Remove it, and compare again with --resume.")
    return scores


def _fingerprint(project: Project, seeds: int) -> str:
    """A hash of settings, recordings, seeds and the version."""
    source = physics_source(project.model)
    code = source.read_text() if source else ""
    series = series_hashes(project.data)
    return fingerprint(project.settings.model_dump(), code, series, seeds, version("hybridsde"))
