"""What a settings file may say, checked before anything is computed."""

import math
import os
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from hybridsde._errors import InputError
from hybridsde._parameters import AbstractParameter, Bounded, Free
from hybridsde.data import Batch, Columns, Trajectories, read_table
from hybridsde.fit import Langevin, Training
from hybridsde.fit.config import LONGEST
from hybridsde.hybrid import HybridSDE
from hybridsde.hybrid.defaults import default_solver, default_training
from hybridsde.objective import (
    ELBO,
    AbstractSDEObjective,
    EmpiricalBayes,
    EmpiricalPACBayes,
    LogPosterior,
)
from hybridsde.physics import AbstractPhysics, NoPhysics, equations
from hybridsde.physics.python_file import python_physics
from hybridsde.run.fitting import forecast_windows
from hybridsde.simulate import Heun

Share = Annotated[float, Field(ge=0, lt=1)]
Positive = Annotated[float, Field(gt=0)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]
Spread = Literal["learn"] | Positive | list[Positive]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class DataSettings(_Table):
    """[data]: where the recordings are and what their columns mean."""

    files: str | list[str]
    states: list[str] = Field(min_length=1)
    time: str = "t"
    id: str | None = None
    inputs: list[str] = []
    interpolation: Literal["held", "linear"] = "held"
    """Of the inputs, between their rows."""
    unit: str | None = None
    separator: Annotated[str, Field(min_length=1, max_length=1)] = ","
    hidden_states: list[str] = []
    """States that exist but are never measured."""
    positive: list[str] = []
    """States that cannot be zero or less, such as populations; modelled by their logarithm."""
    test: Share = 0.2
    """The share of trajectories that is kept for scores."""
    validation: Share = 0.15
    """The share of the others that chooses the epoch."""

    @property
    def columns(self) -> Columns:
        """What the columns mean."""
        return Columns(tuple(self.states), self.time, self.id, tuple(self.inputs), self.unit)


class ParameterSettings(_Table):
    """A parameter of the known equations that may be learned."""

    value: Finite
    learn: bool = False
    low: float | None = None
    high: float | None = None

    @model_validator(mode="after")
    def _ordered(self):
        low = -math.inf if self.low is None else self.low
        high = math.inf if self.high is None else self.high
        if not low < self.value < high:
            raise ValueError(f"value {self.value:g} must lie between low and high")
        if (self.low is None) != (self.high is None):
            raise ValueError("give both low and high, or neither")
        return self

    def build(self) -> float | AbstractParameter:
        """A number, or one that training may move."""
        if not self.learn:
            return self.value
        if self.low is None or self.high is None:
            return Free(self.value)
        return Bounded.of(self.value, self.low, self.high)


class PhysicsSettings(_Table):
    """[physics]: what is known."""

    equations: list[str] = []
    python: str | None = None
    """file.py:function, for what equations cannot say. Runs the file."""
    parameters: dict[str, Finite | ParameterSettings] = {}
    gate: Literal["learn"] | Annotated[float, Field(ge=0, le=1)] | dict[str, float] | None = None

    @model_validator(mode="after")
    def _one_source(self):
        if self.equations and self.python:
            raise ValueError("give equations or python, not both")
        if self.parameters and not (self.equations or self.python):
            raise ValueError("parameters are given but no equations")
        return self

    def build(self, folder: Path, *, trust: bool) -> AbstractPhysics:
        """The known drift; a Python file is only run where it is trusted."""
        xi = {
            name: given.build() if isinstance(given, ParameterSettings) else given
            for name, given in self.parameters.items()
        }
        if self.python:
            return python_physics(self.python, folder, xi, trust=trust)
        return equations(*self.equations, **xi) if self.equations else NoPhysics()


class ModelSettings(_Table):
    """[model]: the learned part and the noise."""

    hidden: list[Count] = list(HybridSDE.hidden or ())
    activation: Literal["softplus", "tanh", "relu", "silu", "gelu", "elu"] = "softplus"
    weights: Literal["path", "local"] = "path"
    diffusion: Spread = "learn"
    noise: Spread = "learn"
    start: Literal["first", "uncertain"] = "uncertain"
    autonomous: bool = HybridSDE.autonomous
    prior_sd: Positive = HybridSDE.prior_sd


class TrainSettings(_Table):
    """[train]: how the model is fitted."""

    objective: Literal["pac-bayes", "bayes", "vi", "sgld"] = "pac-bayes"
    estimator: Literal["auto", "filtered", "mean_log", "log_mean"] = "auto"
    delta: Annotated[float, Field(gt=0, lt=1)] = 0.05
    samples: Count = 2
    epochs: Count | None = None
    batch_size: Count = Training.batch_size
    learning_rate: Positive = Training.learning_rate
    clip: Positive = 10.0
    substeps: Count | None = None
    piece: Annotated[int, Field(ge=2)] = LONGEST
    prior_fraction: Annotated[float, Field(gt=0, lt=1)] | None = None
    """Share of the training trajectories that gives the prior of a certificate on the others."""
    seed: Annotated[int, Field(ge=0, lt=2**31 - 10_000)] = 0

    @model_validator(mode="after")
    def _can_be_certified(self) -> "TrainSettings":
        if self.objective == "sgld" and self.prior_fraction is not None:
            raise ValueError("prior_fraction is for certificates, which sgld cannot have")
        return self

    def build_objective(self, data: Batch) -> AbstractSDEObjective:
        """The loss, with a scheme whose steps suit the data unless their number is given."""
        both: dict[str, Any] = {
            "samples": self.samples,
            "estimator": self.estimator,
            "solver": Heun(self.substeps) if self.substeps else default_solver(data),
        }
        if self.objective == "pac-bayes":
            return EmpiricalPACBayes(**both, delta=self.delta)
        kinds = {"bayes": EmpiricalBayes, "vi": ELBO, "sgld": LogPosterior}
        return kinds[self.objective](**both)

    @property
    def langevin(self) -> Langevin | None:
        """Langevin steps after the fit, where the weights are to be sampled."""
        return Langevin() if self.objective == "sgld" else None

    def build_training(self, series: int) -> Training:
        """Epochs enough for a few thousand gradient steps, unless they are given."""
        chosen: dict[str, Any] = {
            "batch_size": self.batch_size,
            "learning_rate": self.learning_rate,
            "clip": self.clip,
            "longest": self.piece,
        }
        return default_training(
            series, **chosen, **({"epochs": self.epochs} if self.epochs else {})
        )


class ForecastSettings(_Table):
    """[forecast]: how many futures are drawn."""

    draws: Annotated[int, Field(ge=2)] = 200
    paths_per_weight: Count = 4
    horizon: Annotated[int, Field(ge=1)] | None = None
    """How many rows ahead are scored, from every such row on; whole trajectories by default."""

    def cut(self, held_out: Trajectories, context: int = 1) -> Trajectories:
        """Held-out recordings as they are forecast: each from its first rows."""
        return forecast_windows(held_out, self.horizon, context)

    def start(self, data: Trajectories, context: int = 1) -> Trajectories:
        """One forecast per recording, from its first rows: what certificates are about."""
        return data if self.horizon is None else data.start(self.horizon + context)


class Settings(_Table):
    """A settings file."""

    data: DataSettings
    physics: PhysicsSettings = PhysicsSettings()
    model: ModelSettings = ModelSettings()
    train: TrainSettings = TrainSettings()
    forecast: ForecastSettings = ForecastSettings()

    @model_validator(mode="after")
    def _certifiable(self):
        if self.train.prior_fraction is not None and self.model.weights != "path":
            raise ValueError('train.prior_fraction needs model.weights = "path"')
        return self

    @model_validator(mode="after")
    def _names(self):
        repeated = set(self.data.hidden_states) & {*self.data.states, *self.data.inputs}
        if repeated:
            raise ValueError(f"{sorted(repeated)[0]!r} is measured, so it is not hidden")
        return self

    @property
    def states(self) -> tuple[str, ...]:
        """Measured states, then hidden ones."""
        return (*self.data.states, *self.data.hidden_states)

    def build_model(self, folder: Path, *, trust: bool) -> HybridSDE:
        """The declared model."""
        return HybridSDE(
            states=self.states,
            physics=self.physics.build(folder, trust=trust),
            gate=self.physics.gate,
            inputs=tuple(self.data.inputs),
            observed=tuple(self.data.states),
            diffusion=self.model.diffusion,
            noise=self.model.noise,
            hidden=tuple(self.model.hidden) or None,
            activation=self.model.activation,
            weights=self.model.weights,
            autonomous=self.model.autonomous,
            prior_sd=self.model.prior_sd,
            start=self.model.start,
            positive=tuple(self.data.positive),
            interpolation=self.data.interpolation,
        )

    def read_data(self, folder: Path) -> Trajectories:
        """The recordings that the settings name; paths are taken from `folder`."""
        names = [self.data.files] if isinstance(self.data.files, str) else self.data.files
        paths = [folder / _expanded(name) for name in names]
        return read_table(paths, self.data.columns, separator=self.data.separator)


def _expanded(name: str) -> str:
    """A file name with its environment variables filled in."""
    found = os.path.expandvars(name)
    if "$" in found:
        raise InputError(f"data.files is {name!r}, but that environment variable is not set.")
    return found
