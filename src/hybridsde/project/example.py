"""An example to try the tool on: recordings of predators and prey, and settings for them."""

from pathlib import Path

from hybridsde._errors import InputError
from hybridsde._files import make_folder, write_whole
from hybridsde.datasets.predator_prey import TRAJECTORIES, recordings

SETTINGS = """\
# Predators y and prey x. The growth of the prey is known; what the predators do is learned.

[data]
files = "recordings.csv"
id = "run"
time = "t"
unit = "years"
states = ["x", "y"]

[physics]
equations = ["dx = growth*x - eaten*x*y"]

[physics.parameters]
growth = 2.0
eaten = 1.0
"""


def write_example(folder: Path, count: int = TRAJECTORIES, *, regular: bool = False) -> Path:
    """Write recordings and settings; returns the path of the settings."""
    table, settings = folder / "recordings.csv", folder / "settings.toml"
    for path in (table, settings):
        if path.exists():
            raise InputError(f"{path} exists. Choose another folder with --out.")
    make_folder(folder)
    write_whole(table, recordings(count, regular=regular).to_csv(index=False))
    write_whole(settings, SETTINGS)
    return settings
