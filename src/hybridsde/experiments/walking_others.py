"""The other systems of the walking table, declared as in the paper's set-up."""

import time
from dataclasses import replace

import jax.random as jr
import numpy as np

from hybridsde.baselines import (
    DTSBN,
    ODE2VAE,
    AbstractBaseline,
    Climatology,
    LinearGaussian,
    NeuralODE,
    NpODE,
    Persistence,
    score_forecasters,
)
from hybridsde.datasets.amc import CHANNELS
from hybridsde.datasets.mocap import Walking
from hybridsde.experiments.table import Row, RowKey, summarise
from hybridsde.experiments.walking_sde import DRAWS, PAPER, Preset
from hybridsde.fit import Training, Watch
from hybridsde.model import Latent

LATENT = PAPER.model.latent or Latent()
SPREAD = replace(LATENT, spread=0.1)
NOISE = 0.5**0.5
"""As for the SDEs."""
GIVEN = LATENT.context
OTHERS: dict[str, AbstractBaseline] = {
    "dtsbn-s": DTSBN(observed=CHANNELS, middle=100, top=100, given=GIVEN),
    "npode": NpODE(observed=CHANNELS, components=3, inducing=100, given=GIVEN),
    "neural-ode": NeuralODE(observed=CHANNELS, states=6, latent=LATENT, hidden=(30,), noise=NOISE),
    "ode2vae": ODE2VAE(observed=CHANNELS, positions=3, latent=SPREAD, hidden=(30,), noise=NOISE),
    "ode2vae-kl": ODE2VAE(
        observed=CHANNELS, positions=3, latent=SPREAD, hidden=(30,), noise=NOISE, penalty=1.0
    ),
    "linear-gaussian": LinearGaussian(observed=CHANNELS, states=10, given=GIVEN),
    "climatology": Climatology(observed=CHANNELS, given=GIVEN),
    "persistence": Persistence(observed=CHANNELS, given=GIVEN),
}
FASTER = {"npode": 1e-2}
"""Learning rates where they are not the paper's: inducing vectors are not weights of a network."""


def training_of(method: str, preset: Preset, data: Walking) -> Training:
    """Snippets and iterations as for the SDEs."""
    training = preset.training(*data.train.times.shape)
    return replace(training, learning_rate=FASTER.get(method, training.learning_rate))


def train_other(key: RowKey, preset: Preset, data: Walking, watch: Watch) -> Row:
    """A row of the table; the validation sequences choose the epoch, as for the SDEs."""
    began = time.monotonic()
    declared = OTHERS[key.method]
    keys = jr.split(jr.key(key.seed), key.repetitions)
    fitted = declared.fit_many(
        declared.batch(data.train),
        validation=declared.batch(data.validation),
        training=training_of(key.method, preset, data),
        callbacks=watch(key.method),
        keys=keys,
    )
    test = declared.batch(data.test)
    scores = score_forecasters(fitted.model, test, declared.context, DRAWS, keys)
    return Row(
        *key,
        **summarise(scores),
        mse_all_mean=float(np.mean(scores["mse_all"])),
        diverged=int(fitted.diverged.sum()),
        seconds=time.monotonic() - began,
    )
