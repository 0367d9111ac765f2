"""How the SDEs of the walking table are trained: settings, repetitions, and other walkers."""

import time
from dataclasses import dataclass, replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hybridsde._devices import over_seeds, same_for_seeds
from hybridsde._parameters import Fixed
from hybridsde._streams import Beside, beside
from hybridsde._types import Array, Float, Keys, PRNGKeyArray, Schedule
from hybridsde.data import Batch, Trajectories
from hybridsde.fit import CallbackFactory, Fitted, Langevin, Training, train_many
from hybridsde.forecast import Ensemble
from hybridsde.hybrid import FrozenDrift, HybridSDE, SDEForecaster
from hybridsde.hybrid.published import published
from hybridsde.model import BayesianSDE, Latent
from hybridsde.objective import AbstractObjective, LogPosterior
from hybridsde.paper import mocap_data, preset
from hybridsde.paper.amc import CHANNELS
from hybridsde.paper.row import repetition_keys
from hybridsde.paper.table import Row, RowKey, summarise
from hybridsde.run import Repetitions, fit_and_score
from hybridsde.run.transfer import with_maps_of
from hybridsde.simulate import EulerMaruyama, simulate

SMALLEST_NOISE = 0.05
"""In degrees: σ of a channel that never moves."""
DRAWS = 50
"""Sampled paths per sequence, as in the paper."""
NONE, WALKERS = "none", "42 walkers"
ROWS = (
    (NONE, "d-bnn (sgld)"),
    (NONE, "d-bnn (vi)"),
    (NONE, "e-bayes"),
    (NONE, "e-pac-bayes"),
    (WALKERS, "e-bayes"),
    (WALKERS, "e-pac-bayes"),
)
"""What is known, and the method."""
FACTORIAL = tuple(row for row in ROWS if row[1].startswith("e-"))
"""The four rows with and without other walkers, with and without the PAC term."""
METHODS: dict[str, tuple[AbstractObjective, Langevin | None]] = {
    name: (loss, Langevin() if isinstance(loss, LogPosterior) else None)
    for name, loss in {**preset.COMPARED, **preset.METHODS}.items()
}
"""The loss of a method, and the Langevin steps after it."""


@dataclass(frozen=True)
class Preset:
    """Settings for all rows."""

    model: HybridSDE
    iterations: tuple[tuple[int, int], ...]
    """Pairs (gradient steps, rows of the windows)."""
    rows: tuple[tuple[str, str], ...] = ROWS
    batch_size: int = 7
    learning_rate: float = 1e-3
    schedule: Schedule = "constant"
    mirrored: bool = False
    """Whether mirror images are trained on too."""
    choose_epoch: bool = True
    """Whether the validation sequences choose the epoch that is kept; the last one is, if not."""
    hybrid_last_layer: float = 1.0
    """`last_layer` where other walkers are known; small starts at what they have taught."""
    members: int = 1
    """Models that forecast together, each from a seed of its own."""
    noise_of_residuals: bool = False
    """Whether σ of every channel is set after training, by forecasts of the training sequences."""

    def __post_init__(self):
        if DRAWS % self.members:
            raise ValueError(f"`members` must divide {DRAWS}, but is {self.members}.")

    def training(self, series: int, rows: int) -> Training:
        """Epochs that make up about as many gradient steps."""
        plain = Training(batch_size=self.batch_size)
        stages = tuple(
            (max(1, round(steps / plain.batches(series, rows, length))), length)
            for steps, length in self.iterations
        )
        return Training(
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            schedule=self.schedule,
            windows=stages,
        )

    def sequences(self, data: Trajectories) -> Trajectories:
        """What is trained on."""
        return mocap_data.mirrored(data) if self.mirrored else data


MODEL, _ = published(
    states=tuple(f"z{k}" for k in range(6)),
    observed=CHANNELS,
    latent=Latent(context=3, encoder=(30, 30), decoder=(30, 30)),
    hidden=(30,),
    diffusion=0.1,
    noise=0.5**0.5,
    initial_sd=0.05,
)
PAPER = Preset(
    replace(MODEL, standardise=True),  # angles of fifty joints, on very different scales
    iterations=((1000, 30), (1500, 50), (500, 100)),
)
RECOMMENDED = replace(
    PAPER, rows=FACTORIAL, hybrid_last_layer=0.1, members=5, noise_of_residuals=True
)
PRESETS = {"paper": PAPER, "recommended": RECOMMENDED}


class Trainer:
    """Trains rows; what was learned on the walkers is learned once."""

    def __init__(
        self,
        preset: Preset,
        data: mocap_data.Walking,
        walkers: Trajectories | None,
        repetitions: int,
        seed: int,
        watch: CallbackFactory,
    ):
        self._preset, self._data, self._walkers = preset, data, walkers
        self._keys = repetition_keys(repetitions * preset.members, seed)
        self._watch = watch
        self._learned: BayesianSDE | None = None

    def row(self, key: RowKey) -> Row:
        """One row of the table."""
        began = time.monotonic()
        name = " ".join((key.preset, key.known, key.method))
        found = self.fit_and_score(key.known, key.method, name, self._data.test)
        return Row(
            *key,
            **summarise(found.scores),
            mse_all_mean=float(np.mean(found.scores["mse_all"])),
            diverged=int(found.diverged.reshape(-1, self._preset.members).any(1).sum()),
            seconds=time.monotonic() - began,
        )

    def fit_and_score(self, known: str, method: str, name: str, test: Trajectories) -> Repetitions:
        """Forecasters of every repetition, and their scores."""
        keys = self._keys[2][:: self._preset.members]
        return fit_and_score(
            lambda: self.fit(known, method, name),
            same_for_seeds(self._preset.model.batch(test), len(keys)),
            draws=DRAWS,
            keys=keys,
            adjust=self.ensembles,
        )

    def fit(self, known: str, method: str, name: str) -> Fitted[BayesianSDE]:
        """A model per repetition and member."""
        declared = self._preset.model
        train = self._preset.sequences(self._data.train)
        batch = declared.batch(train)
        if known == NONE:
            models = _init(declared, batch, self._keys[0])
        else:
            declared = replace(declared, last_layer=self._preset.hybrid_last_layer)
            models = _init_hybrid(declared, batch, self._source(), self._keys[0])
        fitted = self._fit(models, train, method, name, self._keys[1])
        if self._preset.noise_of_residuals:
            given, keys = (
                self._for_seeds(self._data.train),
                _beside(self._keys[2], Beside.RESIDUALS),
            )
            fitted = fitted.map(lambda models: _with_residuals(models, given, keys))
        return fitted

    def ensembles(self, models: BayesianSDE) -> Ensemble:
        """The members of every repetition, forecasting together."""
        size = self._preset.members
        members = jax.tree.map(
            lambda leaf: leaf.reshape(len(leaf) // size, size, *leaf.shape[1:]), models
        )
        return Ensemble(SDEForecaster(members, EulerMaruyama()))

    def _for_seeds(self, data: Trajectories) -> Batch:
        return same_for_seeds(self._preset.model.batch(data), len(self._keys[0]))

    def _source(self) -> BayesianSDE:
        """E-PAC-Bayes on the other walkers, once per repetition."""
        if self._learned is None:
            walkers = mocap_data.subjects() if self._walkers is None else self._walkers
            walkers = self._preset.sequences(walkers)
            declared = self._preset.model
            keys = _beside(self._keys[1], Beside.OTHER_WALKERS)
            models = _init(declared, declared.batch(walkers), _beside(keys, Beside.OTHER_INIT))
            self._learned = self._fit(models, walkers, "e-pac-bayes", "the walkers", keys).model
        return self._learned

    def _fit(
        self, models: BayesianSDE, data: Trajectories, method: str, name: str, keys: Keys
    ) -> Fitted[BayesianSDE]:
        chosen = self._preset.choose_epoch
        loss, langevin = METHODS[method]
        return train_many(
            models,
            self._for_seeds(data),
            loss,
            training=self._preset.training(*data.times.shape),
            langevin=langevin,
            validation=self._for_seeds(self._data.validation) if chosen else None,
            callbacks=self._watch(name),
            keys=keys,
        )


def _beside(keys: Keys, purpose: Beside) -> Keys:
    """A key for another purpose, for each of these."""
    return jax.vmap(lambda key: beside(key, purpose))(keys)


@eqx.filter_jit
def _init(declared: HybridSDE, batch: Batch, keys: Keys) -> BayesianSDE:
    return eqx.filter_vmap(lambda key: declared.init(batch, key=key))(keys)


@eqx.filter_jit
def _init_hybrid(
    declared: HybridSDE, batch: Batch, sources: BayesianSDE, keys: Keys
) -> BayesianSDE:
    """Models whose known drift, encoder and decoder come from trained ones, one for each."""

    def one(source: BayesianSDE, key):
        hybrid = replace(declared, physics=FrozenDrift.of(declared, source))
        model = hybrid.init(batch, key=key)
        return with_maps_of(model, source)

    return eqx.filter_vmap(one)(sources, keys)


@eqx.filter_jit
def _with_residuals(models: BayesianSDE, train: Batch, keys: Keys) -> BayesianSDE:
    """σ² of every channel = mean squared error of forecasts less the variance of their paths."""

    def one(model: BayesianSDE, batch: Batch, key: PRNGKeyArray) -> Float[Array, " obs"]:
        paths = simulate(model, EulerMaruyama(), batch, samples=DRAWS, key=key)
        means = model.observation.mean(paths.states[:, :, model.context :])
        error = (means.mean(0) - batch.values[:, model.context :]) ** 2
        seen = batch.observed[:, model.context :]
        left = jnp.mean(error - means.var(0, ddof=1), (0, 1), where=seen)
        return jnp.sqrt(jnp.maximum(left, SMALLEST_NOISE**2))

    sd = over_seeds(one, models, train, keys, one_by_one=True)
    return eqx.tree_at(lambda m: m.observation.sd, models, Fixed(sd))
