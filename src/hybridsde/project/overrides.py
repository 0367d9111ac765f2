"""Settings with some of them changed, by their dotted names."""

from collections.abc import Mapping
from typing import Any

from hybridsde._errors import InputError
from hybridsde.project.settings import Settings
from hybridsde.project.settings_file import check_settings


def with_overrides(settings: Settings, changes: Mapping[str, Any], source: str) -> Settings:
    """The same settings with others under these names, such as "train.learning_rate"."""
    content = settings.model_dump(exclude_unset=True)
    for name, value in changes.items():
        _set(content, name, value, source)
    return check_settings(content, source)


def _set(content: dict[str, Any], name: str, value: Any, source: str) -> None:
    *tables, last = name.split(".")
    if not tables or not last:
        raise InputError(f"{source}: {name!r} is no setting. Name its table too: train.epochs.")
    here = content
    for table in tables:
        inner = here.setdefault(table, {})
        if not isinstance(inner, dict):
            raise InputError(f"{source}: {name!r} is no setting: {table!r} is no table.")
        here = inner
    here[last] = value
