"""A declared model as plain data, so that a run can be saved without executable code."""

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import Any

import jax.random as jr
import numpy as np

from hybridsde._errors import InputError
from hybridsde._parameters import AbstractParameter, Bounded, Fixed, Free, Positive
from hybridsde.forecast import ModelSpec
from hybridsde.forecast.spec import blank_batch
from hybridsde.hybrid import FrozenDrift, HybridSDE
from hybridsde.hybrid.knowledge import Knowledge
from hybridsde.hybrid.numerics import Numerics
from hybridsde.model import Latent
from hybridsde.physics import (
    AbstractPhysics,
    EquationPhysics,
    FunctionPhysics,
    NoPhysics,
    equations,
)
from hybridsde.physics.python_file import python_physics
from hybridsde.registry import class_of

CLASS = "class"
LIMITS = ("bounds", "saturates")
"""Fields that hold pairs of limits by name."""
PHYSICS_FILE = "physics.py"
"""The copy of a Python file with known physics, in the folder of a run."""


def write_spec(spec: ModelSpec) -> dict[str, Any]:
    """Everything about a declared model that is not a trained number."""
    if not is_dataclass(spec):
        raise InputError(f"{type(spec).__name__} is no dataclass, so it cannot be saved.")
    plain = {field.name: _plain(getattr(spec, field.name), field.name) for field in fields(spec)}
    return {CLASS: type(spec).__name__, **plain}


def read_spec(content: Mapping[str, Any], folder: Path, *, trust: bool) -> ModelSpec:
    """The model that was declared. Python physics is only run where it is trusted."""
    given = dict(content)
    kind = class_of(given.pop(CLASS))
    assert is_dataclass(kind)
    extra = sorted(set(given) - {field.name for field in fields(kind)})
    if extra:
        raise InputError(
            f"{folder} was written by another version of hybridsde: this one does not know "
            f"{extra[0]!r} in a {kind.__name__}."
        )
    return kind(**{name: _read(value, name, folder, trust) for name, value in given.items()})


def _read(value: Any, name: str, folder: Path, trust: bool) -> Any:
    """What `_plain` wrote."""
    if name == "physics":
        return _known(value, folder, trust=trust)
    if name == "latent" and value is not None:
        widths = {part: tuple(value[part]) for part in ("encoder", "decoder")}
        return Latent(**{**value, **widths})
    if name == "numerics" and isinstance(value, Mapping):
        return Numerics.of(value)
    if name == "knowledge" and isinstance(value, Mapping):
        return Knowledge(**value)
    if name in LIMITS and isinstance(value, Mapping):
        ends = (-math.inf, math.inf)
        return {
            key: tuple(ends[n] if end is None else end for n, end in enumerate(pair))
            for key, pair in value.items()
        }
    if isinstance(value, Mapping) and "kind" in value:
        return _number(value)
    return tuple(value) if isinstance(value, list) else value


def physics_source(spec: ModelSpec) -> Path | None:
    """The Python file that the known physics is defined in, if it is."""
    if not isinstance(spec, HybridSDE):
        return None
    if isinstance(spec.physics, FrozenDrift):
        return physics_source(spec.physics.source)
    if not isinstance(spec.physics, FunctionPhysics):
        return None
    return _file_of(spec.physics.function)


def _plain(value: Any, name: str) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, AbstractPhysics):
        return _physics(value)
    if isinstance(value, Latent | Numerics | Knowledge):
        return asdict(value)
    if name in LIMITS:
        return {key: [_end(end) for end in pair] for key, pair in value.items()}
    if isinstance(value, AbstractParameter):
        return _parameter(value, name)
    if isinstance(value, Mapping):
        return {key: _plain(inner, name) for key, inner in value.items()}
    if isinstance(value, str | bool | int | float | None):
        return value
    if isinstance(value, tuple | list) and all(isinstance(one, str | int) for one in value):
        return list(value)
    try:
        return np.asarray(value, float).tolist()
    except (TypeError, ValueError):
        raise InputError(
            f"`{name}` is {type(value).__name__}, which a run folder cannot hold. Give it as "
            "numbers, or keep this run in memory."
        ) from None


def _end(limit: float | int) -> float | None:
    """A limit as JSON has it, which knows no infinity."""
    return float(limit) if math.isfinite(limit) else None


KINDS: dict[str, Callable[..., AbstractParameter]] = {
    "Fixed": Fixed,
    "Free": Free,
    "Positive": Positive.of,
    "Bounded": Bounded.of,
}
"""How a parameter of each kind is made from its value and its limits."""


def _parameter(parameter: AbstractParameter, name: str) -> dict[str, Any]:
    if type(parameter).__name__ not in KINDS:
        raise InputError(f"`{name}` is a {type(parameter).__name__}, which cannot be saved.")
    limits = {
        field.name: getattr(parameter, field.name)
        for field in fields(parameter)
        if field.name in ("floor", "low", "high")
    }
    kind = type(parameter).__name__
    return {"kind": kind, "value": np.asarray(parameter.value).tolist(), **limits}


def _number(value: Mapping[str, Any]) -> AbstractParameter:
    """What `_parameter` wrote."""
    given = dict(value)
    build = KINDS[given.pop("kind")]
    return build(np.asarray(given.pop("value"), float), **given)


def _physics(physics: AbstractPhysics) -> dict[str, Any]:
    if isinstance(physics, NoPhysics):
        return {"kind": "none"}
    if isinstance(physics, EquationPhysics):
        texts = [equation.source for equation in physics.equations]
        return {"kind": "equations", "equations": texts, "parameters": _xi(physics.parameters)}
    if isinstance(physics, FunctionPhysics):
        _file_of(physics.function)
        source = f"{PHYSICS_FILE}:{physics.function.__name__}"
        return {"kind": "python", "source": source, "parameters": _xi(physics.parameters)}
    if isinstance(physics, FrozenDrift):
        return {"kind": "frozen", "model": write_spec(physics.source)}
    raise InputError(f"Physics of the kind {type(physics).__name__} cannot be saved.")


def _xi(parameters: Mapping[str, AbstractParameter]) -> dict[str, Any]:
    return {name: _parameter(value, name) for name, value in parameters.items()}


def _known(given: Mapping[str, Any], folder: Path, *, trust: bool) -> AbstractPhysics:
    if given["kind"] == "none":
        return NoPhysics()
    if given["kind"] == "frozen":
        source = read_spec(given["model"], folder, trust=trust)
        assert isinstance(source, HybridSDE)
        return FrozenDrift.of(source, source.init(blank_batch(source), key=jr.key(0)))
    xi = {name: _number(value) for name, value in given["parameters"].items()}
    if given["kind"] == "equations":
        return equations(*given["equations"], flows=(), **xi)
    name, _, function = str(given["source"]).partition(":")
    if name != PHYSICS_FILE or not function.isidentifier():
        raise InputError(f"{folder}: Python physics lies in {PHYSICS_FILE}, not in {name[:60]!r}.")
    return python_physics(given["source"], folder, xi, trust=trust, links=False)


def _file_of(function: Callable) -> Path:
    """The file of a function that can be found there again by its name."""
    try:
        path = Path(inspect.getsourcefile(function) or "")
    except TypeError:
        path = Path()
    if not path.is_file() or "<" in function.__qualname__ or "." in function.__qualname__:
        raise InputError(
            "The known physics is a Python function that is not at the top of a file, so a run "
            "folder cannot hold it. Write it as equations, or move it into a file."
        )
    return path
