"""The training loop: compiled epochs, with the host looking on between them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hybridsde._devices import over_seeds, same_for_seeds
from hybridsde._errors import notice
from hybridsde._parameters import trainable
from hybridsde._types import Keys, PRNGKeyArray, PyTree
from hybridsde.data import Batch
from hybridsde.data.checks import check_whole
from hybridsde.fit.checkpoint import Checkpoint
from hybridsde.fit.config import Schedule, Training
from hybridsde.fit.epoch import Problem, run_epoch
from hybridsde.fit.langevin import Langevin, sample
from hybridsde.fit.progress import Callback, ProgressReporter
from hybridsde.fit.state import FitState, Selection
from hybridsde.model import BayesianMLP
from hybridsde.objective import AbstractObjective


class FitDiverged(RuntimeWarning):
    """A fit was stopped because its loss exploded or was not finite."""


Model = TypeVar("Model", bound=eqx.Module)
Other = TypeVar("Other", bound=eqx.Module)


@dataclass(frozen=True)
class Fitted(Generic[Model]):
    """A trained model, or several along a leading `seed` axis, and how training went."""

    model: Model
    history: dict[str, np.ndarray]
    """Every term, one row per epoch; `validation_loss` where there are validation data."""
    diverged: np.ndarray
    epochs: np.ndarray
    """How many epochs each fit ran before it finished or was stopped."""
    kept: np.ndarray
    """After how many epochs the model was as it is kept."""

    def map(self, function: Callable[[Model], Other]) -> "Fitted[Other]":
        """The same fit with something else made of its model."""
        return Fitted(function(self.model), self.history, self.diverged, self.epochs, self.kept)


def train(
    model: Model,
    data: Batch,
    objective: AbstractObjective,
    *,
    training: Training | None = None,
    langevin: Langevin | None = None,
    validation: Batch | None = None,
    callbacks: Iterable[Callback] = (),
    checkpoint: Checkpoint | None = None,
    select: Selection = trainable,
    key: PRNGKeyArray,
) -> Fitted[Model]:
    """Fit one model. The same key gives the same numbers, also where a checkpoint is taken up."""
    training = training or Training()
    schedule = Schedule.of(training, training.steps(data.count, data.times.shape[-1]))
    state, frozen = FitState.init(model, schedule, select, key=key)
    problem = Problem(
        frozen, data, validation, objective, schedule, training.batch_size, training.passes
    )
    report = ProgressReporter(tuple(callbacks), _epochs(training, langevin))
    more = langevin is not None
    fitted = _drive(_one_epoch, state, problem, training, report, checkpoint, more_to_come=more)
    return _sample(fitted, problem, training, langevin, report, key, _directly)


def train_many(
    models: Model,
    data: Batch,
    objective: AbstractObjective,
    *,
    training: Training | None = None,
    langevin: Langevin | None = None,
    validation: Batch | None = None,
    callbacks: Iterable[Callback] = (),
    chunk: int = 50,
    select: Selection = trainable,
    keys: Keys,
) -> Fitted[Model]:
    """Fit a model per key as one program on all devices, `chunk` at a time to bound memory.

    `models`, `data`, `validation` and `objective` carry a leading `seed` axis on every array:
    repetitions may differ in weights, scales, data, physical parameters and the strength of the
    PAC term. Each equals the `train` of its own slice.
    """
    check_whole(chunk, "chunk")
    training = training or Training()
    count = len(keys)
    size = -(-count // -(-count // chunk))  # chunks of one size, so that nothing recompiles
    parts = []
    starts = range(0, count, size)
    schedule = Schedule.of(training, training.steps(*data.times.shape[1:]))
    for part, first in enumerate(starts):
        chosen = np.minimum(np.arange(first, first + size), count - 1)
        m, d, v, o = (_slice(tree, chosen) for tree in (models, data, validation, objective))
        state, frozen = eqx.filter_vmap(
            lambda one, key: FitState.init(one, schedule, select, key=key)
        )(m, keys[chosen])
        schedules = same_for_seeds(schedule, size)
        problem = Problem(frozen, d, v, o, schedules, training.batch_size, training.passes)
        report = ProgressReporter(tuple(callbacks), _epochs(training, langevin), part, len(starts))
        fitted = _drive(_many_epochs, state, problem, training, report)
        fitted = _sample(fitted, problem, training, langevin, report, keys[chosen], over_seeds)
        parts.append(_keep(fitted, min(size, count - first)))
    return _join(parts)


@eqx.filter_jit
def _one_epoch(state: FitState, problem: Problem):
    return run_epoch(state, problem)


@eqx.filter_jit
def _many_epochs(states: FitState, problem: Problem):
    return over_seeds(run_epoch, states, problem)


def _directly(function: Callable, *args: PyTree) -> PyTree:
    return function(*args)


def _epochs(training: Training, langevin: Langevin | None) -> int:
    """Epochs of a fit and blocks of Langevin steps after it."""
    return training.epochs + (langevin.blocks if langevin else 0)


def _drive(
    step: Callable,
    state: FitState,
    problem: Problem,
    training: Training,
    report: ProgressReporter,
    checkpoint: Checkpoint | None = None,
    *,
    more_to_come: bool = False,
) -> Fitted:
    """Run epochs until all fits are over, then pick the state to keep."""
    history: dict[str, list[np.ndarray]] = {}
    kept = checkpoint.restore(state) if checkpoint else None
    if kept:
        state, history = kept[0], {name: list(rows) for name, rows in kept[1].items()}
    begun = len(history.get("loss", ()))
    try:
        for epoch in range(begun, training.epochs):
            if np.all(state.stopped):
                break
            problem = replace(problem, length=training.length_at(epoch))
            after, log = step(state, problem)
            terms = log.columns()  # waits for the epoch; a Ctrl-C lands here or before
            rows = {name: [*history.get(name, ()), value] for name, value in terms.items()}
            state, history = after, rows
            report(epoch + 1, terms)
            if checkpoint:
                checkpoint.keep(state, history)
        if checkpoint and more_to_come:
            checkpoint.keep(state, history, now=True)
    except KeyboardInterrupt:
        if checkpoint:
            checkpoint.keep(state, history, now=True)
        raise
    lost = state.diverged | ~jnp.isfinite(state.best_loss)
    diverged = np.asarray(lost)
    if diverged.any():
        ever = np.asarray(jnp.isfinite(state.best_loss))
        notice(_advice(diverged, np.asarray(state.epoch), ever), FitDiverged)
    keep_best = lost | state.fallen | (problem.validation is not None)
    parameters = jax.tree.map(
        lambda best, last: jnp.where(_align(keep_best, best), best, last),
        state.best,
        state.parameters,
    )
    model = eqx.combine(parameters, problem.frozen)
    columns = {name: np.stack(rows) for name, rows in history.items()}
    kept = np.where(keep_best, state.best_epoch, state.epoch)
    return Fitted(model, columns, diverged, np.asarray(state.epoch), kept)


def _sample(
    fitted: Fitted,
    problem: Problem,
    training: Training,
    langevin: Langevin | None,
    report: ProgressReporter,
    keys: PRNGKeyArray | Keys,
    apply: Callable,
) -> Fitted:
    """Langevin steps after a fit, where they are asked for; its model then draws kept networks."""
    if langevin is None or not isinstance(fitted.model.network, BayesianMLP):
        return fitted
    problem = replace(problem, length=training.length_at(training.epochs - 1))
    model, stuck = sample(fitted.model, problem, langevin, report, training.epochs, keys, apply)
    if stuck.any():
        notice(
            f"{stuck.sum()} of {stuck.size} Langevin chains cannot move: the curvature at the most "
            "probable weights is not a positive number. Their kept networks are all the same.",
            FitDiverged,
        )
    return replace(fitted, model=model, diverged=np.asarray(fitted.diverged | stuck))


def _advice(diverged: np.ndarray, epoch: np.ndarray, ever: np.ndarray) -> str:
    """What happened to fits that were lost, and what may help; `ever`: some epoch was finite."""
    which = (
        "The fit diverged and was stopped"
        if diverged.ndim == 0
        else f"{diverged.sum()} of {diverged.size} fits diverged and were stopped"
    )
    never = int((diverged & ~ever).sum())
    kept = "the best state before that is kept"
    if never:
        kept = "no epoch had a finite loss, so there is nothing to keep"
        if never < diverged.sum():
            kept = f"{never} of them never had a finite loss; of the others the best state is kept"
    return (
        f"{which} (first after epoch {epoch[diverged].min()}); {kept}. "
        "Try a smaller `learning_rate`, a smaller `clip`, more solver `substeps`, shorter windows, "
        "or standardised states, and check the units of the physics."
    )


def _align(flag, leaf):
    """Append axes to a per-seed flag until it broadcasts against a leaf."""
    return flag.reshape(flag.shape + (1,) * (leaf.ndim - flag.ndim))


def _slice(tree: PyTree, indices: np.ndarray) -> PyTree:
    return jax.tree.map(lambda leaf: leaf[indices] if eqx.is_array(leaf) else leaf, tree)


def _keep(fitted: Fitted, count: int) -> Fitted:
    """Drop the repeats that filled up the last chunk."""
    return Fitted(
        _slice(fitted.model, np.arange(count)),
        {name: rows[:, :count] for name, rows in fitted.history.items()},
        fitted.diverged[:count],
        fitted.epochs[:count],
        fitted.kept[:count],
    )


def _join(parts: list[Fitted]) -> Fitted:
    """Chunks of seeds back into one; histories of chunks that stopped early are padded."""
    longest = max(len(part.history["loss"]) for part in parts)

    def pad(rows: np.ndarray) -> np.ndarray:
        return np.pad(rows, [(0, longest - len(rows)), (0, 0)], constant_values=np.nan)

    model = jax.tree.map(
        lambda *leaves: jnp.concatenate(leaves) if eqx.is_array(leaves[0]) else leaves[0],
        *(part.model for part in parts),
    )
    history = {
        name: np.concatenate([pad(part.history[name]) for part in parts], 1)
        for name in parts[0].history
    }
    return Fitted(
        model,
        history,
        np.concatenate([part.diverged for part in parts]),
        np.concatenate([part.epochs for part in parts]),
        np.concatenate([part.kept for part in parts]),
    )
