"""A run on disk: everything needed to forecast again, and nothing that can be executed."""

import hashlib
import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd
from safetensors.numpy import save

from hybridsde._errors import InputError
from hybridsde._files import make_folder, write_whole
from hybridsde.fit.checkpoint import fill, named_arrays, read_arrays
from hybridsde.forecast import AbstractForecaster, ModelSpec
from hybridsde.store.formats import FORMAT, array_name, upgraded
from hybridsde.store.metadata import RunMetadata
from hybridsde.store.spec_io import PHYSICS_FILE, physics_source, read_spec, write_spec

RUN, WEIGHTS, HISTORY = "run.json", "weights.safetensors", "history.csv"
CHECKPOINT, UNFINISHED = "checkpoint", "unfinished"
NEEDED = ("spec", "forecaster", "metadata", "weights_sha256", "diverged", "seed", "versions")
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


def save_run(folder: Path, run: StoredRun) -> None:
    """Write a run; `run.json` comes last, so a folder that has it is complete."""
    spec = write_spec(run.spec)
    notes = run.spec.notes_of(run.forecaster)
    make_folder(folder)
    source = physics_source(run.spec)
    if source and source.resolve() != (folder / PHYSICS_FILE).resolve():
        write_whole(folder / PHYSICS_FILE, source.read_bytes())
    weights = save(named_arrays(run.forecaster))
    write_whole(folder / WEIGHTS, weights)
    write_whole(folder / HISTORY, run.history.to_csv())
    content = {
        "format": FORMAT,
        "spec": spec,
        "forecaster": notes,
        "diverged": run.diverged,
        "seed": run.seed,
        "weights_sha256": hashlib.sha256(weights).hexdigest(),
        "versions": {name: version(name) for name in VERSIONS}
        | {"python": platform.python_version()},
        "metadata": run.metadata.to_dict(),
    }
    write_whole(folder / RUN, json.dumps(content, indent=1) + "\n")


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
        written = json.loads(path.read_text(encoding="utf-8"))
        written["format"]
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is damaged ({error}). Fit again.") from None
    content = upgraded(written, folder)
    lacking = [name for name in NEEDED if name not in content]
    if lacking:
        raise InputError(f"{path} is damaged: it lacks {lacking[0]!r}. Fit again.")
    return content


def load_run(folder: Path, *, trust: bool) -> StoredRun:
    """Read a run back. Its Python physics is only run where it is trusted."""
    content, path = read_content(folder), folder / RUN
    metadata = RunMetadata.from_dict(content["metadata"], str(path))
    try:
        spec = read_spec(content["spec"], folder, trust=trust)
        blank = spec.restore(content["forecaster"])
        diverged, seed = bool(content["diverged"]), int(content["seed"])
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{path} is damaged ({error}). Fit again.") from None
    forecaster = fill(blank, _weights(folder, content), folder / WEIGHTS)
    try:
        history = pd.read_csv(folder / HISTORY, index_col="epoch")
    except (OSError, ValueError) as error:
        raise InputError(f"{folder / HISTORY} cannot be read: {error}.") from None
    return StoredRun(spec, forecaster, history, diverged, seed, metadata)


def _weights(folder: Path, content: Mapping[str, Any]) -> dict[str, Any]:
    path = folder / WEIGHTS
    if not path.exists():
        raise InputError(f"{folder} has no {WEIGHTS}. Fit again.")
    try:
        found = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from None
    if found != content["weights_sha256"]:
        raise InputError(f"{path} was changed or cut short after it was written. Fit again.")
    arrays, _ = read_arrays(path)
    return {array_name(name, content["format"]): array for name, array in arrays.items()}
