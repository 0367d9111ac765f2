"""What is read out of real records: the equations of chemostats, a double pendulum and an example.

    HYBRIDSDE_DATA=… python benchmarks/discovered.py [--out docs/results/discovered.md]

Each of the settings in `examples`, and the example of `hybridsde init --example`, is fitted with a
library of terms on its training recordings; `discover` then writes the equations. Beside them: the
CRPS of forecasts of the held-out recordings, and that of analogues.
"""

import argparse
import subprocess
import sys
import tempfile
import warnings
from dataclasses import replace
from pathlib import Path

import hybridsde as hs
from hybridsde.project.project import Project
from hybridsde.registry import SYSTEMS
from hybridsde.run.windows import forecast_windows

EXAMPLES = Path(__file__).parents[1] / "examples"


def settings_of(name: str, folder: Path) -> Path:
    """The settings of an example; the generated one and the pendulum's table are written first."""
    if name == "predators":
        command = [sys.executable, "-m", "hybridsde", "init", "--example", "--out", str(folder)]
        subprocess.run(command, check=True, capture_output=True)
        return folder / "settings.toml"
    if name == "double_pendulum":  # its first part writes the table
        script = EXAMPLES / "double_pendulum.py"
        exec(script.read_text().split("# %% Fit")[0], {"__file__": str(script)})
    return EXAMPLES / f"{name}.toml"


def section(name: str, folder: Path) -> str:
    """Equations, and how well they forecast."""
    project = Project.open(settings_of(name, folder))
    split, horizon = project.split, project.settings.forecast.horizon
    assert split.test is not None
    wanted = replace(project.model, learned="library")
    run = hs.fit(wanted, split.train, validation=split.validation, horizon=horizon)
    windows = forecast_windows(split.test, horizon)
    plain = SYSTEMS["analogues"](wanted.observations, tuple(wanted.positive), 1)
    plain = replace(plain, inputs=tuple(wanted.inputs))
    scores = {
        "these equations": run.score(windows).loc["overall"],
        "analogues": hs.fit(plain, split.train).score(windows).loc["overall"],
    }
    told = "; ".join(
        f"{who}: CRPS {one['crps']:.3g}, coverage {one['coverage90']:.2f}"
        for who, one in scores.items()
    )
    return f"## {name}\n\n```text\n{run.equations(split.train)}\n```\n\nHeld out: {told}.\n"


def main() -> None:
    """All of them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", nargs="*", default=["predators", "chemostat", "double_pendulum"])
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    parts = []
    with tempfile.TemporaryDirectory() as folder:
        for name in chosen.only:
            parts.append(section(name, Path(folder) / name))
            print(parts[-1], flush=True)
    if chosen.out:
        chosen.out.write_text("\n".join(parts))


if __name__ == "__main__":
    main()
