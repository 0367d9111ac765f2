"""The other systems of the walking table, declared as in the paper's set-up."""

import time
from dataclasses import replace

import jax.random as jr
import numpy as np

from hybridsde._devices import same_for_seeds
from hybridsde._streams import Beside, beside
from hybridsde.baselines import (
    DTSBN,
    ODE2VAE,
    AbstractBaseline,
    Climatology,
    LinearGaussian,
    NeuralODE,
    NpODE,
    Persistence,
)
from hybridsde.fit import CallbackFactory, Training
from hybridsde.model import Latent
from hybridsde.paper.amc import CHANNELS
from hybridsde.paper.mocap_data import Walking
from hybridsde.paper.mocap_sde import DRAWS, PAPER, Preset
from hybridsde.paper.table import Row, RowKey, summarise
from hybridsde.run import fit_and_score

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


def train_other(key: RowKey, preset: Preset, data: Walking, watch: CallbackFactory) -> Row:
    """A row of the table; the validation sequences choose the epoch, as for the SDEs."""
    began = time.monotonic()
    spec = OTHERS[key.method]
    batch = spec.batch(data.train)
    inference = spec.inference(batch, training=training_of(key.method, preset, data))
    root, count = jr.key(key.seed), key.repetitions
    fit_keys, test_keys = jr.split(root, count), jr.split(beside(root, Beside.TEST), count)
    found = fit_and_score(
        lambda: inference.fit_many(
            batch,
            validation=spec.batch(data.validation),
            callbacks=watch(key.method),
            keys=fit_keys,
        ),
        same_for_seeds(spec.batch(data.test), key.repetitions),
        draws=DRAWS,
        keys=test_keys,
    )
    return Row(
        *key,
        **summarise(found.scores),
        mse_all_mean=float(np.mean(found.scores["mse_all"])),
        diverged=int(found.diverged.sum()),
        seconds=time.monotonic() - began,
    )
