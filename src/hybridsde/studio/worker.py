"""A fit in a process of its own: `python -m hybridsde.studio.worker SETTINGS OUT [--resume]`.

It writes a JSON object per line to its output and works on where nobody reads them. Everything that
counts is in the run folder: a studio that is killed loses nothing.
"""

import json
import os
import signal
import sys
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from hybridsde._cache import compile_quickly, keep_compiled
from hybridsde._devices import use_all_cores
from hybridsde._errors import FitFailed, InputError, InputNotice
from hybridsde._files import write_json
from hybridsde._watchdog import watched
from hybridsde.fit import FitDiverged, Progress
from hybridsde.project.compare import QUICK, others, repeat
from hybridsde.project.project import Project
from hybridsde.store.metadata import SCALED_SCORES
from hybridsde.studio.draft import open_project

ALTERNATIVES = "alternatives.json"
"""In a run folder: scores of simple forecasters of the same recordings."""
FAILED, INTERRUPTED = 2, 130
Tell = Callable[..., None]


def main(arguments: list[str]) -> int:
    """Fit, then score simple forecasters beside it."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    settings, out, resume = Path(arguments[0]), Path(arguments[1]), "--resume" in arguments[2:]
    use_all_cores()
    compile_quickly()
    keep_compiled()
    try:
        with _notices(tell):
            tell(stage="Reading the recordings")
            project = open_project(settings)
            tell(stage="Compiling")
            with watched(lambda: _give_up(tell)):
                project.fit_into(out, resume=resume, callbacks=(_follow(tell),))
            tell(stage="Scoring simple forecasters", fitted=True)
            write_json(out / ALTERNATIVES, alternatives(project))
    except (InputError, FitFailed) as error:
        tell(error=str(error))
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def _give_up(tell: Tell) -> None:
    """Say that nothing moves any more, and end."""
    tell(error="Nothing has moved for minutes, so the fit was ended. Please report it.")
    os._exit(FAILED)


def alternatives(project: Project) -> dict[str, Any]:
    """Scores of the held-out recordings by simple forecasters, by name; none without recordings."""
    found = {}
    if project.test is None:
        return found
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for candidate in others(project, QUICK):
            scores = repeat(project, candidate, 1).scores.iloc[0]
            told = [one for one in ("rmse", "nll", "crps", "coverage90", *SCALED_SCORES)
                    if one in scores]  # fmt: skip
            found[candidate.method] = {
                name: float(scores[name]) if np.isfinite(scores[name]) else None for name in told
            }
    return found


def tell(**said: Any) -> None:
    """One line; once nobody listens, to nobody."""
    try:
        print(json.dumps(said), flush=True)  # noqa: T201
    except OSError:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115


def _follow(tell: Tell) -> Callable[[Progress], None]:
    def follow(progress: Progress) -> None:
        numbers = {name: float(np.mean(value)) for name, value in progress.terms.items()}
        kept = {name: v for name, v in numbers.items() if np.isfinite(v) and "loss" in name}
        tell(epoch=progress.epoch, epochs=progress.epochs, **kept)

    return follow


@contextmanager
def _notices(tell: Tell):
    def show(message, category, *rest, **named) -> None:
        del rest, named
        if issubclass(category, InputNotice | FitDiverged):
            tell(note=str(message))

    with warnings.catch_warnings():
        warnings.simplefilter("always", InputNotice)
        warnings.showwarning = show
        yield


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
