"""Settings from a TOML file, and one line for what is wrong with it."""

import tomllib
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from hybridsde._errors import InputError, suggest
from hybridsde._files import read_whole
from hybridsde.project.settings import ParameterSettings, Settings

MOST_BYTES = 2**22
"""Of a settings file."""


def read_settings(path: Path) -> Settings:
    """Settings from a TOML file; an `InputError` names the key that is wrong."""
    return settings_of(settings_bytes(path), path)


def settings_bytes(path: Path) -> bytes:
    """A settings file as it stands."""
    if not path.exists():
        names = [p.name for p in path.parent.glob("*.toml")] if path.parent.is_dir() else []
        raise InputError(
            f"There is no settings file {path}.{suggest(path.name, names)} `hybridsde init "
            "FILE.csv` writes one."
        )
    return read_whole(path, links=True, most=MOST_BYTES)


def settings_of(content: bytes, path: Path) -> Settings:
    """Settings from the content of a file."""
    try:
        found = tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not text ({error.reason}). Save it in UTF-8.") from None
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise InputError(f"{path} is not TOML: {error}.") from None
    return check_settings(found, str(path))


def check_settings(content: dict, source: str) -> Settings:
    """Settings from a dictionary."""
    try:
        return Settings.model_validate(content)
    except ValidationError as error:
        raise InputError(f"{source}: {_first(error)}") from None


def _first(error: ValidationError) -> str:
    """The first thing that is wrong, in one line."""
    found = _telling(error.errors())
    places = [str(part) for part in found["loc"] if not _branch(str(part))]
    if found["type"] == "extra_forbidden":
        table, key = ".".join(places[:-1]), places[-1]
        known = _keys(places[:-1])
        where = f"[{table}] has" if table else "there is"
        return (
            f"{where} no key {key!r}.{suggest(key, known)} Known keys: {', '.join(sorted(known))}."
        )
    if found["type"] == "missing":
        return f"[{'.'.join(places[:-1])}] needs the key {places[-1]!r}."
    message = found["msg"].removeprefix("Value error, ").replace("Input should", "it should")
    given = found.get("input")
    shown = "" if isinstance(given, BaseModel | dict) or given is None else f" (found {given!r})"
    return f"{'.'.join(places) or 'settings'}: {message}{shown}."


BRANCHES = ("float", "int", "str", "ParameterSettings", "PeriodSettings")
KINDS = ("function-", "literal[", "constrained-", "list[")


def _branch(part: str) -> bool:
    """Whether pydantic added this to a place because a value may be of several kinds."""
    return part in BRANCHES or part.startswith(KINDS)


def _telling(errors: list) -> Any:
    """The first error that is not about the kind of a value, where it may be of several."""
    first = errors[0]
    if any(_branch(str(part)) for part in first["loc"]):
        mismatch = ("_type", "literal_error")
        better = [error for error in errors if not error["type"].endswith(mismatch)]
        return (better or errors)[0]
    return first


def _keys(places: list[str]) -> list[str]:
    """The keys of a table."""
    model: type[BaseModel] = Settings
    for place in places:
        field = model.model_fields.get(place)
        inner = field.annotation if field else None
        if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
            return list(ParameterSettings.model_fields) if "parameters" in places else []
        model = inner
    return list(model.model_fields)
