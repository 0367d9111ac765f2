"""What is chosen where nobody chooses: the same from Python and from the command line."""

import jax.numpy as jnp
import numpy as np

from hybridsde.data import Batch
from hybridsde.fit import Training
from hybridsde.model import Scale
from hybridsde.simulate import Heun

STEPS = 1000
"""Gradient steps of a fit."""
FEWEST_EPOCHS = 40
"""So often is a fit looked at, at least."""
RESOLUTION = 0.25
"""The solver's step as a share of the time in which the fastest state changes by its spread."""
MOST_SUBSTEPS = 20


def default_training(series: int, **chosen) -> Training:
    """Epochs enough for `STEPS` gradient steps; `chosen` settings are kept."""
    once = Training(**chosen).batches(series)
    passes = max(1, round(STEPS / FEWEST_EPOCHS / once)) if "epochs" not in chosen else 1
    epochs = max(FEWEST_EPOCHS, round(STEPS / (once * passes)))
    return Training(**{"epochs": epochs, "passes": passes, **chosen})


def default_solver(data: Batch) -> Heun:
    """Heun's rule, with steps short against the fastest state."""
    scale = Scale.of(data, jnp.eye(data.values.shape[-1]))
    speed = float(np.max(np.asarray(scale.rate / scale.states.sd)))
    gaps = np.asarray(data.steps)
    interval = float(np.median(gaps[gaps > 0]))
    return Heun(int(np.clip(np.ceil(interval * speed / RESOLUTION), 1, MOST_SUBSTEPS)))
