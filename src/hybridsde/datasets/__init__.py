"""Systems to try things on, simulated from a seed."""

from hybridsde.datasets import lorenz as lorenz
from hybridsde.datasets import lotka_volterra as lotka_volterra
from hybridsde.datasets import machines as machines
from hybridsde.datasets import pendulum as pendulum
from hybridsde.datasets import predator_prey as predator_prey
