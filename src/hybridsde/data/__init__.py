"""Recordings in: series of different lengths, irregular times, missing values, inputs."""

from hybridsde.data.batch import Batch as Batch
from hybridsde.data.trajectories import Trajectories as Trajectories
