"""Settings from a TOML file, and one line for what is wrong with it."""

import tomllib
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from hybridsde._errors import InputError, suggest
from hybridsde.project.settings import ParameterSettings, Settings


def read_settings(path: Path) -> Settings:
    """Settings from a TOML file; an `InputError` names the key that is wrong."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        names = [p.name for p in path.parent.glob("*.toml")] if path.parent.is_dir() else []
        raise InputError(
            f"There is no settings file {path}.{suggest(path.name, names)} `hybridsde init "
            "FILE.csv` writes one."
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}.") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"{path} is not TOML: {error}.") from None
    return check_settings(content, str(path))


def check_settings(content: dict, source: str) -> Settings:
    """Settings from a dictionary."""
    try:
        return Settings.model_validate(content)
    except ValidationError as error:
        raise InputError(f"{source}: {_first(error)}") from None


def _first(error: ValidationError) -> str:
    """The first thing that is wrong, in one line."""
    found = _telling(error.errors())
    places = [str(part) for part in found["loc"] if part not in BRANCHES]
    if found["type"] == "extra_forbidden":
        table, key = ".".join(places[:-1]), places[-1]
        known = _keys(places[:-1])
        where = f"[{table}] has" if table else "there is"
        return (
            f"{where} no key {key!r}.{suggest(key, known)} Known keys: {', '.join(sorted(known))}."
        )
    if found["type"] == "missing":
        return f"[{'.'.join(places[:-1])}] needs the key {places[-1]!r}."
    message = found["msg"].removeprefix("Value error, ")
    table = [part for part in places if not part.startswith(("function-", "literal["))]
    given = found.get("input")
    shown = "" if isinstance(given, BaseModel | dict) or given is None else f" (found {given!r})"
    return f"{'.'.join(table) or 'settings'}: {message}{shown}."


BRANCHES = ("float", "int", "str", "ParameterSettings")
"""What pydantic adds to the place of an error where a value may be of several kinds."""


def _telling(errors: list) -> Any:
    """The first error, unless a table was given and the complaint is that it is no number."""
    first = errors[0]
    if isinstance(first["input"], dict) and first["type"] == "float_type" and len(errors) > 1:
        return errors[1]
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
