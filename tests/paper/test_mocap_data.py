"""Motion capture: the channel rule, the files, and what is said without them."""

import os
from pathlib import Path

import numpy as np
import pytest

import hybridsde as hs
from hybridsde.paper import mocap_data
from hybridsde.paper.amc import BONES, CHANNELS, as_channels, read_amc

DATA = os.environ.get("HYBRIDSDE_DATA")
with_data = pytest.mark.skipif(DATA is None, reason="HYBRIDSDE_DATA is not set")


def write_amc(path, frames=3, without=(), extra=""):
    """A file in which every number tells its frame."""
    lines = ["#!OML:ASF made.ASF", ":FULLY-SPECIFIED", ":DEGREES"]
    for frame in range(1, frames + 1):
        lines.append(str(frame))
        for bone, axes in BONES.items():
            if bone not in without:
                numbers = [str(frame**2 + k) for k in range(len(axes))]
                lines.append(" ".join([bone, *numbers]))
        lines.append("rhand 1 2")
    path.write_text("\n".join(lines) + "\n" + extra)
    return path


def test_fifty_channels_with_root_velocity(tmp_path):
    found = read_amc(write_amc(tmp_path / "07_01.amc"))
    assert found.ids == ("07_01",)
    assert found.states == CHANNELS
    assert len(CHANNELS) == 50
    np.testing.assert_allclose(found.values[0, :, 0], [3, 5, 5])  # 4 − 1, 9 − 4, repeated
    np.testing.assert_allclose(found.values[0, :, CHANNELS.index("root_rx")], [4, 7, 12])
    np.testing.assert_allclose(found.times[0], np.arange(3) / 120)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"without": ("head",)}, "frame 1 has no 'head'"),
        ({"frames": 1}, "holds 1 frames"),
        ({"extra": "head 1 2\n"}, "'head' has 2 numbers instead of 3"),
        ({"extra": "head 1 2 x\n"}, "what is not a number"),
        ({"extra": "4\nroot 1 2 3 4 5 6\n"}, "frame 4 has no 'lowerback'"),
    ],
)
def test_damaged_files(options, message, tmp_path):
    with pytest.raises(hs.InputError, match=message):
        read_amc(write_amc(tmp_path / "x.amc", **options))


def test_what_is_missing_is_named(tmp_path, monkeypatch):
    monkeypatch.delenv("HYBRIDSDE_DATA", raising=False)
    with pytest.raises(hs.InputError, match=r"mocap35\.mat is needed .*not set.*SHA-256"):
        mocap_data.walking()
    with pytest.raises(hs.InputError, match=r"mocap1_distinct43\.npz is needed \(not in"):
        mocap_data.subjects(folder=tmp_path)
    (tmp_path / "mocap35_uncentred.npz").write_bytes(b"something else")
    with pytest.raises(hs.InputError, match="not the expected file"):
        mocap_data.walking(centred=False, folder=tmp_path)


@with_data
def test_the_raw_trial_is_the_first_training_sequence():
    raw = read_amc(Path(str(DATA)) / "mocap/35_01.amc").values[0, :300]
    published = mocap_data.walking().train.values[0]
    np.testing.assert_allclose(raw - raw.mean(0), published, atol=1e-3)


@with_data
def test_the_sets_of_the_paper():
    centred, plain = mocap_data.walking(), mocap_data.walking(centred=False)
    for found in (centred, plain):
        assert [len(p) for p in (found.train, found.validation, found.test)] == [16, 3, 4]
        assert found.test.values.shape == (4, 300, 50)
    for a, b in zip(centred.test.values, plain.test.values, strict=True):
        # Root velocities were differenced in two slightly different ways.
        np.testing.assert_allclose(a[:, 3:], (b - b.mean(0))[:, 3:], atol=1e-3)
        np.testing.assert_allclose(a[:, :3], (b - b.mean(0))[:, :3], atol=0.02)
    zero = (centred.test.values**2).mean()
    assert zero == pytest.approx(33.62, abs=0.005)


@with_data
def test_other_walkers_without_subject_35():
    others = mocap_data.subjects()
    assert len(others) == 42
    assert not any(name.startswith("35_") for name in others.ids)
    assert len(mocap_data.subjects(without=())) == 43


def test_the_last_difference_is_repeated():
    walk = np.arange(4.0)[:, None] ** 2 * np.ones(6)
    np.testing.assert_allclose(as_channels(walk)[:, 0], [1, 3, 5, 5])


@with_data
def test_a_walker_half_a_stride_later_looks_like_the_mirror_image():
    walking = mocap_data.walking().train
    images = mocap_data.mirrored(walking).values[len(walking) :]
    half = round(0.5 * 120 / 0.89)  # strides a second in these sequences
    later, image = walking.values[:, half:], images[:, :-half]
    moves = walking.values.std((0, 1)) > 3
    for channel in np.flatnonzero(moves):
        found = np.corrcoef(later[..., channel].ravel(), image[..., channel].ravel())[0, 1]
        assert found > 0.1, CHANNELS[channel]


@with_data
def test_the_posture_of_the_first_sequence():
    raw = read_amc(Path(str(DATA)) / "mocap/35_01.amc").values[0, :300]
    np.testing.assert_allclose(
        mocap_data.walking().train.values[0] + mocap_data.posture(), raw, atol=2e-3
    )
    np.testing.assert_allclose(
        mocap_data.walking(centred=False).train.values[0] + mocap_data.posture(centred=False),
        raw,
        atol=0.02,
    )
