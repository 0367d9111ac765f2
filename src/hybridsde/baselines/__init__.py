"""Systems to compare with: those of the paper's Table 2, and simple ones."""

from hybridsde.baselines.analogues import Analogues as Analogues
from hybridsde.baselines.base import AbstractBaseline as AbstractBaseline
from hybridsde.baselines.dtsbn import DTSBN as DTSBN
from hybridsde.baselines.kalman import LinearGaussian as LinearGaussian
from hybridsde.baselines.neural_ode import NeuralODE as NeuralODE
from hybridsde.baselines.np_ode import NpODE as NpODE
from hybridsde.baselines.ode2vae import ODE2VAE as ODE2VAE
from hybridsde.baselines.simple import Climatology as Climatology
from hybridsde.baselines.simple import Persistence as Persistence
from hybridsde.baselines.var import VectorAutoregression as VectorAutoregression
