"""What a settings file may say, checked before anything is computed."""

import math
import os
from pathlib import Path
from typing import Annotated, Any, Literal

import pandas as pd
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from hybridsde._errors import InputError
from hybridsde._parameters import AbstractParameter, Bounded, Free
from hybridsde._types import Learned
from hybridsde.data import Columns, Trajectories, from_frame
from hybridsde.data.files import read_frame
from hybridsde.fit import Langevin, Training
from hybridsde.fit.config import LONGEST
from hybridsde.hybrid import HybridSDE
from hybridsde.hybrid.declaration import NETWORK
from hybridsde.hybrid.defaults import default_training
from hybridsde.hybrid.knowledge import Knowledge
from hybridsde.hybrid.published import (
    BATCH_SIZE,
    EPOCHS,
    FIXED,
    LEARNING_RATE,
    OBJECTIVES,
    PAPER,
    USUAL,
    contradictions,
    published,
    published_loss,
    published_training,
)
from hybridsde.objective import (
    ELBO,
    AbstractSDEObjective,
    EmpiricalBayes,
    EmpiricalPACBayes,
    LogPosterior,
)
from hybridsde.physics import AbstractPhysics, NoPhysics, equations
from hybridsde.physics.python_file import python_physics
from hybridsde.project.guessing import say_doses
from hybridsde.project.parquet_folder import is_folder, read_folder
from hybridsde.project.split import Part, Period
from hybridsde.run.windows import forecast_windows

Share = Annotated[float, Field(ge=0, lt=1)]
LARGEST = 1e30
"""Numbers beyond this do not fit into single precision together with what is made of them."""
Positive = Annotated[float, Field(gt=0, le=LARGEST)]
Finite = Annotated[float, Field(ge=-LARGEST, le=LARGEST, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=1_000_000)]
Width = Annotated[int, Field(ge=1, le=4096)]
Column = Annotated[str, Field(min_length=1, max_length=200)]
Spread = Literal["learn", "guess"] | Positive | list[Positive]
Quiet = Annotated[float, Field(ge=0, le=LARGEST)]
Diffusion = Literal["learn", "guess"] | Quiet | list[Quiet]


def _limit(value: float) -> float:
    if math.isnan(value) or (math.isfinite(value) and abs(value) > LARGEST):
        raise ValueError(f"a limit must lie within {LARGEST:g}, or be inf")
    return value


Limit = Annotated[float, AfterValidator(_limit)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PeriodSettings(_Table):
    """A block of time of every recording."""

    start: Finite | None = None
    end: Finite | None = None

    def build(self) -> Period:
        """From beginning or to end where one is left out."""
        start = -math.inf if self.start is None else self.start
        return Period(start, math.inf if self.end is None else self.end)


class DataSettings(_Table):
    """[data]: where the recordings are and what their columns mean."""

    files: str | list[str]
    states: list[Column] = Field(min_length=1)
    time: Column = "t"
    id: Column | None = None
    inputs: list[Column] = []
    interpolation: Literal["held", "linear"] = "held"
    """Of the inputs, between their rows."""
    unit: str | None = None
    quantity: Column | None = None
    """In a long table: the column that names what a row measures; `value` holds it."""
    value: Column | None = None
    columns: dict[Column, Column] = {}
    """Columns of the file that have another name in equations: { T = "TI-101.PV" }."""
    separator: Annotated[str, Field(min_length=1, max_length=1)] = ","
    decimal: Literal[".", ","] = "."
    missing: list[Annotated[str, Field(min_length=1, max_length=200)]] = []
    """What a cell says where a value is missing, beside nothing at all."""
    hidden_states: list[Column] = []
    """States that exist but are never measured."""
    angles: list[str] = []
    """States and inputs that are angles in radians: a library has their sines and cosines."""
    positive: list[str] = []
    """States that cannot be zero or less, such as populations; modelled by their logarithm."""
    bounds: dict[str, Annotated[list[Limit], Field(min_length=2, max_length=2)]] = {}
    """Limits that states cannot pass, such as { level = [0, 10] }; inf where there is none."""
    saturates: dict[str, Annotated[list[Limit], Field(min_length=2, max_length=2)]] = {}
    """Limits of sensors whose states go on beyond them, in the same way."""
    test: Share | list[str] | PeriodSettings = 0.2
    """What is kept for scores: a share of the trajectories, names, or { start = …, end = … }."""
    validation: Share | list[str] | PeriodSettings | None = None
    """What of the rest chooses the epoch, in the same ways; a share of four trajectories or more
    by default."""


class ParameterSettings(_Table):
    """A parameter of the known equations that may be learned."""

    value: Finite
    learn: bool = False
    low: Finite | None = None
    high: Finite | None = None

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
    flows: list[str] = []
    """From one state to another: "infection: S -> E" is learned, "recovery: I -> R = g*I" known."""
    exact: list[str] = []
    """States whose equation is complete: nothing is learned for them."""

    @model_validator(mode="after")
    def _one_source(self):
        if (self.equations or self.known_flows) and self.python:
            raise ValueError("give equations or python, not both")
        if self.parameters and not (self.equations or self.known_flows or self.python):
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
        if self.equations or self.known_flows:
            return equations(*self.equations, flows=self.known_flows, **xi)
        return NoPhysics()

    @property
    def known_flows(self) -> tuple[str, ...]:
        """Those with a rate."""
        return tuple(flow for flow in self.flows if "=" in flow)


Kind = Literal["auto", "library", "process", "ensemble", "network"]


class ModelSettings(_Table):
    """[model]: the learned part and the noise."""

    preset: Literal["paper"] | None = None
    """"paper": the method of Haussmann et al. 2021 as it was published, and nothing else."""
    learned: Kind | Annotated[list[Kind], Field(min_length=1, max_length=2)] = "auto"
    """What the learned part is made of: terms, a process, small or large networks, or auto."""
    degree: Annotated[int, Field(ge=1, le=9)] | None = None
    functions: list[str] = list(HybridSDE.functions)
    terms: list[str] = []
    """Terms of your own in the library, such as "u/(1 + u)"."""
    hidden: Annotated[list[Width], Field(max_length=16)] = list(HybridSDE.hidden or ())
    activation: Literal["softplus", "tanh", "relu", "silu", "gelu", "elu"] = "softplus"
    weights: Literal["path", "local"] = "path"
    diffusion: Diffusion = "learn"
    noise: Spread = "learn"
    start: Literal["first", "uncertain"] = "uncertain"
    autonomous: bool = HybridSDE.autonomous
    sees: dict[str, list[str]] = {}
    """What the learned part of a state may depend on, by name of the state."""
    far: Literal["fade", "free"] = "fade"
    prior_sd: Positive = HybridSDE.prior_sd
    members: Annotated[int, Field(ge=1, le=256)] = HybridSDE.members


Sign = Literal["+", "-"]


class KnowledgeSettings(_Table):
    """[knowledge]: what is known of the drift beside equations."""

    conserved: list[str] = []
    """Quantities that the drift does not change, such as "s + i + r"."""
    effects: dict[str, dict[str, Sign]] = {}
    """Signs of couplings: { y = { x = "+", u = "-" } }."""
    odd: dict[str, list[str]] = {}
    """What the drift of a state is odd in: { v = ["x", "v"] }."""
    even: dict[str, list[str]] = {}
    decays: list[str] = []
    """States that come nearer to zero where all inputs are zero, whatever the other states are."""

    def build(self) -> Knowledge:
        """As a model declares it."""
        return Knowledge(
            tuple(self.conserved), self.effects, self.odd, self.even, tuple(self.decays)
        )


class TrainSettings(_Table):
    """[train]: how the model is fitted."""

    objective: Literal["pac-bayes", "bayes", "vi", "sgld"] | None = None
    """Of networks; pac-bayes by default. A library follows its evidence, and goes on from there by
    gradient steps where an objective is given."""
    estimator: Literal["auto", "filtered", "ahead", "mean_log", "log_mean"] = "auto"
    delta: Annotated[float, Field(gt=0, lt=1)] = 0.05
    samples: Count | None = None
    epochs: Count | None = None
    batch_size: Count = Training.batch_size
    learning_rate: Annotated[float, Field(gt=0, le=10)] = Training.learning_rate
    clip: Positive | None = 10.0
    substeps: Count | None = None
    piece: Annotated[int, Field(ge=2)] | None = LONGEST
    prior_fraction: Annotated[float, Field(gt=0, lt=1)] | None = None
    """Share of the training trajectories that gives the prior of a certificate on the others."""
    seed: Annotated[int, Field(ge=0, lt=2**31 - 10_000)] = 0

    @model_validator(mode="after")
    def _can_be_certified(self) -> "TrainSettings":
        if self.objective == "sgld" and self.prior_fraction is not None:
            raise ValueError("prior_fraction is for certificates, which sgld cannot have")
        return self

    def build_objective(self, model: HybridSDE) -> AbstractSDEObjective | None:
        """The loss; None where it is left to what the learned part is made of."""
        asked = self.samples is not None or self.estimator != "auto"
        if self.objective is None and not asked and (model.undecided or model.scored):
            return None
        kinds = {"bayes": EmpiricalBayes, "vi": ELBO, "sgld": LogPosterior}
        learns_to_forecast = self.objective in (None, "pac-bayes", "bayes")
        usual = model.estimator if learns_to_forecast else "auto"
        both: dict[str, Any] = {
            "samples": self.samples or model.samples,
            "estimator": usual if self.estimator == "auto" else self.estimator,
        }
        if self.objective in (None, "pac-bayes"):
            return EmpiricalPACBayes(**both, delta=self.delta)
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

    draws: Annotated[int, Field(ge=2, le=1_000_000)] = 200
    paths_per_weight: Count = 4
    horizon: Annotated[int, Field(ge=1)] | None = None
    """How many rows ahead are scored, from every such row on; whole trajectories by default."""

    def cut(self, held_out: Trajectories, context: int = 1) -> Trajectories:
        """Held-out recordings as they are forecast: each from its first rows."""
        return forecast_windows(held_out, self.horizon, context)

    def start(self, data: Trajectories, context: int = 1) -> Trajectories:
        """One forecast per recording, from its first rows: what certificates are about."""
        return data if self.horizon is None else data.start(self.horizon + context)


class FloorSettings(_Table):
    """[floor]: of simulated recordings, the true equations and noises; scored beside the fit."""

    equations: Annotated[list[str], Field(min_length=1)]
    parameters: dict[str, Finite] = {}
    diffusion: Quiet | list[Quiet]
    noise: Positive | list[Positive]


Start = Literal["infer"] | Finite | str | Annotated[list[Finite], Field(min_length=2, max_length=2)]


class Settings(_Table):
    """A settings file."""

    data: DataSettings
    start: dict[str, Start] = {}
    """[start]: where states begin that are not measured there: a number, a column that holds it in
    the first row of each trajectory, a range, or "infer"."""
    physics: PhysicsSettings = PhysicsSettings()
    knowledge: KnowledgeSettings = KnowledgeSettings()
    model: ModelSettings = ModelSettings()
    train: TrainSettings = TrainSettings()
    forecast: ForecastSettings = ForecastSettings()
    floor: FloorSettings | None = None
    """[floor]: the truth behind simulated recordings. No fit looks at it."""
    sweep: dict[str, Any] = {}
    """[sweep]: what `hybridsde sweep` tries for settings, by their dotted names; a fit does not
    look at it."""

    @model_validator(mode="before")
    @classmethod
    def _as_published(cls, given: Any) -> Any:
        """A preset stands for the settings that it is made of; a `ValueError` where others are
        given.
        """
        return with_preset(given) if isinstance(given, dict) else given

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
        if self.start and self.model.start == "first":
            raise ValueError('[start] needs model.start = "uncertain", which is the default')
        return self

    @property
    def inputs(self) -> tuple[str, ...]:
        """Inputs, and columns that hold starts."""
        taken = (*self.states, *self.data.inputs)
        starts = [s for s in self.start.values() if isinstance(s, str) and s != "infer"]
        return (*self.data.inputs, *dict.fromkeys(s for s in starts if s not in taken))

    @property
    def columns(self) -> Columns:
        """What the columns of the table mean."""
        d = self.data
        return Columns(
            tuple(d.states),
            d.time,
            d.id,
            self.inputs,
            d.unit,
            d.quantity,
            d.value,
            columns=d.columns,
            decimal=d.decimal,
            missing=tuple(d.missing),
        )

    @property
    def states(self) -> tuple[str, ...]:
        """Measured states, then hidden ones."""
        return (*self.data.states, *self.data.hidden_states)

    @property
    def published(self) -> bool:
        """Whether the method is to be that of the paper."""
        return self.model.preset == PAPER

    def build_model(self, folder: Path, *, trust: bool) -> HybridSDE:
        """The declared model."""
        declared: dict[str, Any] = dict(  # noqa: C408
            physics=self.physics.build(folder, trust=trust),
            gate=self.physics.gate,
            inputs=self.inputs,
            observed=tuple(self.data.states),
            diffusion=self.model.diffusion,
            noise=self.model.noise,
            hidden=tuple(self.model.hidden) or None,
            activation=self.model.activation,
            weights=self.model.weights,
            autonomous=self.model.autonomous,
            prior_sd=self.model.prior_sd,
            start=dict(self.start) or self.model.start,
            positive=tuple(self.data.positive),
            interpolation=self.data.interpolation,
            bounds=self.data.bounds,
            saturates=self.data.saturates,
            exact=tuple(self.physics.exact),
            flows=tuple(flow for flow in self.physics.flows if "=" not in flow),
            sees=self.model.sees or None,
            far=self.model.far,
            learned=NETWORK if self.train.prior_fraction is not None else self._learned,
            degree=self.model.degree,
            functions=tuple(self.model.functions),
            angles=tuple(self.data.angles),
            terms=tuple(self.model.terms),
            knowledge=self.knowledge.build(),
            # A certificate is about the distribution of one network.
            members=self.model.members if self.train.prior_fraction is None else 1,
        )
        if self.published:
            return published(self.states, **declared)[0]
        return HybridSDE(states=self.states, **declared)

    def build_objective(self, model: HybridSDE) -> AbstractSDEObjective | None:
        """The loss; None where it is left to what the learned part is made of."""
        train = self.train
        if not self.published:
            return train.build_objective(model)
        return published_loss(
            train.objective or "pac-bayes",
            samples=train.samples or 1,
            delta=train.delta,
            substeps=train.substeps or 1,
        )

    def build_training(self, series: int) -> Training:
        """How long and how fast networks are trained on so many recordings or pieces of them."""
        train = self.train
        if not self.published:
            return train.build_training(series)
        return published_training(
            train.epochs or EPOCHS, train.batch_size, train.learning_rate, train.piece
        )

    @property
    def _learned(self) -> Learned | tuple[Learned, ...]:
        given = self.model.learned
        return given if isinstance(given, str) else tuple(given)

    def read_data(self, folder: Path) -> Trajectories:
        """The recordings that the settings name; paths are taken from `folder`."""
        return self.recordings(*self.read_frame(folder))

    def recordings(self, frame: pd.DataFrame, columns: Columns) -> Trajectories:
        """The recordings in the rows of `read_frame`."""
        if self.data.interpolation == "held":
            say_doses(frame, columns, self.data.inputs)
        return from_frame(frame, columns)

    def read_frame(self, folder: Path) -> tuple[pd.DataFrame, Columns]:
        """The rows of the files as they stand, and what their columns mean."""
        paths = self.paths(folder)
        if is_folder(paths):
            return read_folder(paths[0], self.columns), self.columns
        return read_frame(paths, self.columns, separator=self.data.separator)

    def paths(self, folder: Path) -> list[Path]:
        """The files that the settings name, or one folder of Parquet files."""
        names = [self.data.files] if isinstance(self.data.files, str) else self.data.files
        return [folder / _expanded(name) for name in names]


WITH_FIXED = ("data", "physics", "model", "train")
"""Tables of which the published method leaves some keys without a choice."""
PUBLISHED_MODEL: dict[str, Any] = {
    name: list(value) if isinstance(value, tuple) else value
    for name, value in {**USUAL, **FIXED}.items()
    if name in ModelSettings.model_fields and value
}
PUBLISHED_TRAINING: dict[str, Any] = {
    "objective": "pac-bayes",
    "samples": 1,
    "epochs": EPOCHS,
    "batch_size": BATCH_SIZE,
    "learning_rate": LEARNING_RATE,
    "clip": None,
    "piece": None,
}
"""What the preset stands for, as settings. Validation recordings, too, are only those asked for."""


def with_preset(given: dict[str, Any]) -> dict[str, Any]:
    """What a settings file says, with what its preset stands for where it says nothing.

    A `ValueError` where it says something that the preset is not.
    """
    tables = {name: dict(table) for name, table in given.items() if isinstance(table, dict)}
    model, train = tables.setdefault("model", {}), tables.setdefault("train", {})
    if model.get("preset") != PAPER:
        return given
    said = {name: table for name, table in tables.items() if name in WITH_FIXED}
    refused = [
        f"{name}.{one}" for name, table in said.items() for one in contradictions(table)
    ] + contradictions({"knowledge": [one for one in tables.get("knowledge", {}).values() if one]})
    objective = train.get("objective") or "pac-bayes"
    if objective not in OBJECTIVES:
        refused.append(
            f"train.objective = {objective!r} is not what the paper proposes, which is "
            f"{' or '.join(map(repr, OBJECTIVES))}"
        )
    elif train.get("estimator", "auto") not in ("auto", OBJECTIVES[objective]):
        refused.append(
            f"train.estimator = {train['estimator']!r} contradicts the loss as it was published, "
            f"which has {OBJECTIVES[objective]!r}. Leave it out"
        )
    if refused:
        raise ValueError(f'with model.preset = "{PAPER}": {refused[0].removesuffix(".")}')
    tables["model"] = {**PUBLISHED_MODEL, **model}
    tables["train"] = {**PUBLISHED_TRAINING, **train}
    if "data" in tables:
        tables["data"] = {"validation": 0, **tables["data"]}
    return {**given, **tables}


def part_of(given: float | list[str] | PeriodSettings | None) -> Part | None:
    """A part of the recordings as the settings name it; None where it is left open."""
    return given.build() if isinstance(given, PeriodSettings) else given


def _expanded(name: str) -> str:
    """A file name with its environment variables filled in."""
    found = os.path.expandvars(name)
    if "$" in found:
        raise InputError(f"data.files is {name!r}, but that environment variable is not set.")
    return found
