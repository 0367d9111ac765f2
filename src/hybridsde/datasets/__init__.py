"""Systems to try things on: simulated from a seed, or read from public files."""

from hybridsde.datasets import lorenz as lorenz
from hybridsde.datasets import lotka_volterra as lotka_volterra
from hybridsde.datasets import mocap as mocap
from hybridsde.datasets.amc import read_amc as read_amc
