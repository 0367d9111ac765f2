"""Hashes of recordings, to tell later whether a model has seen them."""

import base64
import hashlib

import numpy as np

from hybridsde.data.trajectories import Trajectories

SIZE = 8
"""Bytes that are kept of the hash of a step."""


def series_prints(data: Trajectories) -> dict[str, str]:
    """A hash of every series: its times, values and inputs."""
    prints = {}
    for row, name in enumerate(data.ids):
        length = int(data.lengths[row])
        content = hashlib.sha256()
        for array in (data.times, np.where(data.observed, data.values, np.nan), data.inputs):
            content.update(np.ascontiguousarray(array[row, :length], float).tobytes())
        prints[name] = content.hexdigest()
    return prints


def step_prints(data: Trajectories) -> list[set[bytes]]:
    """A short hash of every two consecutive rows of each series.

    A window of a recording shares them with the whole, however it was cut and named. A single row
    may be common to many recordings, such as a fixed start; two in a row are not.
    """
    seen = np.where(data.observed, data.values, np.nan)
    rows = np.concatenate([data.times[..., None], seen], -1)
    pairs = np.ascontiguousarray(np.concatenate([rows[:, :-1], rows[:, 1:]], -1), float)
    filled = np.any(data.observed, -1)
    counted = filled[:, :-1] & filled[:, 1:]
    return [
        {hashlib.blake2b(pair.tobytes(), digest_size=SIZE).digest() for pair in series[mask]}
        for series, mask in zip(pairs, counted, strict=True)
    ]


def pack(prints: list[set[bytes]]) -> str:
    """All steps of a set of recordings as text."""
    return base64.b64encode(b"".join(sorted(set().union(*prints)))).decode("ascii")


def unpack(text: str) -> set[bytes]:
    """What `pack` wrote."""
    content = base64.b64decode(text.encode("ascii"), validate=True)
    return {content[start : start + SIZE] for start in range(0, len(content), SIZE)}
