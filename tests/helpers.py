"""Oracles and tolerances shared by the tests.

Statistical tests compare within five standard errors: each fails by chance with probability
6e-7, the whole suite with less than 1e-4. Seeds are fixed, so a test that passes stays passed.
"""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from hybridsde import (
    EmpiricalBayes,
    EmpiricalPACBayes,
    EulerMaruyama,
    HybridSDE,
    Run,
    Trajectories,
    fit,
    fit_certified,
    known_drift,
)
from hybridsde._parameters import Fixed, Free
from hybridsde.certify import UsedData
from hybridsde.data import Batch
from hybridsde.hybrid import SDEForecaster
from hybridsde.model import (
    MLP,
    BayesianMLP,
    BayesianSDE,
    DiagonalDiffusion,
    FirstObservation,
    GaussianObservation,
    KnownDrift,
    MeanField,
    Scale,
)
from hybridsde.model.drift import make_gate
from hybridsde.model.network import Linear
from hybridsde.model.weights import WEIGHTS
from hybridsde.physics import NoPhysics
from hybridsde.simulate import Paths, rollout
from hybridsde.store import RunMetadata

STANDARD_ERRORS = 5.0


def assert_mean_close(draws, expected, standard_errors: float = STANDARD_ERRORS) -> None:
    """The mean of independent draws is the expected one, within standard errors."""
    draws = np.asarray(draws, float)
    error = draws.std(0, ddof=1) / np.sqrt(len(draws))
    gap = np.abs(draws.mean(0) - np.asarray(expected))
    assert (gap <= standard_errors * error).all(), f"off by {gap / error} standard errors"


def assert_variance_close(draws, expected, standard_errors: float = STANDARD_ERRORS) -> None:
    """The variance of independent draws is the expected one, within standard errors."""
    draws = np.asarray(draws, float)
    squares = (draws - draws.mean(0)) ** 2
    assert_mean_close(squares, expected, standard_errors)


def tree_allclose(left, right, *, rtol: float = 1e-5, atol: float = 1e-6) -> bool:
    """Whether two trees have one structure and close arrays."""
    if jax.tree.structure(left) != jax.tree.structure(right):
        return False
    pairs = zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True)
    return all(
        np.allclose(a, b, rtol=rtol, atol=atol) if eqx.is_inexact_array(a) else bool(np.all(a == b))
        for a, b in pairs
    )


def one_series(values, observed=None, inputs=None) -> Batch:
    """A single series at times 0, 1, 2, …, as a model sees it."""
    values = jnp.asarray(values)
    rows = len(values)
    return Batch(
        times=jnp.arange(rows, dtype=float),
        steps=jnp.ones(rows - 1),
        values=values,
        observed=jnp.ones(values.shape, bool) if observed is None else jnp.asarray(observed),
        inputs=jnp.zeros((rows, 0)) if inputs is None else jnp.asarray(inputs),
        recorded=jnp.ones(rows, bool),
    )


def single_rollout(sde, solver, grid, h0, dw) -> Paths:
    """One path: `rollout` with a single lane and a single series."""
    grid = jax.tree.map(lambda leaf: leaf[:, None], grid)
    rows = len(dw) // solver.substeps + 1
    paths = rollout(sde, solver, grid, h0[None, None], dw[:, None, None], None, rows)
    return jax.tree.map(lambda leaf: leaf[0, 0], paths)


def strong_order(steps, errors) -> float:
    """Slope of ln error against ln step."""
    return float(np.polyfit(np.log(steps), np.log(errors), 1)[0])


def linear_model(
    weight,
    bias=None,
    *,
    weight_sd: float = 1e-12,
    bias_sd: float = 1e-12,
    diffusion=1.0,
    noise=1.0,
    physics=None,
    weights: str = "path",
) -> BayesianSDE:
    """An SDE whose learned drift is affine with known weights: f(h) = h W + b, in raw units."""
    weight = jnp.atleast_2d(jnp.asarray(weight, float))
    size = len(weight)
    bias = jnp.zeros(size) if bias is None else jnp.asarray(bias, float)
    states = tuple("xyzuvw"[:size])
    physics = NoPhysics() if physics is None else physics
    mean = MLP((Linear(weight, bias),), jnp.tanh)
    log_sd = MLP(
        (Linear(jnp.full_like(weight, np.log(weight_sd)), jnp.full_like(bias, np.log(bias_sd))),),
        jnp.tanh,
    )
    zero = jax.tree.map(jnp.zeros_like, mean)
    return BayesianSDE(
        network=BayesianMLP(MeanField(mean, log_sd), Fixed(MeanField(zero, zero))),
        weights=WEIGHTS[weights],
        known=KnownDrift(physics, make_gate(None, states, physics.known(states, ())), states, ()),
        diffusion=DiagonalDiffusion(Fixed(jnp.asarray(diffusion, float))),
        observation=GaussianObservation(
            matrix=Fixed(jnp.eye(size)),
            sd=Fixed(jnp.asarray(noise, float)),
            names=states,
            orthonormal=True,
        ),
        start=FirstObservation(Free(jnp.zeros(size)), Fixed(jnp.zeros(()))),
        scale=Fixed(Scale.identity(size, 0)),
        autonomous=True,
    )


def regular_batch(steps: int, horizon: float, start=(1.0,), series: int = 1) -> Batch:
    """Series on a regular grid whose values all equal their start."""
    times = np.linspace(0.0, horizon, steps + 1)
    values = np.tile(np.asarray(start, float), (steps + 1, 1))
    states = tuple("xyzuvw"[: values.shape[1]])
    return Batch.of(Trajectories.from_arrays([times] * series, [values] * series, states=states))


def wiggles(series: int = 6, steps: int = 12, seed: int = 0) -> Trajectories:
    """Small noisy oscillations in two states, for tests of plumbing."""
    rng = np.random.default_rng(seed)
    t = 0.1 * np.arange(steps)
    phases = rng.uniform(0, 2 * np.pi, series)
    values = [np.stack([np.sin(2 * t + p), np.cos(2 * t + p)], 1) for p in phases]
    noisy = [v + 0.05 * rng.normal(size=v.shape) for v in values]
    return Trajectories.from_arrays([t] * series, noisy, states=["x", "y"])


def first_equation(y, k):
    return {"x": k * y}


def tiny_model(**settings) -> HybridSDE:
    """A small hybrid for `wiggles`: the first equation is known."""
    choices = {
        "states": ["x", "y"],
        "physics": known_drift(first_equation, k=2.0),
        "diffusion": 0.2,
        "noise": 0.1,
        "hidden": (8,),
        "members": 1,
        "start": "first",
        **settings,
    }
    return HybridSDE(**choices)


PLAIN = {"estimator": "mean_log", "solver": EulerMaruyama()}
"""The cheapest way to move and to judge paths, for tests of plumbing."""


def bayes(**settings) -> EmpiricalBayes:
    """Empirical Bayes by sampled Euler paths."""
    return EmpiricalBayes(**{**PLAIN, **settings})


def pac(**settings) -> EmpiricalPACBayes:
    """Empirical PAC-Bayes by sampled Euler paths, as Algorithm 1 prints it."""
    return EmpiricalPACBayes(**{**PLAIN, "path_kl": "sum", **settings})


def plain_fit(model, data, **settings):
    """A fit that compiles quickly: sampled Euler paths unless a loss is named."""
    return fit(model, data, **{"objective": pac(), **settings})


def plain_certified(model, data, **settings):
    """A fit in two steps that compiles quickly."""
    return fit_certified(model, data, **{"objective": pac(), **settings})


def oscillations(series, rows=30, seed=0, noise=0.05):
    """x″ = −4x − 0.4x′ from random amplitudes and phases, position and velocity with noise."""
    rng = np.random.default_rng(seed)
    t, frequency = 0.1 * np.arange(rows), np.sqrt(4 - 0.04)
    values = []
    for amplitude, phase in zip(
        rng.uniform(0.7, 1.5, series), rng.uniform(0, 2 * np.pi, series), strict=True
    ):
        size, angle = amplitude * np.exp(-0.2 * t), frequency * t + phase
        x = size * np.cos(angle)
        v = -0.2 * x - frequency * size * np.sin(angle)
        values.append(np.stack([x, v], 1) + noise * rng.normal(size=(rows, 2)))
    return Trajectories.from_arrays([t] * series, values, states=("x", "v"))


def untrained_run(model=None, data=None, seed: int = 0, **metadata) -> Run:
    """A run that nothing was trained for: for tests of what is done with one."""
    model, data = tiny_model() if model is None else model, wiggles() if data is None else data
    batch = model.batch(data)
    forecaster = SDEForecaster(model.init(batch, key=jax.random.key(seed)), EulerMaruyama())
    known = RunMetadata(UsedData.of(train=data), "none", (1.0,) * len(model.observations))
    history = pd.DataFrame({"loss": [2.0, 1.0]}).rename_axis("epoch")
    return Run(model, forecaster, history, False, seed, replace(known, **metadata))
