"""A fit that can be killed at any moment and taken up again."""

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from hybridsde._errors import InputError
from hybridsde._files import read_whole, write_whole
from hybridsde._types import PyTree
from hybridsde.fit.state import FitState

SECONDS = 5.0
"""A checkpoint is written at most this often."""


def named_arrays(tree: PyTree) -> dict[str, np.ndarray]:
    """The arrays of a tree by their place in it."""
    found = {}
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            leaf = jr.key_data(leaf)
        if isinstance(leaf, jax.Array | np.ndarray | np.generic):
            found[jax.tree_util.keystr(path)] = np.asarray(leaf, order="C")
    return found


def fill(tree: PyTree, arrays: dict[str, np.ndarray], source: Path) -> PyTree:
    """A tree of the same structure with these arrays; an `InputError` where one does not fit."""

    def one(path, leaf):
        if not isinstance(leaf, jax.Array | jax.ShapeDtypeStruct):
            return leaf
        name = jax.tree_util.keystr(path)
        is_key = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        if name not in arrays:
            raise InputError(f"{source} lacks {name!r}: it belongs to another model or version.")
        array = arrays[name]
        shape = (*leaf.shape, 2) if is_key else leaf.shape
        if array.shape != shape:
            raise InputError(
                f"{source}: {name!r} has shape {array.shape}, but the model needs {shape}. It "
                "belongs to another model."
            )
        return jr.wrap_key_data(jnp.asarray(array)) if is_key else jnp.asarray(array, leaf.dtype)

    return jax.tree_util.tree_map_with_path(one, tree)


def arrays_of(content: bytes, path: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The arrays of a safetensors file and its notes. Nothing in it can be executed."""
    try:
        arrays = load(content)
        size = int.from_bytes(content[:8], "little")
        notes = json.loads(content[8 : 8 + size]).get("__metadata__", {})
    except (SafetensorError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"{path} is damaged or cut short ({error}).") from None
    return arrays, notes


def _order(columns: Sequence[str]) -> Callable[[str], int]:
    """The place of a name among these; after them where it is not there."""
    places = {name: place for place, name in enumerate(columns)}
    return lambda name: places.get(name, len(places))


def _digest(arrays: Mapping[str, np.ndarray]) -> str:
    content = hashlib.sha256()
    for name in sorted(arrays):
        content.update(name.encode())
        content.update(arrays[name].tobytes())
    return content.hexdigest()


def fingerprint(*parts: Any) -> str:
    """One hash of plain data, declarations and trees of arrays."""
    content = hashlib.sha256()
    for part in parts:
        content.update(repr(jax.tree_util.tree_structure(part)).encode())
        for leaf in jax.tree_util.tree_leaves(part):
            numeric = isinstance(leaf, jax.Array | np.ndarray)
            content.update(np.asarray(leaf).tobytes() if numeric else repr(leaf).encode())
    return content.hexdigest()


@dataclass
class Checkpoint:
    """The file that remembers where a fit is."""

    path: Path
    fingerprint: str
    """What must agree for a fit to be continued: settings and data."""
    every: float = SECONDS
    _last: float = field(default_factory=time.monotonic)

    def keep(self, state: FitState, history: Mapping[str, Sequence], *, now: bool = False) -> None:
        """Write the state after an epoch and the rows so far, unless the last one is recent."""
        if not now and time.monotonic() - self._last < self.every:
            return
        arrays = {f"state{name}": array for name, array in named_arrays(state).items()}
        arrays |= {f"history/{name}": np.asarray(rows, order="C") for name, rows in history.items()}
        columns = json.dumps(list(history))
        notes = {"fingerprint": self.fingerprint, "sha256": _digest(arrays), "columns": columns}
        write_whole(self.path, save(arrays, notes))
        self._last = time.monotonic()

    def restore(self, state: FitState) -> tuple[FitState, dict[str, np.ndarray]] | None:
        """The kept state and history; None where there is no file."""
        if not self.path.exists():
            return None
        arrays, notes = arrays_of(read_whole(self.path), self.path)
        if notes.get("sha256") != _digest(arrays):
            raise InputError(f"{self.path} was changed after it was written. Fit anew.")
        if notes.get("fingerprint") != self.fingerprint:
            raise InputError(
                f"{self.path} belongs to a fit with other settings or data. Fit into another "
                "folder, or go back to the settings that it was begun with."
            )
        cut = len("state")
        kept = {name[cut:]: a for name, a in arrays.items() if name.startswith("state")}
        cut = len("history/")
        found = {name[cut:]: a for name, a in arrays.items() if name.startswith("history/")}
        columns = json.loads(notes.get("columns", "[]"))
        history = {name: found[name] for name in sorted(found, key=_order(columns))}
        return fill(state, kept, self.path), history
