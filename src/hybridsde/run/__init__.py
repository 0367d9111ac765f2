"""From a declared model and recordings to a fitted run."""

from hybridsde.run.calibrate import calibrate as calibrate
from hybridsde.run.citation import cite as cite
from hybridsde.run.fit_certified import certified as certified
from hybridsde.run.fit_certified import fit_certified as fit_certified
from hybridsde.run.fitting import fit as fit
from hybridsde.run.fitting import frozen_drift as frozen_drift
from hybridsde.run.fleet import fit_each as fit_each
from hybridsde.run.many import fit_many as fit_many
from hybridsde.run.repetitions import Repetitions as Repetitions
from hybridsde.run.repetitions import fit_and_score as fit_and_score
from hybridsde.run.run import Run as Run
