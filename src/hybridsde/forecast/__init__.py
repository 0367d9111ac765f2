"""Predictive paths from any start on any time grid, and their scores."""

from hybridsde.forecast.evaluate import evaluate as evaluate
from hybridsde.forecast.evaluate import score_ensembles as score_ensembles
from hybridsde.forecast.evaluate import score_many as score_many
from hybridsde.forecast.evaluate import score_paths as score_paths
from hybridsde.forecast.evaluate import score_seen as score_seen
from hybridsde.forecast.forecast import Forecast as Forecast
from hybridsde.forecast.forecast import label as label
from hybridsde.forecast.paths import clock_of as clock_of
from hybridsde.forecast.paths import future as future
from hybridsde.forecast.paths import predict as predict
from hybridsde.forecast.scores import SCORES as SCORES
from hybridsde.forecast.scores import crps as crps
from hybridsde.forecast.scores import gaussian_nll as gaussian_nll
from hybridsde.forecast.scores import mixture_nll as mixture_nll
from hybridsde.forecast.scores import score as score
