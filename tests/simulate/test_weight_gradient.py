"""Gathered weight gradients against those that plain differentiation of the loop gives."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from helpers import tiny_model, tree_allclose, wiggles
from hybridsde import AbstractDifferentiatedSolver, EulerMaruyama, known_drift
from hybridsde._parameters import Positive, trainable
from hybridsde.data import Batch
from hybridsde.simulate import simulate, weight_gradient


def plain_scan(step, lift, layers, rest, carry, xs, paths):
    del paths

    def advance(carry, x):
        return lift(lambda carry, x, _: step(layers, rest, carry, x))(carry, x, ())

    return lax.scan(advance, carry, xs)


@pytest.mark.parametrize("weights", ["path", pytest.param("local", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("few", "block", "paths"), [(128, 256, 1), (128, 256, 3), (0, 256, 1), (128, 4, 1), (0, 4, 3)]
)
@pytest.mark.slow
@pytest.mark.long
def test_every_gradient_equals_that_of_the_plain_loop(
    weights, few, block, paths, getkey, monkeypatch
):
    """Weights, spreads, and what does not belong to the network: a learned rate and a gate.

    With few paths and many, in one go and in blocks of four steps with some left over.
    """
    monkeypatch.setattr(weight_gradient, "FEW_PATHS", few)
    monkeypatch.setattr(weight_gradient, "BLOCK", block)
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
    monkeypatch.setattr(weight_gradient, "scan", plain_scan)
    theirs = gradient()
    assert tree_allclose(ours, theirs, rtol=1e-4, atol=1e-6)
    largest = [float(jnp.abs(leaf).max()) for leaf in jax.tree.leaves(ours)]
    assert np.mean(np.array(largest) > 1e-6) > 0.8


class Heun(AbstractDifferentiatedSolver):
    """Calls the drift twice per step."""

    substeps: int = eqx.field(static=True, default=1)
    strong_order: ClassVar[float] = 0.5

    def step(self, sde, t, h, u, dt, dw, noise):
        first = sum(sde.drift(t, h, u, noise))
        there = h + first * dt + sde.diffusion.spread(t, h, dw)
        second = sum(sde.drift(t + dt, there, u, noise))
        return there + 0.5 * (second - first) * dt, jnp.zeros(())


class Taylor(AbstractDifferentiatedSolver):
    """Calls the drift inside a transformation of its own."""

    substeps: int = eqx.field(static=True, default=1)
    strong_order: ClassVar[float] = 0.5

    def step(self, sde, t, h, u, dt, dw, noise):
        def drift(h):
            return sum(sde.drift(t, h, u, noise))

        f, curved = jax.jvp(drift, (h,), (jnp.ones_like(h),))
        return h + (f + 0.5 * curved * dt) * dt + sde.diffusion.spread(t, h, dw), jnp.zeros(())


@pytest.mark.parametrize("solver", [Heun(), Taylor()])
@pytest.mark.slow
def test_solvers_that_use_the_drift_otherwise_have_their_gradient(solver, getkey, monkeypatch):
    batch = Batch.of(wiggles())
    model = tiny_model().init(batch, key=getkey())
    parameters, frozen = eqx.partition(model, trainable(model))
    key = getkey()

    def gradient():
        def loss(parameters):
            run = simulate(eqx.combine(parameters, frozen), solver, batch, samples=1, key=key)
            return jnp.mean(run.states**2)

        return jax.jit(jax.grad(loss))(parameters)

    ours = gradient()
    monkeypatch.setattr(weight_gradient, "scan", plain_scan)
    assert tree_allclose(ours, gradient(), rtol=1e-4)


@pytest.mark.parametrize("few", [0, 128])
@pytest.mark.parametrize("name", ["values", "steps"])
@pytest.mark.slow
def test_start_and_steps_have_a_gradient(few, name, getkey, monkeypatch):
    """Against a central difference in the first entry."""
    monkeypatch.setattr(weight_gradient, "FEW_PATHS", few)
    batch = Batch.of(wiggles())
    model = tiny_model().init(batch, key=getkey())
    key, at = getkey(), getattr(batch, name)

    def end(leaf):
        moved = eqx.tree_at(lambda b: getattr(b, name), batch, leaf)
        return simulate(model, EulerMaruyama(), moved, samples=1, key=key).states[0, 0, -1, 0]

    first = (0,) * at.ndim
    step = jnp.zeros_like(at).at[first].set(1e-2)
    difference = (end(at + step) - end(at - step)) / 2e-2
    assert abs(difference) > 1e-3
    np.testing.assert_allclose(jax.grad(end)(at)[first], difference, rtol=5e-2)


@pytest.mark.slow
def test_a_single_time_is_a_path_that_has_not_moved(getkey):
    batch = Batch.of(wiggles())
    model = tiny_model().init(batch, key=getkey())
    start = jax.tree.map(lambda leaf: leaf[:, :1], batch)
    start = eqx.tree_at(lambda b: b.steps, start, batch.steps[:, :0])
    paths = simulate(model, EulerMaruyama(), start, samples=2, key=getkey())
    assert paths.states.shape == (2, batch.count, 1, 2)
    assert (paths.kl == 0).all()
