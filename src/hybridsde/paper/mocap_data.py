"""CMU motion capture: the walking sequences of Haussmann et al. 2021, Table 2.

The files are not part of this package. They are looked for in a folder `mocap` of the folder that
the environment variable HYBRIDSDE_DATA names, or in `folder`.

- `walking`: MOCAP-2 of the paper, subject 35 walking. 16 training, 3 validation and 4 test
  sequences of 300 frames. Every published sequence is centred on its own mean over all 300 frames,
  so numbers on it know the future mean; `centred=False` gives the sequences without that leak.
- `mirrored`: sequences together with their mirror images, as a walker seen in a mirror is one.
- `posture`: the mean pose that was taken away, to draw a walker with.
- `subjects`: a substitute for MOCAP-1, 43 walkers in the same channels. Subject 35 is left out by
  default, so that it can be a prior for the others.
"""

import hashlib
import os
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from hybridsde._errors import InputError
from hybridsde.data import Trajectories
from hybridsde.paper.amc import BONES, CHANNELS, FPS, read_amc

VARIABLE = "HYBRIDSDE_DATA"
FRAMES = 300
"""Of every sequence of subject 35."""
DATABASE = "the CMU Graphics Lab Motion Capture Database, mocap.cs.cmu.edu"


@dataclass(frozen=True)
class Source:
    """A file, how to recognise it, and where it comes from."""

    name: str
    sha256: str
    origin: str

    def find(self, folder: str | Path | None) -> Path:
        """The path of the file, or an `InputError` that says how to get it."""
        where = folder if folder is not None else os.environ.get(VARIABLE)
        places = (
            [] if where is None else [Path(where) / "mocap" / self.name, Path(where) / self.name]
        )
        for path in places:
            if path.is_file():
                return self._checked(path)
        looked = f"not in {places[0].parent}" if places else f"{VARIABLE} is not set"
        raise InputError(
            f"The motion-capture file {self.name} is needed ({looked}). It comes from "
            f"{self.origin}; its SHA-256 is {self.sha256}. Put it into a folder `mocap` and name "
            f"the folder above in {VARIABLE}."
        )

    def _checked(self, path: Path) -> Path:
        found = hashlib.sha256(path.read_bytes()).hexdigest()
        if found != self.sha256:
            raise InputError(
                f"{path} is not the expected file: its SHA-256 is {found}, not {self.sha256}. It "
                f"comes from {self.origin}."
            )
        return path


CENTRED = Source(
    "mocap35.mat",
    "105484f138487f10209cce883d26e2e030d10a6df6f10159f4e6e253f9b03b8d",
    f"the repository uncbiag/neuro_shooting, after {DATABASE}",
)
UNCENTRED = Source(
    "mocap35_uncentred.npz",
    "03cf7b6316c5e136007e5021a95944ddf7bcb5cf298e00c45fb7cac0c3ddf1cf",
    f"the repository hegdepashupati/gaussian-process-odes, after {DATABASE}",
)
SUBJECTS = Source(
    "mocap1_distinct43.npz",
    "bbb20d98f5b8c5368264db527c19f5a0965aa034b80e33b7ba74d79e9ba7f5e0",
    f"walking trials of 43 subjects, read by `read_amc` or from the BVH release of {DATABASE}",
)

TRIAL = Source(
    "35_01.amc", "0743f4ea48e7e199cd56b2810b5ce81f8ede08d32ff79aa4e363c44cc4fe33aa", DATABASE
)


@dataclass(frozen=True)
class Walking:
    """Sequences for training, for choosing a checkpoint, and for scores."""

    train: Trajectories
    validation: Trajectories
    test: Trajectories


def walking(*, centred: bool = True, folder: str | Path | None = None) -> Walking:
    """Subject 35, in degrees at 120 frames a second; root velocity per frame."""
    if centred:
        from scipy.io import loadmat  # a slow import, for this file alone

        found = loadmat(CENTRED.find(folder))
        parts = [found[name] for name in ("Xtr", "Xval", "Xtest")]
    else:
        with np.load(UNCENTRED.find(folder), allow_pickle=False) as archive:
            parts = [archive[name] for name in ("train", "validation", "test")]
    names = ("train", "validation", "test")
    return Walking(*(_recordings(part, name) for part, name in zip(parts, names, strict=True)))


def posture(*, centred: bool = True, folder: str | Path | None = None) -> np.ndarray:
    """What to add to `walking` data for angles of a body, from the raw trial of sequence 0.

    Centred sequences have lost their own means, so that of sequence 0 stands for all of them.
    """
    raw = read_amc(TRIAL.find(folder)).values[0, :FRAMES].mean(0)
    return raw if centred else raw - walking(centred=False, folder=folder).train.values[0].mean(0)


def mirrored(data: Trajectories) -> Trajectories:
    """Every sequence and its mirror image: left and right swapped, sideways turns reversed."""
    images = replace(
        data,
        values=data.values[..., MIRROR] * SIGNS,
        observed=data.observed[..., MIRROR],
        ids=tuple(f"{name}, mirrored" for name in data.ids),
    )
    return data.join(images)


def _other_side(channel: str) -> str:
    """The channel that takes this one's place in a mirror."""
    bone = channel.split("_")[0]
    other = {"l": "r", "r": "l"}.get(bone[0], "") + bone[1:]
    return channel.replace(bone, other, 1) if other in BONES else channel


MIRROR = [CHANNELS.index(_other_side(name)) for name in CHANNELS]
SIGNS = np.array([-1.0 if name.endswith(("_vx", "_ry", "_rz")) else 1.0 for name in CHANNELS])


def subjects(
    *, without: tuple[str, ...] = ("35",), folder: str | Path | None = None
) -> Trajectories:
    """One walking window of each of 43 subjects, centred; some subjects left out."""
    with np.load(SUBJECTS.find(folder), allow_pickle=False) as archive:
        values, offsets, trials = archive["Y"], archive["offsets"], archive["trials"]
    kept = [n for n, trial in enumerate(trials) if str(trial).split("_")[0] not in without]
    series = [np.asarray(values[offsets[n] : offsets[n + 1]], float) for n in kept]
    times = [np.arange(len(one)) / FPS for one in series]
    ids = [str(trials[n]) for n in kept]
    return Trajectories.from_arrays(times, series, states=CHANNELS, ids=ids)


def _recordings(values: np.ndarray, part: str) -> Trajectories:
    series = [np.asarray(one, float) for one in values]
    times = [np.arange(len(one)) / FPS for one in series]
    ids = [f"{part} {number}" for number in range(len(series))]
    return Trajectories.from_arrays(times, series, states=CHANNELS, ids=ids)
