"""Everything that changes during a fit, on the device, so that fits can be mapped over seeds."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp

from hybridsde._parameters import trainable
from hybridsde._types import Array, Bool, Int, PRNGKeyArray, PyTree, Scalar
from hybridsde.fit.config import Schedule

Selection = Callable[[PyTree], PyTree]
"""Marks the arrays of a model that training may move."""


class FitState(eqx.Module):
    """Trained numbers, optimiser, the best so far, and the counters that end a fit."""

    parameters: PyTree
    optimiser: PyTree
    best: PyTree
    """The parameters with the lowest validation loss, or else training loss, so far."""
    best_loss: Scalar
    best_epoch: Int[Array, ""]
    """After how many epochs the best was found."""
    first_loss: Scalar
    """The first finite training loss: the yardstick for an exploding one."""
    lowest_loss: Scalar
    """Of all training losses so far."""
    last_loss: Scalar
    """The training loss of the epoch before."""
    usual_change: Scalar
    """By how much the training loss differs from epoch to epoch, on a running mean."""
    fallen: Bool[Array, ""]
    """Whether the last epoch left the loss far above what it had come down to, or went back."""
    epoch: Int[Array, ""]
    since_best: Int[Array, ""]
    bad_steps: Int[Array, ""]
    """Consecutive steps whose loss or gradient was not finite, and that were not taken."""
    caution: Scalar
    """What steps are multiplied with: less after every time that a fit went back to its best."""
    stopped: Bool[Array, ""]
    diverged: Bool[Array, ""]
    key: PRNGKeyArray

    @classmethod
    def init(
        cls,
        model: eqx.Module,
        schedule: Schedule,
        select: Selection = trainable,
        *,
        key: PRNGKeyArray,
    ) -> tuple["FitState", PyTree]:
        """The state before the first epoch, and the part of the model that never changes."""
        parameters, frozen = eqx.partition(model, select(model))
        zero = jnp.zeros((), int)
        state = cls(
            parameters=parameters,
            optimiser=schedule.optimiser().init(parameters),
            best=parameters,
            best_loss=jnp.full((), jnp.inf, float),
            best_epoch=zero,
            first_loss=jnp.full((), jnp.inf, float),
            lowest_loss=jnp.full((), jnp.inf, float),
            last_loss=jnp.full((), jnp.nan, float),
            usual_change=jnp.full((), jnp.inf, float),
            fallen=jnp.zeros((), bool),
            epoch=zero,
            since_best=zero,
            bad_steps=zero,
            caution=jnp.ones((), float),
            stopped=jnp.zeros((), bool),
            diverged=jnp.zeros((), bool),
            key=key,
        )
        return state, frozen


def choose(condition: Bool[Array, ""], yes: PyTree, no: PyTree) -> PyTree:
    """`yes` where the condition holds, else `no`, leaf by leaf."""
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)


def all_finite(tree: PyTree) -> Bool[Array, ""]:
    """Whether every number of a tree is finite."""
    return jnp.array([jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(tree)]).all()
