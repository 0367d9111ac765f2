"""Forecasters, what declares them, their labelled draws, and scores."""

from hybridsde.forecast.backtest import backtest as backtest
from hybridsde.forecast.ensemble import Ensemble as Ensemble
from hybridsde.forecast.evaluation import evaluate as evaluate
from hybridsde.forecast.evaluation import evaluate_many as evaluate_many
from hybridsde.forecast.forecast import Forecast as Forecast
from hybridsde.forecast.forecaster import AbstractBayesianForecaster as AbstractBayesianForecaster
from hybridsde.forecast.forecaster import AbstractForecaster as AbstractForecaster
from hybridsde.forecast.forecaster import AbstractStateEstimator as AbstractStateEstimator
from hybridsde.forecast.forecaster import Prediction as Prediction
from hybridsde.forecast.forecaster import StatesGiven as StatesGiven
from hybridsde.forecast.forecaster import noise_spread as noise_spread
from hybridsde.forecast.inference import AbstractInference as AbstractInference
from hybridsde.forecast.inference import ClosedForm as ClosedForm
from hybridsde.forecast.inference import FromRandomStarts as FromRandomStarts
from hybridsde.forecast.inference import GradientDescent as GradientDescent
from hybridsde.forecast.inference import estimated as estimated
from hybridsde.forecast.scores import SCORES as SCORES
from hybridsde.forecast.scores import crps as crps
from hybridsde.forecast.scores import gaussian_nll as gaussian_nll
from hybridsde.forecast.scores import mixture_nll as mixture_nll
from hybridsde.forecast.spec import ModelSpec as ModelSpec
from hybridsde.forecast.spec import Requirements as Requirements
from hybridsde.forecast.states import StateEstimate as StateEstimate
from hybridsde.forecast.states import estimate_states as estimate_states
