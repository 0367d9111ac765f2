"""Older run folders, read as if this version had written them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hybridsde._errors import InputError

FORMAT = 4
FIRST_NAMES = {
    ".state_mean": ".states.mean",
    ".state_sd": ".states.sd",
    ".time_mean": ".time.mean",
    ".time_sd": ".time.sd",
    ".input_mean": ".inputs.mean",
    ".input_sd": ".inputs.sd",
}
"""Ends of the names that arrays had in format 1, and have now."""


KEPT = ("diverged", "seed", "versions")
FIRST_FACTS = ("seen", "seen_steps", "seen_origins", "spread", "weights_sha256")
FIRST_NEEDED = ("model", "solver", *FIRST_FACTS, *KEPT)
"""What a folder in format 1 must say; those of the first weeks do not say what they have seen."""


def upgraded(written: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The content of `run.json` as this version writes it; an `InputError` where it cannot be."""
    if written["format"] == FORMAT:
        return dict(written)
    if written["format"] == 3:
        return _with_hashes(written)
    if written["format"] == 2:
        return _with_hashes({**written, "spec": _second_spec(written["spec"])})
    if written["format"] == 1:
        return _with_hashes(_from_first(written, folder))
    raise InputError(
        f"{folder} has format {written['format']}, this version of hybridsde reads formats 1 to "
        f"{FORMAT}. It was written by version {_author(written)}."
    )


def array_name(name: str, written: int) -> str:
    """What an array of a folder in an older format is called now."""
    if written != 1:
        return name
    for old, new in FIRST_NAMES.items():
        if name.endswith(old):
            name = name.removesuffix(old) + new
    return f".model{name}"


def _with_hashes(written: Mapping[str, Any]) -> dict[str, Any]:
    """Until format 3 only the weights had a hash."""
    content = dict(written)
    return {**content, "sha256": {"weights.safetensors": content.pop("weights_sha256")}}


def _from_first(old: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Version 0.1: hybrids only, all facts side by side."""
    lacking = [name for name in FIRST_NEEDED if name not in old]
    if lacking:
        raise InputError(
            f"{folder} was written by version {_author(old)}. It lacks {lacking[0]!r}, which this "
            "version needs. Fit again."
        )
    kept = {name: old[name] for name in ("networks",) if name in old}
    used = {"series": old["seen"], "steps": old["seen_steps"], "origins": old["seen_origins"]}
    same = ("objective", "spread", "calibration", "settings", "test_scores", "reference")
    return {
        **{name: old[name] for name in KEPT},
        "format": 1,
        "weights_sha256": old["weights_sha256"],
        "spec": _first_spec(old["model"]),
        "forecaster": {"solver": old["solver"], **kept},
        "metadata": {"used": used, **{name: old[name] for name in same if name in old}},
    }


def _first_spec(model: Mapping[str, Any]) -> dict[str, Any]:
    """A hybrid as version 0.1 declared it, when spreads were guessed unless they were named."""
    spec = {"class": "HybridSDE", **model, "far": "free", "members": 1}
    for name in ("diffusion", "noise"):
        spec[name] = "guess" if spec.get(name) is None else spec[name]
    if spec.get("latent") is not None:
        spec["start"] = None
    if spec["physics"]["kind"] == "frozen":
        spec["physics"] = {"kind": "frozen", "model": _first_spec(spec["physics"]["model"])}
    return spec


def _second_spec(spec: Mapping[str, Any]) -> dict[str, Any]:
    """A model of format 2, when there was one network, which never faded."""
    if spec["class"] != "HybridSDE":
        return dict(spec)
    old = {**spec, "far": "free", "members": 1}
    if old["physics"]["kind"] == "frozen":
        old["physics"] = {"kind": "frozen", "model": _second_spec(old["physics"]["model"])}
    return old


def _author(written: Mapping[str, Any]) -> str:
    return written.get("versions", {}).get("hybridsde", "unknown")
