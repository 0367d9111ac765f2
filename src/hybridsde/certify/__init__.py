"""Certificates: losses, bounds, conformal bands, and who may be certified on what."""

from hybridsde.certify.bounds import Bound as Bound
from hybridsde.certify.bounds import Offset as Offset
from hybridsde.certify.certificate import Certificate as Certificate
from hybridsde.certify.conformal import ConformalBand as ConformalBand
from hybridsde.certify.losses import AbstractLoss as AbstractLoss
from hybridsde.certify.losses import BandMiss as BandMiss
from hybridsde.certify.losses import IntervalMiss as IntervalMiss
from hybridsde.certify.losses import ScaledCRPS as ScaledCRPS
from hybridsde.certify.losses import TemperedLikelihood as TemperedLikelihood
from hybridsde.certify.losses import TruncatedError as TruncatedError
from hybridsde.certify.objective import GibbsRisk as GibbsRisk
from hybridsde.certify.sampling import Forecaster as Forecaster
from hybridsde.certify.sampling import sample_losses as sample_losses
from hybridsde.certify.seen import Seen as Seen
