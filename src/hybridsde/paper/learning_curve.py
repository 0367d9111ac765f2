"""What knowledge is worth: test error against the number of recordings, with and without it."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pandas as pd

from hybridsde.fit import CallbackFactory
from hybridsde.paper.lorenz import KNOWN, PROTOCOLS, SYSTEM
from hybridsde.paper.preset import METHODS, Preset
from hybridsde.paper.row import DRAWS, forecaster_of, model_of, prepare, train_row
from hybridsde.run import fit_and_score

SIZES = (2, 3, 5, 10, 20, 40)
"""Training sequences."""
NOT_REACHED = "not reached"
ROWS = ("none", "x", "y", "z")
"""Known equations; networks of all rows of one size are trained as one program."""


def learning_curve(
    preset: Preset,
    method: str,
    *,
    repetitions: int,
    seed: int,
    watch: CallbackFactory,
    sizes: tuple[int, ...] = SIZES,
) -> pd.DataFrame:
    """Test MSE of every row, size and repetition; each fit takes the same number of steps."""
    model_key, fit_key, test_key = jr.split(jr.key(seed), 3)
    keys = jr.split(model_key, repetitions)
    count = len(ROWS) * repetitions
    reference = PROTOCOLS["24"]
    gates = [SYSTEM.gate(KNOWN[name]) for name in ROWS]
    frames = []
    for size in sizes:
        protocol = replace(reference, train_sequences=size)
        parts = [prepare(SYSTEM, protocol, model_of(preset, method), gate, keys) for gate in gates]
        train, test, models = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *parts)
        epochs = max(1, round(preset.training.epochs * reference.train_sequences / size))
        sized = replace(preset, training=replace(preset.training, epochs=epochs))
        callbacks = watch(f"{size} sequences") if method in METHODS else ()
        fit_keys = jr.split(fit_key, count)
        found = fit_and_score(
            partial(train_row, models, train, sized, method, callbacks, fit_keys),
            test,
            draws=DRAWS,
            keys=jr.split(test_key, count),
            adjust=partial(forecaster_of, preset, method),
        )
        frames.append(
            pd.DataFrame(
                {
                    "known": np.repeat(ROWS, repetitions),
                    "sequences": size,
                    "repetition": np.tile(np.arange(repetitions), len(ROWS)),
                    "mse": np.asarray(found.scores["mse"][:, -1]),
                }
            )
        )
    return pd.concat(frames, ignore_index=True)


def equivalents(curve: pd.DataFrame) -> pd.DataFrame:
    """How many sequences the black box needs for the median error of each hybrid.

    One row per number of sequences, one column per known equation. Between the sizes that were
    run, ln error is taken as linear in ln size; where no size that was run reached it there is no
    number, below the smallest it is that size.
    """
    medians = curve.pivot_table("mse", index="sequences", columns="known", aggfunc="median")
    falling = medians["none"].cummin()
    sizes, errors = np.log(falling.index.to_numpy(float)), np.log(falling.to_numpy())

    def needed(error: float) -> float:
        return float(np.exp(np.interp(-np.log(error), -errors, sizes, right=np.nan)))

    return medians.drop(columns="none").map(needed)


def readable(needed: pd.DataFrame) -> pd.DataFrame:
    """For a table: numbers, or that no size reached the error."""
    return needed.map(lambda count: f"{count:.1f}" if np.isfinite(count) else NOT_REACHED)
