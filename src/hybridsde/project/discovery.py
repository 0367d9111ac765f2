"""Discovered equations as a settings file: what was learned becomes known physics."""

import json
import re
from collections.abc import Mapping
from typing import Any

from hybridsde.hybrid.discovered import Discovered

HEADER = re.compile(r"^\s*\[{1,2}\s*([^\]]+?)\s*\]{1,2}\s*(#.*)?$")


def settings_with(text: str, found: Discovered, physics: Mapping[str, Any]) -> str:
    """A settings file with these equations as its [physics]; all else stays as it was written.

    `physics` are the settings that the run had: parameters that were learned stay so, and begin
    where they ended.
    """
    kept, inside = [], False
    for line in text.splitlines():
        header = HEADER.match(line)
        if header:
            inside = header[1].split(".")[0].strip() == "physics"
        if not inside:
            kept.append(line)
    while kept and not kept[-1].strip():
        kept.pop()
    listed = ",\n".join(f"    {json.dumps(one)}" for one in found.equations())
    lines = [*kept, "", "[physics]", f"equations = [\n{listed},\n]"]
    exact = physics.get("exact") or []
    if exact:
        lines.append(f"exact = {json.dumps(list(exact))}")
    lines += _parameters(found, physics.get("parameters") or {})
    return "\n".join(lines) + "\n"


def _parameters(found: Discovered, given: Mapping[str, Any]) -> list[str]:
    written = []
    for name, number in found.parameters.items():
        before = given.get(name)
        learned = isinstance(before, Mapping) and before.get("learn")
        if not isinstance(before, Mapping) or not learned:
            written.append(f"{name} = {number:.6g}")
            continue
        ends = [
            f"{end} = {before[end]!r}" for end in ("low", "high") if before.get(end) is not None
        ]
        written.append(
            f"{name} = {{ {', '.join([f'value = {number:.6g}', 'learn = true', *ends])} }}"
        )
    return ["", "[physics.parameters]", *written] if written else []
