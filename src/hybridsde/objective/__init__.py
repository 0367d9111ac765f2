"""Training objectives and the bounds that they come from."""

from hybridsde.objective.base import AbstractObjective as AbstractObjective
from hybridsde.objective.base import AbstractSDEObjective as AbstractSDEObjective
from hybridsde.objective.base import Terms as Terms
from hybridsde.objective.base import evidence as evidence
from hybridsde.objective.base import log_likelihoods as log_likelihoods
from hybridsde.objective.base import solver_of as solver_of
from hybridsde.objective.bounds import complexity as complexity
from hybridsde.objective.elbo import ELBO as ELBO
from hybridsde.objective.empirical_bayes import EmpiricalBayes as EmpiricalBayes
from hybridsde.objective.pac_bayes import EmpiricalPACBayes as EmpiricalPACBayes
from hybridsde.objective.posterior import LogPosterior as LogPosterior
