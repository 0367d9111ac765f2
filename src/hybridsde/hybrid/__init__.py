"""The hybrid Bayesian SDE: how it is declared, and the forecaster that it becomes."""

from hybridsde.hybrid.forecaster import SDEForecaster as SDEForecaster
from hybridsde.hybrid.frozen import FrozenDrift as FrozenDrift
from hybridsde.hybrid.knowledge import Knowledge as Knowledge
from hybridsde.hybrid.spec import HybridSDE as HybridSDE
