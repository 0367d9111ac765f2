"""What a run page shows: scores beside simple forecasters, equations, certificates, files."""

import io
import json
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hybridsde._errors import InputError, InputNotice
from hybridsde._files import is_partial, read_text, read_whole, write_whole
from hybridsde.physics.expression import mathml
from hybridsde.project.discovery import settings_with
from hybridsde.project.project import SETTINGS
from hybridsde.project.recordings import Certification
from hybridsde.report.bands import clock_label
from hybridsde.report.certificates import read_certificates
from hybridsde.report.drift import UNLIKELY, Hybrid, equations
from hybridsde.store.folder import RUN, kept_file, read_content
from hybridsde.store.lock import LOCK
from hybridsde.store.spec_io import PHYSICS_FILE
from hybridsde.studio.opened import OpenRun
from hybridsde.studio.sliders import sliders_of
from hybridsde.studio.worker import ALTERNATIVES
from hybridsde.studio.workspace import MARK, SNAPSHOT

MOST_ZIPPED = 2**29
"""Bytes of a run folder that are put into one file."""
LOSSES = ("error", "interval", "band", "crps", "likelihood")
BOUNDS = ("auto", "holdout", "holdout-kl", "conformal")


def stored_facts(folder: Path) -> dict[str, Any]:
    """What the files of a run say; nothing is built and nothing is run."""
    if not (folder / RUN).exists():
        return {"finished": False}
    content = read_content(folder)
    metadata = content["metadata"]
    return {
        "finished": True,
        "python": (folder / PHYSICS_FILE).exists(),
        "scores": metadata.get("test_scores"),
        "choice": metadata.get("choice"),
        "parameters": metadata.get("parameters") or {},
        "diverged": content["diverged"],
        "seed": content["seed"],
        "alternatives": _alternatives(folder),
        "certificates": read_certificates(folder),
        "settings": _settings(folder),
        "declared": flat(metadata.get("settings") or {}),
    }


def flat(settings: Mapping[str, Any], before: str = "") -> dict[str, str]:
    """Settings one by one: `physics.exact` and what it is."""
    found = {}
    for name, value in settings.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{before}{name}.")
        elif value is not None:
            found[f"{before}{name}"] = json.dumps(value, ensure_ascii=False)
    return found


def _alternatives(folder: Path) -> dict[str, Any]:
    path = folder / ALTERNATIVES
    if not path.exists():
        return {}
    try:
        found = json.loads(read_text(path, most=2**20))
        return {str(name): dict(scores) for name, scores in found.items()}
    except (ValueError, AttributeError, TypeError):
        raise InputError(f"{path} is damaged. Remove it.") from None


def _settings(folder: Path) -> str:
    if not (folder / SETTINGS).exists():
        return ""
    return kept_file(folder, SETTINGS).decode("utf-8-sig", errors="replace")


def model_facts(opened: OpenRun) -> dict[str, Any]:
    """What needs the model itself: its equations, recordings to forecast, sliders."""
    run, data = opened.run, opened.recordings
    hybrid = Hybrid.of(run, opened.split.train)
    unit = (run.metadata.settings or {}).get("data", {}).get("unit")
    return {
        "observations": list(run.spec.observations),
        "clock": clock_label(unit, run.metadata.epoch),
        "equations": equations(hybrid) if hybrid else [],
        "sliders": sliders_of(run),
        "series": [{"id": str(one), "part": opened.part_of(one)} for one in data.ids],
    }


def discover(opened: OpenRun) -> dict[str, Any]:
    """What was learned as equations, with errors and probabilities."""
    found = opened.run.equations(opened.split.train)
    return {
        "lines": found.lines(),
        "writable": not found.unwritten,
        "explained": found.explained,
        "corrections": [str(one) for one in found.corrections],
        "terms": [
            {
                "state": one.state,
                "term": f"<math>{mathml(one.term)}</math>",
                "value": one.value,
                "error": one.error,
                "probability": one.probability,
            }
            for one in found.terms
            if one.probability > UNLIKELY
        ],
    }


def take_over(opened: OpenRun) -> Path:
    """Settings beside the run in which what it learned is known physics."""
    folder, run = opened.folder, opened.run
    found = run.equations(opened.split.train)
    physics = (run.metadata.settings or {}).get("physics", {})
    text = settings_with(_settings(folder).removeprefix(SNAPSHOT), found, physics)
    names = (f"{folder.name}-discovered{end}.toml" for end in ("", *range(2, 1000)))
    path = next(folder.parent / one for one in names if not (folder.parent / one).exists())
    write_whole(path, MARK + text)
    return path


def certify(folder: Path, loss: str, bound: str, delta: float) -> list[dict[str, Any]]:
    """Add a certificate to a run; returns all of them."""
    if loss not in LOSSES or bound not in BOUNDS:
        raise InputError(
            f"Choose a loss of {', '.join(LOSSES)} and a bound of {', '.join(BOUNDS)}."
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputNotice)
        work = Certification.open(folder, None, bound, None, trust=False)
        if bound == "conformal":
            work.conformal(alpha=0.1, confidence=None, seed=None)
        else:
            work.certify(loss=loss, bound=bound, delta=delta)
    return read_certificates(folder)


def zipped(folder: Path) -> bytes:
    """A run folder as one file; links and what is being written are left out."""
    buffer, total = io.BytesIO(), 0
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            if not path.is_file() or path.is_symlink() or is_partial(path) or path.name == LOCK:
                continue
            content = read_whole(path)
            total += len(content)
            if total > MOST_ZIPPED:
                raise InputError(f"{folder} is too large for one file. Copy the folder instead.")
            archive.writestr(f"{folder.name}/{path.relative_to(folder).as_posix()}", content)
    return buffer.getvalue()
