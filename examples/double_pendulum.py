"""A measured double pendulum whose friction nobody wrote down."""

# %% Recordings: 30 pieces of 2.7 s, kept 50 times a second.
import os
from pathlib import Path

import pandas as pd
from scipy.io import loadmat

from hybridsde.project.project import Project

folder = os.environ.get("HYBRIDSDE_DATA")
if folder is None:
    raise SystemExit("Set HYBRIDSDE_DATA to the folder that holds double_pendulum/.")
EVERY = 20
here = Path(__file__).parent
raw = loadmat(Path(folder) / "double_pendulum" / "DoublePendulumDataForParameterEstimation.mat")
pieces = []
for kind in ("id", "vad"):
    for number, (times, values) in enumerate(
        zip(raw[f"Time_{kind}"][:, 0], raw[f"Y_{kind}"][:, 0], strict=True)
    ):
        t = times[::EVERY, 0] - times[0, 0]
        columns = dict(
            zip(("theta1", "theta2", "omega1", "omega2"), values[:, ::EVERY], strict=True)
        )
        pieces.append(pd.DataFrame({"piece": f"{kind}{number:02d}", "t": t.round(6), **columns}))
pd.concat(pieces).to_csv(here / "double_pendulum.csv", index=False)

# %% Fit what double_pendulum.toml says, and forecast one second of pieces that were never seen.
project = Project.open(here / "double_pendulum.toml")
run = project.fit()
print(run.score(project.test).round(4))
