"""Gathered weight gradients against those that plain differentiation of the loop gives."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from helpers import tiny_model, tree_allclose, wiggles
from hybridsde import AbstractSolver, EulerMaruyama, known_drift
from hybridsde._parameters import Positive, trainable
from hybridsde.data import Batch
from hybridsde.simulate import gathered, simulate


def plain_scan(step, lift, layers, rest, carry, xs, calls):
    del calls

    def advance(carry, x):
        return lift(lambda carry, x, _: step(layers, rest, carry, x))(carry, x, ())

    return lax.scan(advance, carry, xs)


@pytest.mark.parametrize("weights", ["path", "local"])
@pytest.mark.parametrize(
    ("few", "block", "paths"), [(128, 256, 1), (128, 256, 3), (0, 256, 1), (128, 4, 1), (0, 4, 3)]
)
def test_every_gradient_equals_that_of_the_plain_loop(
    weights, few, block, paths, getkey, monkeypatch
):
    """Weights, spreads, and what does not belong to the network: a learned rate and a gate.

    With few paths and many, in one go and in blocks of four steps with some left over.
    """
    monkeypatch.setattr(gathered, "FEW_PATHS", few)
    monkeypatch.setattr(gathered, "BLOCK", block)
    batch = Batch.of(wiggles())
    physics = known_drift(lambda x, y, rate: {"x": -rate * y}, rate=Positive.of(0.8))
    model = tiny_model(physics=physics, gate="learn", weights=weights).init(batch, key=getkey())
    parameters, frozen = eqx.partition(model, trainable(model))
    key = getkey()

    def gradient():
        def loss(parameters):
            model = eqx.combine(parameters, frozen)
            run = simulate(model, EulerMaruyama(2), batch, samples=2, paths=paths, key=key)
            return jnp.mean((run.states - 0.3) ** 2) + 0.1 * run.kl.mean()

        return jax.jit(jax.grad(loss))(parameters)

    ours = gradient()
    monkeypatch.setattr(gathered, "scan", plain_scan)
    theirs = gradient()
    assert tree_allclose(ours, theirs, rtol=1e-4, atol=1e-6)
    largest = [float(jnp.abs(leaf).max()) for leaf in jax.tree.leaves(ours)]
    assert np.mean(np.array(largest) > 1e-6) > 0.8


class Heun(AbstractSolver):
    """Calls the drift twice per step."""

    substeps: int = eqx.field(static=True, default=1)
    strong_order: ClassVar[float] = 0.5

    def step(self, sde, t, h, u, dt, dw, noise):
        first = sum(sde.drift(t, h, u, noise))
        there = h + first * dt + sde.diffusion.spread(t, h, dw)
        second = sum(sde.drift(t + dt, there, u, noise))
        return there + 0.5 * (second - first) * dt, jnp.zeros(())


def test_a_solver_that_calls_the_drift_twice_has_its_gradient(getkey, monkeypatch):
    batch = Batch.of(wiggles())
    model = tiny_model().init(batch, key=getkey())
    parameters, frozen = eqx.partition(model, trainable(model))
    key = getkey()

    def gradient():
        def loss(parameters):
            run = simulate(eqx.combine(parameters, frozen), Heun(), batch, samples=1, key=key)
            return jnp.mean(run.states**2)

        return jax.jit(jax.grad(loss))(parameters)

    ours = gradient()
    monkeypatch.setattr(gathered, "scan", plain_scan)
    assert tree_allclose(ours, gradient(), rtol=1e-4)


def test_the_start_has_a_gradient(getkey):
    batch = Batch.of(wiggles())
    model = tiny_model().init(batch, key=getkey())
    key = getkey()

    def end(values):
        moved = eqx.tree_at(lambda b: b.values, batch, values)
        return simulate(model, EulerMaruyama(), moved, samples=1, key=key).states[0, 0, -1, 0]

    slope = jax.grad(end)(batch.values)
    step = jnp.zeros_like(batch.values).at[0, 0, 0].set(1e-2)
    difference = (end(batch.values + step) - end(batch.values - step)) / 2e-2
    np.testing.assert_allclose(slope[0, 0, 0], difference, rtol=2e-2)
