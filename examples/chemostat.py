"""Rotifers and algae: rough equations and ten real recordings with gaps."""

# %% Recordings: one row per day and chemostat; see chemostat.toml for the same in settings.
import os
from pathlib import Path

import hybridsde as hs

EPOCHS = 150
folder = os.environ.get("HYBRIDSDE_DATA")
if folder is None:
    raise SystemExit("Set HYBRIDSDE_DATA to the folder that holds chemostat/rotifer_algae.csv.")
data = hs.read_csv(
    Path(folder) / "chemostat" / "rotifer_algae.csv",
    id="experiment",
    time="day",
    unit="day",
    states=["algae", "rotifers"],
    inputs=["medium_N"],
)
train, test = data.split(0.7, seed=0)
train, kept = train.split(0.85, seed=1)

# %% What is known, with parameters to be found within bounds.
physics = hs.equations(
    "dalgae = growth*algae*(1 - algae/capacity) - eaten*algae*rotifers",
    "drotifers = gain*algae*rotifers - loss*rotifers",
    growth=hs.Bounded.of(1.0, 0.1, 4.0),
    capacity=hs.Bounded.of(5.0, 1.0, 20.0),
    eaten=hs.Bounded.of(0.04, 0.005, 0.3),
    gain=hs.Bounded.of(0.5, 0.05, 3.0),
    loss=hs.Bounded.of(0.4, 0.1, 1.5),
)
model = hs.HybridSDE(
    states=["algae", "rotifers"],
    positive=["algae", "rotifers"],
    inputs=["medium_N"],
    physics=physics,
    hidden=(50, 50),
    diffusion="learn",
    noise="learn",
    start="uncertain",
)

# %% Fit with the Wiener noise integrated out, then calibrate on recordings kept for that.
run = hs.fit(
    model,
    train.pieces(120),
    objective=hs.EmpiricalPACBayes(estimator="filtered", path_kl="mean"),
    solver=hs.Heun(),
    training=hs.Training(epochs=EPOCHS, batch_size=4),
    validation=kept.pieces(120),
)
run = hs.calibrate(run, kept.pieces(15))

# %% Two weeks ahead, from every fortnight of the chemostats that were never seen.
print(run.score(test.pieces(15)).round(2))
