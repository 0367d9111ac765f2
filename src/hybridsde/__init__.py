"""hybridsde: learn the missing part of a stochastic dynamical system, keep the known part.

    dh = (f_θ(h,t) + γ ∘ r_ξ(h,t)) dt + G(h,t) dW,   θ ~ p_φ(θ),   y_k ~ p(y | h_k)

This page is the public API. Folders of the package are named by what they hold. One name stands
for two things: `hybridsde.fit` is the function; its folder is reached by
`from hybridsde.fit.loop import …`.
"""

from hybridsde import baselines as baselines
from hybridsde import datasets as datasets
from hybridsde._devices import use_all_cores as use_all_cores
from hybridsde._errors import FitFailed as FitFailed
from hybridsde._errors import InputError as InputError
from hybridsde._errors import InputNotice as InputNotice
from hybridsde._parameters import AbstractParameter as AbstractParameter
from hybridsde._parameters import Bounded as Bounded
from hybridsde._parameters import Fixed as Fixed
from hybridsde._parameters import Free as Free
from hybridsde._parameters import Positive as Positive
from hybridsde._parameters import Relative as Relative
from hybridsde._parameters import trainable as trainable
from hybridsde.certify import AbstractLoss as AbstractLoss
from hybridsde.certify import BandMiss as BandMiss
from hybridsde.certify import Certificate as Certificate
from hybridsde.certify import CertificateRequest as CertificateRequest
from hybridsde.certify import ConformalBand as ConformalBand
from hybridsde.certify import IntervalMiss as IntervalMiss
from hybridsde.certify import ScaledCRPS as ScaledCRPS
from hybridsde.certify import TemperedLikelihood as TemperedLikelihood
from hybridsde.certify import TruncatedError as TruncatedError
from hybridsde.data import Batch as Batch
from hybridsde.data import Columns as Columns
from hybridsde.data import Trajectories as Trajectories
from hybridsde.data import from_frame as from_frame
from hybridsde.data import from_xarray as from_xarray
from hybridsde.data import read_csv as read_csv
from hybridsde.data import read_table as read_table
from hybridsde.data import to_frame as to_frame
from hybridsde.data import to_xarray as to_xarray
from hybridsde.fit import FitDiverged as FitDiverged
from hybridsde.fit import Fitted as Fitted
from hybridsde.fit import Langevin as Langevin
from hybridsde.fit import Progress as Progress
from hybridsde.fit import Training as Training
from hybridsde.fit import train as train
from hybridsde.fit import train_many as train_many
from hybridsde.forecast import AbstractForecaster as AbstractForecaster
from hybridsde.forecast import Ensemble as Ensemble
from hybridsde.forecast import Forecast as Forecast
from hybridsde.forecast import ModelSpec as ModelSpec
from hybridsde.forecast import Prediction as Prediction
from hybridsde.forecast import Requirements as Requirements
from hybridsde.forecast import crps as crps
from hybridsde.forecast import gaussian_nll as gaussian_nll
from hybridsde.forecast import mixture_nll as mixture_nll
from hybridsde.hybrid import HybridSDE as HybridSDE
from hybridsde.hybrid import Knowledge as Knowledge
from hybridsde.hybrid.published import published as published
from hybridsde.model import SDE as SDE
from hybridsde.model import AbstractDiffusion as AbstractDiffusion
from hybridsde.model import AbstractStart as AbstractStart
from hybridsde.model import BayesianSDE as BayesianSDE
from hybridsde.model import DiagonalDiffusion as DiagonalDiffusion
from hybridsde.model import FirstObservation as FirstObservation
from hybridsde.model import Latent as Latent
from hybridsde.model import UncertainStart as UncertainStart
from hybridsde.model import gaussian_kl as gaussian_kl
from hybridsde.objective import ELBO as ELBO
from hybridsde.objective import AbstractObjective as AbstractObjective
from hybridsde.objective import EmpiricalBayes as EmpiricalBayes
from hybridsde.objective import EmpiricalPACBayes as EmpiricalPACBayes
from hybridsde.objective import LogPosterior as LogPosterior
from hybridsde.objective import Terms as Terms
from hybridsde.objective import complexity as complexity
from hybridsde.physics import AbstractPhysics as AbstractPhysics
from hybridsde.physics import NoPhysics as NoPhysics
from hybridsde.physics import equations as equations
from hybridsde.physics import known_drift as known_drift
from hybridsde.registry import register as register
from hybridsde.run import Run as Run
from hybridsde.run import calibrate as calibrate
from hybridsde.run import cite as cite
from hybridsde.run import fit as fit
from hybridsde.run import fit_certified as fit_certified
from hybridsde.run import fit_each as fit_each
from hybridsde.run import frozen_drift as frozen_drift
from hybridsde.simulate import AbstractDifferentiatedSolver as AbstractDifferentiatedSolver
from hybridsde.simulate import AbstractSolver as AbstractSolver
from hybridsde.simulate import EulerMaruyama as EulerMaruyama
from hybridsde.simulate import Heun as Heun

__version__ = "0.3.0.dev0"
