"""One pass through the training series: a single compiled program."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jax import lax

from hybridsde._types import PRNGKeyArray, PyTree
from hybridsde.data import Batch
from hybridsde.fit.state import FitState, choose
from hybridsde.fit.training import Training
from hybridsde.objective import AbstractObjective, Terms
from hybridsde.simulate import AbstractSolver

EXPLODED = 100.0
"""A monitored loss this many times its starting size above its start has exploded."""


class Problem(eqx.Module):
    """What stays the same from epoch to epoch."""

    frozen: PyTree
    train: Batch
    validation: Batch | None
    objective: AbstractObjective
    solver: AbstractSolver
    training: Training = eqx.field(static=True)


def run_epoch(state: FitState, problem: Problem) -> tuple[FitState, Terms]:
    """Train for one epoch; a fit that has stopped is left as it is.

    The returned terms are the epoch's means over training batches, except that `loss` is the
    monitored one: on the validation series where there are any.
    """
    order_key, step_key, validation_key = jr.split(jr.fold_in(state.key, state.epoch), 3)
    batches = _shuffle(problem, key=order_key)
    step_keys = jr.split(step_key, len(batches))
    carry = (state.parameters, state.optimiser, state.bad_steps)
    carry, terms = lax.scan(lambda c, x: _step(c, *x, problem), carry, (batches, step_keys))
    terms = jax.tree.map(jnp.mean, terms)
    if problem.validation is not None:
        model = eqx.combine(carry[0], problem.frozen)
        count = problem.validation.count
        objective, solver = problem.objective, problem.solver
        seen = objective(model, solver, problem.validation, count, key=validation_key)
        terms = terms._replace(loss=seen.loss)
    after = _judge(state, carry, terms, problem.training, problem.validation is not None)
    return choose(state.stopped, state, after), terms


def _shuffle(problem: Problem, *, key: PRNGKeyArray):
    """Indices of every batch; the last is filled up from the front of the same shuffle."""
    series = problem.train.count
    size = min(problem.training.batch_size, series)
    order = jr.permutation(key, series)
    rows = problem.training.batches(series)
    return jnp.resize(order, (rows, size))


def _step(carry, indices, key: PRNGKeyArray, problem: Problem):
    """One gradient step, not taken where its loss or gradient is not finite."""
    parameters, optimiser, bad_steps = carry
    total = problem.train.count
    batch = problem.train.take(indices)

    def loss(parameters: PyTree):
        model = eqx.combine(parameters, problem.frozen)
        terms = problem.objective(model, problem.solver, batch, total, key=key)
        return terms.loss, terms

    gradient, terms = jax.grad(loss, has_aux=True)(parameters)
    finite = jnp.isfinite(terms.loss) & _all_finite(gradient)
    updates, advanced = problem.training.optimiser(total).update(gradient, optimiser)
    moved = eqx.apply_updates(parameters, updates)
    parameters, optimiser = choose(finite, (moved, advanced), (parameters, optimiser))
    return (parameters, optimiser, jnp.where(finite, 0, bad_steps + 1)), terms


def _judge(state: FitState, carry, terms: Terms, training: Training, validated: bool) -> FitState:
    """Keep the best, and decide whether the fit is over."""
    parameters, optimiser, bad_steps = carry
    better = terms.loss < state.best_loss
    first = jnp.where(state.epoch == 0, terms.loss, state.first_loss)
    since_best = jnp.where(better, 0, state.since_best + 1)
    exploded = terms.loss - first > EXPLODED * (1 + jnp.abs(first))
    diverged = exploded | (bad_steps >= training.bad_steps)
    patience = training.patience if validated else None
    waited = False if patience is None else since_best >= patience
    return FitState(
        parameters=parameters,
        optimiser=optimiser,
        best=choose(better, parameters, state.best),
        best_loss=jnp.where(better, terms.loss, state.best_loss),
        first_loss=first,
        epoch=state.epoch + 1,
        since_best=since_best,
        bad_steps=bad_steps,
        stopped=diverged | waited,
        diverged=diverged,
        key=state.key,
    )


def _all_finite(tree: PyTree):
    return jnp.array([jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(tree)]).all()
