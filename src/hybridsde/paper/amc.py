"""Raw motion-capture files of the CMU database, as channels that can be learned from.

An AMC file lists, frame by frame, the angles of every bone in degrees, at 120 frames a second. Of
its 62 channels hands, fingers, thumbs and toes are left out, which leaves 50. The position of the
root is replaced by its difference from frame to frame, so that walking on does not matter.
"""

from pathlib import Path

import numpy as np

from hybridsde._errors import InputError
from hybridsde.data import Trajectories

FPS = 120
BONES = {
    "root": ("x", "y", "z", "rx", "ry", "rz"),
    "lowerback": ("rx", "ry", "rz"),
    "upperback": ("rx", "ry", "rz"),
    "thorax": ("rx", "ry", "rz"),
    "lowerneck": ("rx", "ry", "rz"),
    "upperneck": ("rx", "ry", "rz"),
    "head": ("rx", "ry", "rz"),
    "rclavicle": ("ry", "rz"),
    "rhumerus": ("rx", "ry", "rz"),
    "rradius": ("rx",),
    "rwrist": ("ry",),
    "lclavicle": ("ry", "rz"),
    "lhumerus": ("rx", "ry", "rz"),
    "lradius": ("rx",),
    "lwrist": ("ry",),
    "rfemur": ("rx", "ry", "rz"),
    "rtibia": ("rx",),
    "rfoot": ("rx", "rz"),
    "lfemur": ("rx", "ry", "rz"),
    "ltibia": ("rx",),
    "lfoot": ("rx", "rz"),
}
"""The bones that are kept, in the order of the channels, with the axes that move."""
ANGLES = [f"{bone}_{axis}" for bone, axes in BONES.items() for axis in axes if axis[0] == "r"]
CHANNELS = ("root_vx", "root_vy", "root_vz", *ANGLES)


def read_amc(path: str | Path) -> Trajectories:
    """One trial as a recording of 50 channels, not centred; its id is the name of the file."""
    path = Path(path)
    frames = _frames(path)
    if len(frames) < 2:
        raise InputError(f"{path} holds {len(frames)} frames; at least two are needed.")
    values = np.array([[number for bone in BONES for number in frame[bone]] for frame in frames])
    return Trajectories.from_arrays(
        [np.arange(len(values)) / FPS], [as_channels(values)], states=CHANNELS, ids=[path.stem]
    )


def as_channels(values: np.ndarray) -> np.ndarray:
    """Root velocity in place of root position; the last difference is repeated."""
    steps = np.diff(values[:, :3], axis=0)
    return np.concatenate([np.concatenate([steps, steps[-1:]]), values[:, 3:]], 1)


def _frames(path: Path) -> list[dict[str, list[float]]]:
    """The numbers of every kept bone, frame by frame."""
    try:
        lines = path.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from None
    frames: list[dict[str, list[float]]] = []
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or line.startswith(("#", ":")):
            continue
        if len(words) == 1 and words[0].isdigit():
            frames.append({})
            continue
        if words[0] not in BONES:
            continue
        if not frames:
            raise InputError(f"{path}, line {number}: {words[0]!r} stands before any frame.")
        frames[-1][words[0]] = _numbers(words, path, number)
    for count, frame in enumerate(frames, 1):
        lacking = [bone for bone in BONES if bone not in frame]
        if lacking:
            raise InputError(
                f"{path}: frame {count} has no {lacking[0]!r}. It is not an AMC file of the CMU "
                "skeleton, or it was cut short."
            )
    return frames


def _numbers(words: list[str], path: Path, line: int) -> list[float]:
    wanted = len(BONES[words[0]])
    try:
        numbers = [float(word) for word in words[1:]]
    except ValueError:
        raise InputError(f"{path}, line {line}: {words[0]!r} holds what is not a number.") from None
    if len(numbers) != wanted:
        raise InputError(
            f"{path}, line {line}: {words[0]!r} has {len(numbers)} numbers instead of {wanted}."
        )
    return numbers
