"""The hybrid Bayesian neural SDE and its parts."""

from hybridsde.model.bayesian import BayesianMLP as BayesianMLP
from hybridsde.model.bayesian import MeanField as MeanField
from hybridsde.model.bayesian import MixtureMLP as MixtureMLP
from hybridsde.model.bayesian import SampledNetworks as SampledNetworks
from hybridsde.model.bayesian import gaussian_kl as gaussian_kl
from hybridsde.model.diffusion import AbstractDiffusion as AbstractDiffusion
from hybridsde.model.diffusion import DiagonalDiffusion as DiagonalDiffusion
from hybridsde.model.diffusion import FunctionDiffusion as FunctionDiffusion
from hybridsde.model.diffusion import MatrixDiffusion as MatrixDiffusion
from hybridsde.model.drift import Gate as Gate
from hybridsde.model.drift import KnownDrift as KnownDrift
from hybridsde.model.drift import LearnedDrift as LearnedDrift
from hybridsde.model.latent import Latent as Latent
from hybridsde.model.network import MLP as MLP
from hybridsde.model.observation import AbstractObservation as AbstractObservation
from hybridsde.model.observation import GaussianObservation as GaussianObservation
from hybridsde.model.scaling import Scale as Scale
from hybridsde.model.scaling import Standardiser as Standardiser
from hybridsde.model.sde import SDE as SDE
from hybridsde.model.sde import BayesianSDE as BayesianSDE
from hybridsde.model.sde import check_starts as check_starts
from hybridsde.model.sde import physics_sde as physics_sde
from hybridsde.model.start import AbstractStart as AbstractStart
from hybridsde.model.start import FirstObservation as FirstObservation
from hybridsde.model.start import UncertainStart as UncertainStart
from hybridsde.model.weights import HeldWeights as HeldWeights
