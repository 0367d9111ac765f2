"""Certificates: losses, bounds, conformal bands, and who may be certified on what."""

from hybridsde.certify.bounds import Bound as Bound
from hybridsde.certify.bounds import Offset as Offset
from hybridsde.certify.certificate import Certificate as Certificate
from hybridsde.certify.certification import certify as certify
from hybridsde.certify.certification import conformal_band as conformal_band
from hybridsde.certify.conformal import ConformalBand as ConformalBand
from hybridsde.certify.gibbs import GibbsRisk as GibbsRisk
from hybridsde.certify.losses import AbstractLoss as AbstractLoss
from hybridsde.certify.losses import BandMiss as BandMiss
from hybridsde.certify.losses import IntervalMiss as IntervalMiss
from hybridsde.certify.losses import ScaledCRPS as ScaledCRPS
from hybridsde.certify.losses import TemperedLikelihood as TemperedLikelihood
from hybridsde.certify.losses import TruncatedError as TruncatedError
from hybridsde.certify.request import CertificateRequest as CertificateRequest
from hybridsde.certify.sampling import Hypothesis as Hypothesis
from hybridsde.certify.sampling import sample_losses as sample_losses
from hybridsde.certify.subject import Reference as Reference
from hybridsde.certify.subject import Subject as Subject
from hybridsde.certify.used_data import UsedData as UsedData
