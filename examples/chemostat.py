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
)

# %% Fit. Recordings that were kept choose the epoch, and calibrate forecasts of two weeks.
training = hs.Training(epochs=EPOCHS)
run = hs.fit(model, train, training=training, validation=kept, horizon=14)

# %% Two weeks ahead, from every fortnight of the chemostats that were never seen.
print(run.score(test.windows(15, 14, least=2)).round(2))
