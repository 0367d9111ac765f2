"""Joint positions of a walker from the angles of an AMC file.

The rest pose is that of the CMU skeletons: arms held out, thighs 20 degrees apart from the
vertical. Directions and axes are those that all of its subjects share; lengths are rounded
proportions of an adult, in units of the thigh, since the lengths of subject 35 are not shipped.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from hybridsde.paper.amc import BONES, CHANNELS


@dataclass(frozen=True)
class Bone:
    """Where a bone points at rest, and the axes that its angles turn about (degrees, XYZ)."""

    parent: str
    direction: tuple[float, float, float]
    length: float
    axis: tuple[float, float, float] = (0.0, 0.0, 0.0)


UP, THIGH = (0.0, 1.0, 0.0), 20.0


def _leg(side: str, sign: float) -> dict[str, Bone]:
    tilt = np.radians(THIGH)
    down = (sign * float(np.sin(tilt)), -float(np.cos(tilt)), 0.0)
    axis = (0.0, 0.0, sign * THIGH)
    return {
        f"{side}hipjoint": Bone("root", (sign * 0.7, -0.65, 0.32), 0.36),
        f"{side}femur": Bone(f"{side}hipjoint", down, 1.0, axis),
        f"{side}tibia": Bone(f"{side}femur", down, 1.0, axis),
        f"{side}foot": Bone(f"{side}tibia", (sign * 0.1, -0.28, 0.95), 0.3, (-90.0, 0.0, axis[2])),
    }


def _arm(side: str, sign: float) -> dict[str, Bone]:
    out, axis = (sign, 0.0, 0.0), (180.0, -sign * 30.0, -sign * 90.0)
    return {
        f"{side}clavicle": Bone("thorax", (sign * 0.94, 0.34, 0.0), 0.5),
        f"{side}humerus": Bone(f"{side}clavicle", out, 0.68, axis),
        f"{side}radius": Bone(f"{side}humerus", out, 0.48, axis),
        f"{side}wrist": Bone(f"{side}radius", out, 0.24, axis),
    }


SKELETON: dict[str, Bone] = {
    "lowerback": Bone("root", UP, 0.29),
    "upperback": Bone("lowerback", UP, 0.29),
    "thorax": Bone("upperback", UP, 0.29),
    "lowerneck": Bone("thorax", UP, 0.22),
    "upperneck": Bone("lowerneck", UP, 0.22),
    "head": Bone("upperneck", UP, 0.23),
    **_leg("l", 1.0),
    **_leg("r", -1.0),
    **_arm("l", 1.0),
    **_arm("r", -1.0),
}


def rotation(degrees: Float[np.ndarray, "*frame 3"]) -> Float[np.ndarray, "*frame 3 3"]:
    """R = R_z R_y R_x: first about x, then y, then z, all of them fixed axes."""
    x, y, z = np.moveaxis(np.radians(degrees), -1, 0)
    matrices = []
    for axis, angle in ((2, z), (1, y), (0, x)):
        first, second = (axis + 1) % 3, (axis + 2) % 3
        matrix = np.zeros((*angle.shape, 3, 3))
        matrix[..., axis, axis] = 1.0
        matrix[..., first, first] = matrix[..., second, second] = np.cos(angle)
        matrix[..., first, second], matrix[..., second, first] = -np.sin(angle), np.sin(angle)
        matrices.append(matrix)
    return matrices[0] @ matrices[1] @ matrices[2]


def joints(channels: Float[np.ndarray, "frame 50"]) -> dict[str, Float[np.ndarray, "frame 3"]]:
    """The far end of every bone about a root at the origin, frame by frame.

    With C the axes of a bone and M the turn by its angles, it stands at R = R_parent C M C⁻¹.
    """
    frames = len(channels)
    turns = {"root": rotation(_angles(channels, "root"))}
    ends = {"root": np.zeros((frames, 3))}
    for name, bone in SKELETON.items():
        axes = rotation(np.asarray(bone.axis))
        turn = rotation(_angles(channels, name))
        turns[name] = turns[bone.parent] @ axes @ turn @ axes.T
        along = np.asarray(bone.direction) / np.linalg.norm(bone.direction)
        ends[name] = ends[bone.parent] + bone.length * turns[name] @ along
    return ends


def _angles(channels: Float[np.ndarray, "frame 50"], bone: str) -> Float[np.ndarray, "frame 3"]:
    """Angles about x, y and z; zero where a bone does not turn."""
    angles = np.zeros((len(channels), 3))
    for axis in BONES.get(bone, ()):
        if axis[0] == "r":
            angles[:, "xyz".index(axis[1])] = channels[:, CHANNELS.index(f"{bone}_{axis}")]
    return angles
