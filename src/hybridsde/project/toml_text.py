"""Settings as a file that `hybridsde fit` takes."""

import json
import math
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hybridsde._errors import InputError
from hybridsde.project.settings import Settings
from hybridsde.project.settings_file import check_settings


def settings_text(settings: Settings, folder: Path, out: Path) -> str:
    """A settings file to stand in `out`, of settings whose paths were taken from `folder`."""
    content = settings.model_dump(mode="python", exclude_unset=True, exclude={"sweep"})
    names = content["data"]["files"]
    moved = [_moved(one, folder, out) for one in ([names] if isinstance(names, str) else names)]
    content["data"]["files"] = moved[0] if isinstance(names, str) else moved
    python = content.get("physics", {}).get("python")
    if python:
        content["physics"]["python"] = _moved(python, folder, out)
    text = toml_text(_without_absent(content))
    check_settings(tomllib.loads(text), "These settings")  # what is written can be read
    return text


def _moved(name: str, folder: Path, out: Path) -> str:
    """A path from another folder; one that is absolute or begins with a variable stays."""
    if os.path.isabs(name) or name.startswith("$"):
        return name
    return os.path.relpath(folder.resolve() / name, out.resolve())


def _without_absent(value: Any) -> Any:
    """TOML has no word for what is left open."""
    if isinstance(value, Mapping):
        return {key: _without_absent(one) for key, one in value.items() if one is not None}
    return value


def toml_text(content: Mapping[str, Any], above: str = "") -> str:
    """Plain data as TOML: numbers and lists first, then the tables inside."""
    inner = {name: one for name, one in content.items() if isinstance(one, Mapping)}
    lines = [f"{_key(name)} = {_value(one)}" for name, one in content.items() if name not in inner]
    for name, one in inner.items():
        if above:
            lines.append(f"{_key(name)} = {_value(one)}")
            continue
        lines += ["", f"[{_key(name)}]", toml_text(one, name).rstrip()]
    return "\n".join(lines).strip() + "\n"


def _key(name: str) -> str:
    bare = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if bare else _value(name)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # inf, -inf, nan: as TOML writes them
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    raise InputError(f"{value!r} cannot be written as TOML.")
