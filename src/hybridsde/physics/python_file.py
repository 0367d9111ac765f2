"""Physics in a Python file: the only place where a file of the user is run."""

from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

from hybridsde._errors import InputError, suggest
from hybridsde._files import read_whole
from hybridsde._parameters import AbstractParameter
from hybridsde.physics import AbstractPhysics, known_drift


def python_physics(
    source: str,
    folder: Path,
    parameters: Mapping[str, float | AbstractParameter],
    *,
    trust: bool,
    links: bool = True,
) -> AbstractPhysics:
    """The function in `file.py:function` as known physics. Runs the file, so it must be trusted.

    What is run is the text of the file, never something compiled that lies beside it. Unless
    `links` is true it must not be a link.
    """
    name, _, function = source.partition(":")
    path = folder / name
    if not function or path.suffix != ".py":
        raise InputError(f"physics.python must read file.py:function, but is {source!r}.")
    if not trust:
        raise InputError(
            f"The known physics is Python code in {path}, which is not run unasked. Look at it, "
            "and say --trust to run it."
        )
    if not path.is_file():
        raise InputError(f"There is no file {path} with the known physics.")
    module = ModuleType(f"hybridsde_user_{path.stem}")
    module.__file__ = str(path)
    code = read_whole(path, links=links)
    try:
        exec(compile(code, str(path), "exec"), vars(module))
    except Exception as error:
        raise InputError(f"{path} cannot be run: {type(error).__name__}: {error}") from None
    found = vars(module).get(function)
    if not callable(found):
        raise InputError(f"{path} has no function {function!r}.{suggest(function, vars(module))}")
    return known_drift(found, **dict(parameters))
