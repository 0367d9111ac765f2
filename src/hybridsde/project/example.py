"""An example to try the tool on: recordings of predators and prey, and settings for them."""

from pathlib import Path

from hybridsde._errors import InputError
from hybridsde._files import make_folder, write_whole
from hybridsde.datasets.predator_prey import DIFFUSION, NOISE, TRAJECTORIES, recordings

SETTINGS = """\
# Predators y and prey x. The growth of the prey is known; what the predators do is learned, from
# few recordings. The others are kept for scores.

[data]
files = "recordings.csv"
id = "run"
time = "t"
unit = "years"
states = ["x", "y"]
test = {test:.2g}

[physics]
equations = ["dx = growth*x - eaten*x*y"]

[physics.parameters]
growth = 2.0
eaten = 1.0

[floor]
# The recordings are simulated. These are the true equations; no fit looks at them. Their score is
# the best that can be expected.
equations = ["dx = 2*x - x*y", "dy = -4*y + x*y"]
diffusion = {diffusion}
noise = {noise}
"""
LEARNED = 8
"""Recordings to learn from, where there are enough."""
FEWEST_TESTED = 0.2
"""Share of the recordings."""


def write_example(folder: Path, count: int = TRAJECTORIES, *, regular: bool = False) -> Path:
    """Write recordings and settings; returns the path of the settings."""
    table, settings = folder / "recordings.csv", folder / "settings.toml"
    for path in (table, settings):
        if path.exists():
            raise InputError(f"{path} exists. Choose another folder with --out.")
    make_folder(folder)
    write_whole(table, recordings(count, regular=regular).to_csv(index=False))
    test = max(FEWEST_TESTED, 1 - LEARNED / count)
    filled = SETTINGS.format(test=test, diffusion=list(DIFFUSION), noise=NOISE)
    write_whole(settings, filled)
    return settings
