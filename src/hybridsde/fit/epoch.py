"""One pass through the training series: a single compiled program."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax import lax

from hybridsde._streams import Beside, beside
from hybridsde._types import Array, Bool, PRNGKeyArray, PyTree, Scalar
from hybridsde.data import Batch
from hybridsde.fit.config import Schedule, batches_of
from hybridsde.fit.state import FitState, all_finite, choose
from hybridsde.objective import AbstractObjective, AbstractSDEObjective, Terms

BETTER = 0.1
"""A loss is clearly better than the first from this share of it on."""
EXPLODED = 100.0
"""A training loss this many times its starting size above its start has exploded."""
SLIPPED = 0.5
"""A fit that has lost this share of what it had gained has slipped,"""
CLEAR = 20.0
"""if the gain is this many times the usual change from epoch to epoch."""
MEMORY = 0.7
"""Of the usual change: the weight of what it was before."""
CAUTION = 0.3
"""After going back to its best state a fit takes steps that are this much shorter."""
LEAST_CAUTION = 0.05
"""With steps shorter than this share a fit that explodes again has diverged."""
VALIDATION_DRAWS = 8
"""How many estimates of the objective are averaged on the validation series."""


class Problem(eqx.Module):
    """What stays the same from epoch to epoch."""

    frozen: PyTree
    train: Batch
    validation: Batch | None
    objective: AbstractObjective
    schedule: Schedule
    batch_size: int = eqx.field(static=True)
    passes: int = eqx.field(static=True, default=1)
    length: int | None = eqx.field(static=True, default=None)
    """Rows of the random windows that are trained on; None for whole series."""


class EpochLog(NamedTuple):
    """What one epoch reports."""

    terms: Terms
    """Means over the training batches with a finite loss."""
    validation_loss: Scalar | None
    """Minus the mean log-likelihood of the validation series."""

    def columns(self) -> dict[str, np.ndarray]:
        """Everything as named numbers, off the device."""
        named = self.terms._asdict()
        if self.validation_loss is not None:
            named["validation_loss"] = self.validation_loss
        return {name: np.asarray(value) for name, value in named.items()}


def run_epoch(state: FitState, problem: Problem) -> tuple[FitState, EpochLog]:
    """Train for one epoch; a fit that has stopped is left as it is."""
    order_key, step_key = jr.split(jr.fold_in(state.key, state.epoch))
    batches = _shuffle(problem, key=order_key)
    step_keys = jr.split(step_key, len(batches))
    carry = (state.parameters, state.optimiser, state.bad_steps)
    caution = state.caution
    train = _entered(state.parameters, problem, problem.train, key=step_key)
    now = eqx.tree_at(lambda p: p.train, problem, train)
    carry, terms = lax.scan(lambda c, x: _step(c, *x, now, caution), carry, (batches, step_keys))
    taken = jnp.isfinite(terms.loss)
    middle = jnp.nanmedian(jnp.where(taken, terms.loss, jnp.nan))
    terms = jax.tree.map(lambda rows: jnp.mean(rows, where=taken), terms)
    key = beside(state.key, Beside.VALIDATION)
    validation_loss = _validate(carry[0], problem, key=key)
    after = _update_best(state, carry, terms, middle, validation_loss, problem)
    return choose(state.stopped, state, after), EpochLog(terms, validation_loss)


def _validate(parameters: PyTree, problem: Problem, *, key: PRNGKeyArray) -> Scalar | None:
    """The same draws in every epoch, so that epochs are compared and not their luck."""
    if problem.validation is None:
        return None
    model = eqx.combine(parameters, problem.frozen)
    objective = problem.objective
    held_out = _entered(parameters, problem, problem.validation, key=key)

    def one(key: PRNGKeyArray) -> Scalar:
        return objective(model, held_out, held_out.count, key=key).log_likelihood

    return -jax.vmap(one)(jr.split(key, VALIDATION_DRAWS)).mean()


def _entered(parameters: PyTree, problem: Problem, batch: Batch, *, key: PRNGKeyArray) -> Batch:
    """Pieces of recordings with where they begin, as the model is before the epoch."""
    if not isinstance(problem.objective, AbstractSDEObjective):
        return batch
    return problem.objective.entered(eqx.combine(parameters, problem.frozen), batch, key=key)


def _shuffle(problem: Problem, *, key: PRNGKeyArray):
    """Indices of every batch; the last is filled up from the front of the same shuffle."""
    series = problem.train.count
    size = min(problem.batch_size, series)
    rows = problem.train.times.shape[-1]
    steps = batches_of(problem.batch_size, series, rows, problem.length)

    def one_pass(key: PRNGKeyArray):
        return jnp.resize(jr.permutation(key, series), (steps, size))

    if problem.passes == 1:
        return one_pass(key)
    return jax.vmap(one_pass)(jr.split(key, problem.passes)).reshape(-1, size)


def draw_batch(problem: Problem, *, key: PRNGKeyArray) -> Batch:
    """Some training series, or random windows of them."""
    order_key, window_key = jr.split(key)
    series = problem.train.count
    chosen = jr.permutation(order_key, series)[: min(problem.batch_size, series)]
    batch = problem.train.take(chosen)
    return batch if problem.length is None else batch.random_windows(problem.length, key=window_key)


def _step(carry, indices, key: PRNGKeyArray, problem: Problem, caution: Scalar):
    """One gradient step, not taken where its loss or gradient is not finite."""
    parameters, optimiser, bad_steps = carry
    total = problem.train.count
    batch = problem.train.take(indices)
    if problem.length is not None:
        window_key, key = jr.split(key)
        batch = batch.random_windows(problem.length, key=window_key)

    def loss(parameters: PyTree):
        model = eqx.combine(parameters, problem.frozen)
        terms = problem.objective(model, batch, total, key=key)
        return terms.loss, terms

    gradient, terms = jax.grad(loss, has_aux=True)(parameters)
    finite = jnp.isfinite(terms.loss) & all_finite(gradient)
    updates, advanced = problem.schedule.optimiser().update(gradient, optimiser)
    updates = jax.tree.map(lambda leaf: caution * leaf, updates)
    moved = eqx.apply_updates(parameters, updates)
    parameters, optimiser = choose(finite, (moved, advanced), (parameters, optimiser))
    return (parameters, optimiser, jnp.where(finite, 0, bad_steps + 1)), terms


def _with_counts(afresh: PyTree, used: PyTree) -> PyTree:
    """An optimiser without memory of gradients that knows how many steps were taken."""
    return jax.tree.map(
        lambda new, old: old if jnp.issubdtype(new.dtype, jnp.integer) else new, afresh, used
    )


def _slipped(state: FitState, loss: Scalar) -> Bool[Array, ""]:
    """Whether the loss of most steps of an epoch is far above what it had come down to.

    Steps through a filter of states that are not measured can cross into a region where the drift
    is unstable, and need many others to find back. A single batch with a large loss is no slip.
    """
    gain = state.first_loss - state.lowest_loss
    return (loss > state.lowest_loss + SLIPPED * gain) & (gain > CLEAR * state.usual_change)


def _worse_than_untrained(state: FitState, loss: Scalar) -> Bool[Array, ""]:
    """Whether an epoch was worse than the first, although others were clearly better than it."""
    gain = state.first_loss - state.lowest_loss
    return (loss > state.first_loss) & (gain > BETTER * (1 + jnp.abs(state.first_loss)))


def _update_best(
    state: FitState,
    carry,
    terms: Terms,
    middle: Scalar,
    validation_loss: Scalar | None,
    problem: Problem,
) -> FitState:
    """Keep the best, and decide whether the fit is over.

    A validation loss belongs to the parameters after the epoch; the training loss was measured
    along the way, so it speaks for those that entered it.
    """
    parameters, optimiser, bad_steps = carry
    schedule = problem.schedule
    same_rows = problem.length is None  # losses of windows of other lengths do not compare
    slipped, fallen = (_slipped(state, one) & same_rows for one in (middle, terms.loss))
    fallen = fallen | (same_rows & _worse_than_untrained(state, terms.loss))
    validated = validation_loss is not None
    monitored = validation_loss if validated else terms.loss
    candidate = parameters if validated else state.parameters
    better = monitored < state.best_loss
    first = jnp.where(jnp.isfinite(state.first_loss), state.first_loss, terms.loss)
    since_best = jnp.where(better, 0, state.since_best + 1)
    exploded = terms.loss - first > EXPLODED * (1 + jnp.abs(first))
    lost = exploded | (bad_steps >= schedule.bad_steps)
    # Back to the best with shorter steps, as long as there was one and steps are not tiny.
    possible = jnp.isfinite(state.best_loss) & (state.caution > LEAST_CAUTION)
    again = (lost | slipped) & possible
    diverged = lost & ~possible
    worse = again | lost
    change = jnp.abs(middle - state.last_loss)
    usual = jnp.where(
        jnp.isfinite(state.usual_change),
        MEMORY * state.usual_change + (1 - MEMORY) * change,
        change,
    )
    afresh = schedule.optimiser().init(state.best)
    counted = _with_counts(afresh, optimiser)
    parameters, optimiser = choose(again, (state.best, counted), (parameters, optimiser))
    waited = since_best >= schedule.patience if validated else False
    return FitState(
        parameters=parameters,
        optimiser=optimiser,
        best=choose(better & ~worse, candidate, state.best),
        best_loss=jnp.where(better & ~worse, monitored, state.best_loss),
        best_epoch=jnp.where(
            better & ~worse, state.epoch + (1 if validated else 0), state.best_epoch
        ),
        first_loss=first,
        lowest_loss=jnp.fmin(state.lowest_loss, jnp.where(worse, jnp.nan, middle)),
        last_loss=jnp.where(worse, state.last_loss, middle),
        fallen=fallen | again,
        usual_change=jnp.where(worse | ~jnp.isfinite(usual), state.usual_change, usual),
        epoch=state.epoch + 1,
        since_best=since_best,
        bad_steps=jnp.where(again, 0, bad_steps),
        caution=jnp.where(again, CAUTION * state.caution, state.caution),
        stopped=diverged | waited,
        diverged=diverged,
        key=state.key,
    )
