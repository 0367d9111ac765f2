"""One declared model for many members, each with recordings of its own, as one program."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from hybridsde._errors import InputError
from hybridsde._streams import Stream
from hybridsde._types import Keys
from hybridsde.data import Batch, Trajectories
from hybridsde.fit import Callback, Fitted, Training, train_many
from hybridsde.forecast import GradientDescent, ModelSpec
from hybridsde.hybrid import HybridSDE
from hybridsde.objective import AbstractObjective
from hybridsde.run.calibrate import best_factors_of_many, calibrated
from hybridsde.run.fitting import Prepared, learned_numbers, say_same_work
from hybridsde.run.many import keys_of, one_of
from hybridsde.run.padding import alike, stacked
from hybridsde.run.run import Run
from hybridsde.run.windows import forecast_windows

Item = TypeVar("Item")


def fit_each(
    model: ModelSpec,
    datasets: Sequence[Trajectories],
    *,
    seeds: Sequence[int],
    objective: AbstractObjective | None = None,
    training: Training | None = None,
    validations: Sequence[Trajectories | None] | None = None,
    horizon: int | None = None,
    callbacks: Iterable[Callback] = (),
) -> list[Run]:
    """A fit for every member of a fleet: one data set and one seed each.

    Members with equally many series are trained as one program on all devices, shorter ones padded
    by repeated times; other members follow in programs of their own. Each is the `fit` of its
    data, up to the random numbers of a gradient step where it was padded. What is found without
    training, such as a library, is found one by one.

    Declare a step of time (`numerics`), or settle the model on some of the data before: otherwise
    each member chooses its own, and hardly two have one shape. What the learned part is made of
    must be decided. A fit whose loss was never finite is marked as diverged.
    """
    if isinstance(model, HybridSDE) and model.undecided:
        raise InputError("Decide what the learned part is made of: learned='library' or 'network'.")
    held = [None] * len(datasets) if validations is None else list(validations)
    tasks = [
        Prepared.of(model, data, objective, training, validation=chosen)
        for data, chosen in zip(datasets, held, strict=True)
    ]
    runs: dict[int, Run] = {}
    for group in _grouped(range(len(tasks)), lambda one: _shape(tasks[one])):
        members = [tasks[one] for one in group]
        own = [seeds[one] for one in group]
        if isinstance(members[0].inference, GradientDescent):
            found = _train(model, members, own, tuple(callbacks))
        else:
            found = _estimate(members, own, tuple(callbacks))
        runs |= dict(zip(group, found, strict=True))
    return _calibrated([runs[one] for one in range(len(tasks))], held, horizon)


def _shape(task: Prepared) -> Hashable:
    """Members that agree in this fit into one program."""
    held_out = task.held_out
    validated = None if held_out is None else held_out.count
    return task.batch.count, validated, type(task.inference), _choices(task.model)


def _choices(model: ModelSpec) -> str:
    """What was chosen for a member beyond the origin of its times."""
    if not isinstance(model, HybridSDE):
        return ""
    return repr(replace(model.numerics, origin=None, why=None))


def _train(
    model: ModelSpec,
    tasks: list[Prepared],
    seeds: Sequence[int],
    callbacks: tuple[Callback, ...],
) -> list[Run]:
    """Gradient descent for all of them side by side."""
    batches = stacked(alike([task.batch for task in tasks]))
    pairs = jax.vmap(jr.split)(jax.vmap(jr.key)(jnp.asarray(seeds)))
    first = tasks[0].inference
    assert isinstance(first, GradientDescent)
    held_out = [task.held_out for task in tasks if task.held_out is not None]
    trained = train_many(
        _untrained(model, tasks, batches, pairs[:, 0]),
        batches,
        first.loss,
        training=first.training,
        langevin=first.langevin,
        validation=stacked(alike(held_out)) if held_out else None,
        callbacks=callbacks,
        chunk=len(tasks),
        keys=pairs[:, 1],
    )
    fitted = trained.map(first.finish)
    on_host, bare = _on_host(fitted.model), fitted.map(lambda _: eqx.Module())
    runs = []
    for number, (task, seed) in enumerate(zip(tasks, seeds, strict=True)):
        member = _member(bare, on_host, number)
        batch = jax.tree.map(lambda leaf, n=number: leaf[n], batches)
        found = learned_numbers(member.model, batch)
        if not number:
            say_same_work(task.model, found.parameters)
        runs.append(task.remembered(member, seed, found))
    return runs


def _untrained(model: ModelSpec, tasks: list[Prepared], batches: Batch, keys: Keys) -> Any:
    """Models before the first step: at once where the declaration stands for all as it is."""
    if isinstance(model, HybridSDE) and not model.linear and _stands_for(model, tasks):
        return _init_each(model.init, batches, keys)
    models = []
    for number, task in enumerate(tasks):
        assert isinstance(task.inference, GradientDescent)
        one = jax.tree.map(lambda leaf, number=number: leaf[number], batches)
        models.append(task.inference.init(one, key=keys[number]))
    return stacked_models(models)


def _stands_for(model: HybridSDE, tasks: list[Prepared]) -> bool:
    """Whether nothing was chosen for single members that an untrained model would show."""
    specs = [task.model for task in tasks]
    same = all(isinstance(spec, HybridSDE) and spec.physics is model.physics for spec in specs)
    return same and _choices(specs[0]) == _choices(model)


@eqx.filter_jit
def _init_each(init: Callable, batches: Batch, keys: Keys) -> Any:
    return eqx.filter_vmap(lambda batch, key: init(batch, key=key))(batches, keys)


def _on_host(model: Any) -> Any:
    """Arrays copied at once, so that members are cut out of them for nothing."""
    return jax.tree.map(lambda leaf: np.asarray(leaf) if eqx.is_array(leaf) else leaf, model)


def _member(fitted: Fitted, on_host: Any, number: int) -> Fitted:
    """One of the fits along a leading axis, back on the device."""

    def cut(leaf: Any) -> Any:
        return jnp.asarray(leaf[number]) if isinstance(leaf, np.ndarray) else leaf

    return one_of(fitted, number).map(lambda _: jax.tree.map(cut, on_host))


def _estimate(
    tasks: list[Prepared], seeds: Sequence[int], callbacks: tuple[Callback, ...]
) -> list[Run]:
    """Closed forms one by one, in one shape: what is compiled for the first serves all."""
    runs = []
    for task, batch, seed in zip(tasks, alike([t.batch for t in tasks]), seeds, strict=True):
        same = replace(task, batch=batch)
        fitted = task.inference.fit(batch, callbacks=callbacks, key=jr.key(seed))
        runs.append(same.run(fitted, seed))
    return runs


def _calibrated(
    runs: list[Run], held: Sequence[Trajectories | None], horizon: int | None
) -> list[Run]:
    """Spreads judged on the validation recordings, where there are some; see `calibrate`."""
    found = list(runs)
    windows = {
        number: forecast_windows(data, horizon, runs[number].spec.context)
        for number, data in enumerate(held)
        if data is not None and runs[number].forecaster.spreads()
    }
    batches = {number: runs[number].spec.batch(data) for number, data in windows.items()}
    for group in _grouped(windows, lambda one: _structure((runs[one].forecaster, batches[one]))):
        factors = best_factors_of_many(
            stacked_models([runs[one].forecaster for one in group]),
            stacked([batches[one] for one in group]),
            keys_of([runs[one].seed for one in group], Stream.CALIBRATION),
        )
        for place, one in enumerate(group):
            own = {name: each[place] for name, each in factors.items()}
            found[one] = calibrated(runs[one], windows[one], own)
    return found


def stacked_models(models: Sequence[eqx.Module]) -> Any:
    """Models of one structure along a leading axis."""
    arrays = stacked([eqx.filter(model, eqx.is_array) for model in models])
    return eqx.combine(arrays, eqx.filter(models[0], eqx.is_array, inverse=True))


def _structure(tree: Any) -> Hashable:
    """What must agree for trees to be stacked."""
    arrays, static = eqx.partition(tree, eqx.is_array)
    shapes = tuple((leaf.shape, str(leaf.dtype)) for leaf in jax.tree.leaves(arrays))
    return shapes, jax.tree.structure(arrays), str(static)


def _grouped(items: Iterable[int], shape: Callable[[int], Hashable]) -> list[list[int]]:
    """Members by shape, in the order in which they come."""
    groups: dict[Hashable, list[int]] = {}
    for item in items:
        groups.setdefault(shape(item), []).append(item)
    return list(groups.values())
