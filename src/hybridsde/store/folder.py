"""A run on disk: everything needed to forecast again, and nothing that can be executed."""

import hashlib
import io
import json
import os
import platform
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import pandas as pd
from safetensors.numpy import save

from hybridsde._errors import InputError
from hybridsde._files import make_folder, read_text, read_whole, write_whole
from hybridsde.fit.checkpoint import arrays_of, fill, named_arrays
from hybridsde.forecast import AbstractForecaster, ModelSpec
from hybridsde.hybrid import HybridSDE
from hybridsde.store.formats import FORMAT, array_name, upgraded
from hybridsde.store.metadata import RunMetadata
from hybridsde.store.spec_io import PHYSICS_FILE, physics_source, read_spec, write_spec

RUN, WEIGHTS, HISTORY = "run.json", "weights.safetensors", "history.csv"
CHECKPOINT, UNFINISHED = "checkpoint", "unfinished"
TRIAL_CHECKPOINT = ".trial"
"""Behind the name of a checkpoint: that of a trial of networks beside a library."""
NEEDED = ("spec", "forecaster", "metadata", "sha256", "diverged", "seed", "versions")
TABLES = ("spec", "forecaster", "metadata", "sha256", "versions", "machine")
MOST_JSON = 2**28
"""Bytes of a `run.json`; those of a million rows have a tenth of it."""
VERSIONS = ("hybridsde", "jax", "equinox", "optax", "numpy")


@dataclass(frozen=True, eq=False)
class StoredRun:
    """What a run folder holds."""

    spec: ModelSpec
    forecaster: AbstractForecaster
    history: pd.DataFrame
    diverged: bool
    seed: int
    metadata: RunMetadata


def save_run(folder: Path, run: StoredRun, files: Mapping[str, bytes] | None = None) -> None:
    """Write a run; `run.json` comes last, so a folder that has it is complete.

    `files` are kept beside it. `run.json` holds the hash of every file, so that one which was
    changed or exchanged later is noticed when it is read.
    """
    spec = write_spec(run.spec)
    notes = run.spec.notes_of(run.forecaster)
    make_folder(folder)
    source = physics_source(run.spec)
    code = {} if source is None else {PHYSICS_FILE: source.read_bytes()}
    kept = {
        **(files or {}),
        **code,
        HISTORY: run.history.to_csv().encode(),
        WEIGHTS: save(named_arrays(run.forecaster)),
    }
    for name, data in kept.items():
        write_whole(folder / name, data)
    content = {
        "format": FORMAT,
        "spec": spec,
        "forecaster": notes,
        "diverged": run.diverged,
        "seed": run.seed,
        "sha256": {name: hashlib.sha256(data).hexdigest() for name, data in kept.items()},
        "versions": versions(),
        "machine": machine(),
        "metadata": run.metadata.to_dict(),
    }
    write_whole(folder / RUN, json.dumps(content, indent=1) + "\n")


def versions() -> dict[str, str]:
    """What a run is computed with: numbers may differ in their last digits with another."""
    return {name: version(name) for name in VERSIONS} | {"python": platform.python_version()}


def machine() -> dict[str, str]:
    """Where a run is computed: on the same one, the same seed gives the same bits."""
    devices = jax.local_devices()
    kinds = ", ".join(dict.fromkeys(one.device_kind for one in devices))
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": f"{processor()}, {os.cpu_count()} cores",
        "devices": f"{len(devices)} of {devices[0].platform} ({kinds})",
    }


def processor() -> str:
    """What the system calls its processor."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def read_content(folder: Path) -> dict[str, Any]:
    """What `run.json` says, as this version writes it; an `InputError` where it is no run."""
    path = folder / RUN
    if not folder.is_dir():
        raise InputError(f"There is no folder {folder}. `hybridsde fit` writes one.")
    if not path.exists():
        begun = any((folder / name).exists() for name in (CHECKPOINT, UNFINISHED))
        remedy = (
            "The fit was not finished: repeat `hybridsde fit` with --resume."
            if begun
            else "It is not the folder of a run."
        )
        raise InputError(f"{folder} has no {RUN}. {remedy}")
    try:
        written = json.loads(read_text(path, most=MOST_JSON))
        written["format"]
        content = upgraded(written, folder)
    except InputError:
        raise
    except RecursionError:
        raise InputError(f"{path} is damaged (too deep). Fit again.") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path} is damaged ({_brief(error)}). Fit again.") from None
    lacking = [name for name in NEEDED if name not in content]
    if lacking:
        raise InputError(f"{path} is damaged: it lacks {lacking[0]!r}. Fit again.")
    odd = [name for name in TABLES if not isinstance(content.get(name, {}), Mapping)]
    if odd:
        raise InputError(f"{path} is damaged: {odd[0]!r} is no table. Fit again.")
    return content


def load_run(folder: Path, *, trust: bool) -> StoredRun:
    """Read a run back. Its Python physics is only run where it is trusted."""
    content, path = read_content(folder), folder / RUN
    metadata = RunMetadata.from_dict(content["metadata"], str(path))
    if (folder / PHYSICS_FILE).exists():
        kept_file(folder, PHYSICS_FILE, content)
    weights = kept_file(folder, WEIGHTS, content)  # refused before anything is built for them
    rows = kept_file(folder, HISTORY, content)
    try:
        spec = read_spec(content["spec"], folder, trust=trust)
        if content["format"] < FORMAT and isinstance(spec, HybridSDE) and spec.linear:
            raise InputError(
                f"{folder} holds a library of terms in format {content['format']}, whose units "
                "this version does not know. Fit again."
            )
        blank = spec.restore(content["forecaster"])
        diverged, seed = bool(content["diverged"]), int(content["seed"])
    except InputError:
        raise
    except RecursionError:
        raise InputError(f"{path} is damaged (too deep). Fit again.") from None
    except (
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
        AssertionError,
        IndexError,
        OverflowError,
    ) as error:
        raise InputError(f"{path} is damaged ({_brief(error)}). Fit again.") from None
    arrays, _ = arrays_of(weights, folder / WEIGHTS)
    named = {array_name(name, content["format"]): array for name, array in arrays.items()}
    forecaster = fill(blank, named, folder / WEIGHTS)
    try:
        history = pd.read_csv(io.BytesIO(rows), index_col="epoch")
    except (OSError, ValueError) as error:
        raise InputError(f"{folder / HISTORY} cannot be read: {_brief(error)}.") from None
    return StoredRun(spec, forecaster, history, diverged, seed, metadata)


def kept_file(folder: Path, name: str, content: Mapping[str, Any] | None = None) -> bytes:
    """A file of a run, as it was written with it; an `InputError` where it was changed since."""
    content = read_content(folder) if content is None else content
    if Path(name).name != name or not name.isprintable():
        raise InputError(f"{folder / RUN} is damaged: {name[:60]!r} is no file of this folder.")
    path = folder / name
    if not path.exists() and not path.is_symlink():
        raise InputError(f"{folder} has no {name}. Fit again.")
    found = read_whole(path)
    hashes = content["sha256"]
    known = isinstance(hashes, Mapping) and name in hashes
    if not known and content["format"] == FORMAT:
        raise InputError(f"{path} does not belong to this run: {RUN} does not name it.")
    if known and hashlib.sha256(found).hexdigest() != hashes[name]:
        raise InputError(f"{path} was changed or cut short after it was written. Fit again.")
    return found


def _brief(error: Exception) -> str:
    """What an exception says, in one short line."""
    return " ".join(str(error).split())[:200]
