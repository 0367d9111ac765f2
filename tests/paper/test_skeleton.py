"""Joint positions: known poses, rigid bones, and the walker in a mirror."""

import numpy as np
import pytest

import hybridsde as hs
from hybridsde.paper import mocap_data
from hybridsde.paper.amc import CHANNELS
from hybridsde.paper.skeleton import SKELETON, joints, rotation


def pose(**angles):
    channels = np.zeros((1, len(CHANNELS)))
    for name, value in angles.items():
        channels[0, CHANNELS.index(name)] = value
    return channels


def along(ends, bone):
    return (ends[bone] - ends[SKELETON[bone].parent])[0] / SKELETON[bone].length


def test_rotations_turn_about_x_then_y_then_z():
    x, y = np.eye(3)[:2]
    np.testing.assert_allclose(rotation(np.array([0, 0, 90.0])) @ x, y, atol=1e-12)
    both = rotation(np.array([30.0, 40.0, 50.0]))
    one_by_one = (
        rotation(np.array([0, 0, 50.0]))
        @ rotation(np.array([0, 40.0, 0]))
        @ rotation(np.array([30.0, 0, 0]))
    )
    np.testing.assert_allclose(both, one_by_one, atol=1e-12)


def test_at_rest_arms_are_held_out_and_thighs_are_apart():
    ends = joints(pose())
    np.testing.assert_allclose(along(ends, "lhumerus"), [1, 0, 0], atol=1e-12)
    np.testing.assert_allclose(along(ends, "rfemur")[0], -np.sin(np.radians(20)))
    np.testing.assert_allclose(along(ends, "head"), [0, 1, 0], atol=1e-12)


def test_a_bent_knee_moves_the_shin_back_and_leaves_the_thigh():
    straight, bent = joints(pose()), joints(pose(rtibia_rx=90.0))
    np.testing.assert_allclose(bent["rfemur"], straight["rfemur"])
    np.testing.assert_allclose(along(bent, "rtibia"), [0, 0, -1], atol=1e-12)


def test_a_turned_root_turns_everything():
    turned, rest = joints(pose(root_ry=90.0)), joints(pose())
    about_y = rotation(np.array([0, 90.0, 0]))
    for name in SKELETON:
        np.testing.assert_allclose(turned[name][0], about_y @ rest[name][0], atol=1e-12)


def test_bones_keep_their_lengths_and_a_mirror_shows_the_mirrored_body():
    rng = np.random.default_rng(0)
    values = rng.normal(scale=40, size=(5, len(CHANNELS)))
    ends = joints(values)
    for name, bone in SKELETON.items():
        lengths = np.linalg.norm(ends[name] - ends[bone.parent], axis=-1)
        np.testing.assert_allclose(lengths, bone.length)
    data = hs.Trajectories.from_arrays([np.arange(5.0)], [values], states=CHANNELS, ids=["walk"])
    both = mocap_data.mirrored(data)
    assert both.ids == ("walk", "walk, mirrored")
    images = joints(both.values[1])
    sides = {"l": "r", "r": "l"}
    for name in SKELETON:
        other = sides.get(name[0], "") + name[1:]
        partner = other if other in SKELETON else name
        np.testing.assert_allclose(images[partner], ends[name] * [-1, 1, 1], atol=1e-9)


def test_a_mirror_image_of_a_mirror_image_is_the_walker():
    values = np.random.default_rng(1).normal(size=(4, len(CHANNELS)))
    data = hs.Trajectories.from_arrays([np.arange(4.0)], [values], states=CHANNELS)
    twice = mocap_data.mirrored(mocap_data.mirrored(data).take([1])).values[1]
    np.testing.assert_allclose(twice, values)


@pytest.mark.parametrize("channel", ["lowerback_rx", "rfemur_rx", "rtibia_rx"])
def test_forward_turns_have_no_sides(channel):
    assert mocap_data.SIGNS[CHANNELS.index(channel)] == 1
