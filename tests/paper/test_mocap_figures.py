"""Pictures of a forecast walk: what is drawn, in which units, and what the files hold."""

from dataclasses import replace
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pytest
from PIL import Image

import hybridsde as hs
from hybridsde.paper import mocap_figures, mocap_sde
from hybridsde.paper.amc import CHANNELS, FPS
from hybridsde.paper.figure_data import walking_picture
from hybridsde.paper.mocap_data import Walking
from hybridsde.paper.mocap_figures import ANGLES, angles, save_stick_figure
from hybridsde.report.figures import save

pytestmark = pytest.mark.long

ROWS, GIVEN = 40, 3


def walks(series, seed):
    """Every channel swings by 20 degrees at its own phase."""
    rng = np.random.default_rng(seed)
    times, phases = np.arange(ROWS) / FPS, rng.uniform(0, 6, (series, 1, len(CHANNELS)))
    values = 20 * np.sin(12 * times[:, None] + phases)
    ids = [f"{seed} {n}" for n in range(series)]
    return hs.Trajectories.from_arrays([times] * series, list(values), states=CHANNELS, ids=ids)


DATA = Walking(walks(4, seed=1), walks(2, seed=2), walks(3, seed=3))
SHOWN = 1
PRESET = replace(
    mocap_sde.PAPER,
    model=replace(
        mocap_sde.PAPER.model, states=("z0", "z1"), latent=hs.Latent(GIVEN, (), ()), hidden=()
    ),
    iterations=((2, 10),),
    choose_epoch=False,
    members=2,
    noise_of_residuals=True,
)


@pytest.fixture(scope="module")
def picture():
    return walking_picture(PRESET, DATA, SHOWN, seed=0, watch=lambda name: ())


@pytest.fixture(scope="module")
def draws(picture):
    (forecast,) = picture.forecasts.values()
    return forecast.observations


def test_one_test_sequence_is_forecast_after_its_given_frames(picture, draws):
    assert picture.truth.ids == ("3 1",)
    np.testing.assert_array_equal(picture.truth.values, DATA.test.values[[SHOWN]])
    np.testing.assert_allclose(draws["clock"].values, DATA.test.times[[SHOWN], GIVEN:])
    assert draws.sizes == {"draw": 200, "trajectory": 1, "time": ROWS - GIVEN, "obs": 50}
    assert tuple(draws["obs"].values) == CHANNELS


def test_both_members_have_half_of_the_draws(draws):
    """Means of the halves are further apart than those of two random halves would be."""
    values = draws.isel(trajectory=0, time=-1).values
    first, second = values[:100], values[100:]
    error = np.sqrt((first.var(0) + second.var(0)) / 100)
    assert (np.abs(first.mean(0) - second.mean(0)) > 10 * error).any()


@pytest.fixture
def figure(picture):
    figure = angles(picture, "A walk")
    yield figure
    plt.close(figure)


def test_angles_are_drawn_in_degrees_against_seconds(figure, picture, draws):
    assert figure.get_suptitle() == "A walk"
    assert "degrees" in figure.get_supylabel()
    panels = figure.get_axes()
    assert [axes.get_title() for axes in panels] == list(ANGLES.values())
    assert [axes.get_xlabel() for axes in panels[-3:]] == ["time (s)"] * 3
    for axes, channel in zip(panels, ANGLES, strict=True):
        lines = {line.get_label(): line.get_xydata() for line in axes.get_lines()}
        column = CHANNELS.index(channel)
        recorded = np.stack([picture.truth.times[0], picture.truth.values[0, :, column]], 1)
        np.testing.assert_allclose(lines["recorded"], recorded)
        median = np.median(draws.values[:, 0, :, column], 0)
        np.testing.assert_allclose(lines["median"][:, 1], median, rtol=1e-5, atol=1e-4)
        np.testing.assert_allclose(lines["median"][:, 0], picture.truth.times[0, GIVEN:])


def test_angles_are_written_twice(figure, tmp_path):
    assert save(figure, tmp_path, "angles") == ["angles.png", "angles.svg"]
    with Image.open(tmp_path / "angles.png") as image:
        assert image.format == "PNG"
        assert image.size == (1650, 810)
        assert len(image.convert("RGB").getcolors(2**24)) > 50
    assert "<svg" in (tmp_path / "angles.svg").read_text()[:1000]


def test_a_stick_figure_walks_at_half_speed(picture, draws, tmp_path, monkeypatch):
    posture, drawn = np.linspace(-10, 10, len(CHANNELS)), []

    def joints(channels):
        drawn.append(channels)
        return skeleton(channels)

    skeleton = mocap_figures.joints
    monkeypatch.setattr(mocap_figures, "joints", joints)
    save_stick_figure(picture, posture, tmp_path / "mocap_figures.gif", "A walk")
    assert [path.name for path in tmp_path.iterdir()] == ["mocap_figures.gif"]
    with Image.open(tmp_path / "mocap_figures.gif") as image:
        assert image.format == "GIF"
        assert image.n_frames == -(-(ROWS - GIVEN) // 6)
        seconds, frames = 0.0, []
        for number in range(image.n_frames):
            image.seek(number)
            seconds += image.info["duration"] / 1000
            frames.append(np.asarray(image.convert("RGB"), int))
    assert seconds == pytest.approx(2 * 6 * len(frames) / FPS)
    for frame, after in pairwise(frames):
        assert (np.abs(frame - after).max(-1) > 50)[50:].sum() > 100  # below the title
    recorded, mean, *paths = (angles - posture for angles in drawn)
    np.testing.assert_allclose(recorded, picture.truth.values[0, GIVEN:])
    np.testing.assert_allclose(mean, draws.values[:, 0].mean(0), atol=1e-4)
    assert len(paths) == mocap_figures.PATHS


def test_moving_means_take_noise_away_and_leave_motion():
    """Straight lines stay, but for the edges; the variance of noise falls by Σ w²."""
    time = np.arange(2000.0)
    line = np.stack([3 * time, -time], 1)
    kept = mocap_figures._without_noise(line[None])[0]
    assert kept.shape == line.shape
    np.testing.assert_allclose(kept[7:-7], line[7:-7], rtol=1e-9)
    noise = np.random.default_rng(0).normal(size=(1, 2000, 2))
    weights = np.sin(np.pi * np.arange(1, 16) / 16) ** 2 / 8
    left = mocap_figures._without_noise(noise).var()
    assert left == pytest.approx((weights**2).sum(), rel=0.3)
