"""A run folder after further recordings: the same system, one step wiser."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from hybridsde._errors import InputError
from hybridsde.certify import UsedData
from hybridsde.data import Trajectories
from hybridsde.fit import Callback
from hybridsde.project.project import (
    DATA,
    SETTINGS,
    check_target,
    forecast_settings,
    judged_by,
    plain_scores,
    split_of,
)
from hybridsde.project.recordings import open_run
from hybridsde.run import Run
from hybridsde.run.updating import unused_names
from hybridsde.store.folder import kept_file
from hybridsde.store.metadata import Scores


def update_run(
    folder: Path,
    data: str,
    out: Path,
    *,
    callbacks: Iterable[Callback] = (),
    trust: bool,
) -> tuple[Run, Scores | None]:
    """The updated run, saved in its own folder, and the scores of the same test before."""
    check_target(out, resume=False)
    before, recordings = open_run(folder, data, trust=trust)
    split = split_of(folder, before)
    _require_untested(recordings, split.test)
    run = before.update(recordings, callbacks=callbacks)
    settings = forecast_settings(run)
    if split.test is not None:
        test = settings.cut(split.test, run.spec.context)
        table = run.score(test, draws=settings.draws)
        scores = plain_scores(table, *judged_by(split.train, test))
        run = replace(run, metadata=replace(run.metadata, test_scores=scores))
    train = split.train.join(recordings.named(unused_names(recordings, split.whole.ids)))
    kept = replace(split, train=train).to_frame().to_csv(index=False).encode()
    run.save(out, {SETTINGS: kept_file(folder, SETTINGS), DATA: kept})
    return run, before.metadata.test_scores


def _require_untested(recordings: Trajectories, test: Trajectories | None) -> None:
    """An `InputError` where a recording is kept for the test: scores would be too good."""
    if test is None:
        return
    found = np.flatnonzero(UsedData.of(test=test).which(recordings, "test"))
    if found.size:
        raise InputError(
            f"{recordings.ids[found[0]]!r} is one of the recordings that the run keeps for its "
            "test. Learn from others."
        )
