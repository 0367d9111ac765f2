"""Hashes of recordings, to tell later whether a model has seen them."""

import base64
import hashlib
from itertools import pairwise

import numpy as np

from hybridsde.data.trajectories import Trajectories

SIZE = 8
"""Bytes that are kept of the hash of a step."""


def series_hashes(data: Trajectories) -> dict[str, str]:
    """A hash of every series: its times, values and inputs."""
    hashes = {}
    for row, name in enumerate(data.ids):
        length = int(data.lengths[row])
        content = hashlib.sha256()
        for array in (data.times, np.where(data.observed, data.values, np.nan), data.inputs):
            content.update(np.ascontiguousarray(array[row, :length], float).tobytes())
        hashes[name] = content.hexdigest()
    return hashes


def row_hashes(data: Trajectories, *, inputs: bool = True) -> list[list[bytes]]:
    """A short hash of every row of each series, in order; rows without any value are left out."""
    columns = [data.times[..., None], np.where(data.observed, data.values, np.nan)]
    rows = np.concatenate([*columns, data.inputs] if inputs else columns, -1).astype(float)
    filled = np.any(data.observed, -1)
    return [
        [_hash(row.tobytes()) for row in series[mask]]
        for series, mask in zip(rows, filled, strict=True)
    ]


def step_hashes(data: Trajectories, *, inputs: bool = True) -> list[set[bytes]]:
    """A short hash of every two consecutive rows of each series.

    A window of a recording shares them with the whole, however it was cut and named. A single row
    may be common to many recordings, such as a fixed start; two in a row are not, unless nothing
    changes from one to the next, as where a sensor saturates: those are left out.
    """
    found = []
    seen = np.where(data.observed, data.values, np.nan)
    for series, rows in enumerate(row_hashes(data, inputs=inputs)):
        values = seen[series][np.any(data.observed[series], -1)]
        same = np.all((values[1:] == values[:-1]) | np.isnan(values[1:] + values[:-1]), -1)
        pairs = [_hash(a + b) for a, b in pairwise(rows)]
        told = {pair for pair, constant in zip(pairs, same, strict=True) if not constant}
        found.append(told or set(pairs) or set(rows))
    return found


def _hash(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=SIZE).digest()


def pack(hashes: list[set[bytes]]) -> str:
    """All steps of a set of recordings as text."""
    return base64.b64encode(b"".join(sorted(set().union(*hashes)))).decode("ascii")


def unpack(text: str) -> set[bytes]:
    """What `pack` wrote."""
    content = base64.b64decode(text.encode("ascii"), validate=True)
    return {content[start : start + SIZE] for start in range(0, len(content), SIZE)}
