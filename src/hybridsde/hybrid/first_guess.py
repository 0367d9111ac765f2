"""A first guess: least squares on the known equations alone, through their flow.

Learned parameters and the starts of unmeasured states are found by Levenberg–Marquardt steps from
several places at once. States without an equation follow the line through their recordings.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.flatten_util import ravel_pytree

from hybridsde._linear import cholesky, solve_factored
from hybridsde._parameters import Bounded, trainable
from hybridsde._types import Array, Bool, Float, Int, Scalar
from hybridsde.data import Batch
from hybridsde.hybrid.numerics import recorded_states
from hybridsde.model import SDE, BayesianSDE, Standardiser
from hybridsde.model.network import ZeroNetwork
from hybridsde.physics import AbstractPhysics
from hybridsde.simulate import AbstractSolver

PLACES = 24
"""Starting points that are tried side by side."""
ITERATIONS = 30
SPREAD = 1.5
"""Spread of the starting points of what is searched for without constraints."""
MOST_SERIES = 24
"""As many series at most are looked at."""
ROBUST = 3.0
"""Residuals count in full up to this many typical ones, then ever less."""
UNBOUNDED = 1e4
"""Times a guessed size: more than an unmeasured state moves in a step."""
TIE = 1e-4
"""How much a step away from the first place costs, beside residuals of order one."""
FLAT, INSIDE = 1e-3, 4.0
"""Least squares drive parameters to the limits of their ranges where equations are incomplete.
Where a step of one in its logit changes a parameter by less than this share, it begins at a logit
nearer to the middle instead: at a limit it would never move again."""
LEAST_SIZE = 0.05
"""An unmeasured state varies by this share of its mean at least."""


class Unknowns(NamedTuple):
    """What is looked for, all of it without constraints."""

    parameters: Float[Array, " parameter"]
    """All learned numbers of the physics."""
    starts: Float[Array, "series hidden"]
    """Of unmeasured states; see `Regions`."""


class Regions(eqx.Module):
    """Where unmeasured states may start, each in each series: at a number, in a range, anywhere."""

    low: Float[Array, "series hidden"]
    high: Float[Array, "series hidden"]

    @property
    def ranges(self) -> Bool[Array, "series hidden"]:
        """Which starts have two ends."""
        return jnp.isfinite(self.low) & jnp.isfinite(self.high)

    def take(self, series: Int[Array, " kept"], hidden: Int[Array, " chosen"]) -> "Regions":
        """Of some series and states."""
        return Regions(self.low[series][:, hidden], self.high[series][:, hidden])

    def starts(self, free: Float[Array, "series hidden"]) -> Float[Array, "series hidden"]:
        """Low + (high − low) σ(z) where there is a range, else z itself inside what limits it."""
        low, width = (jnp.where(self.ranges, x, 0.0) for x in (self.low, self.high - self.low))
        inside = low + width * jax.nn.sigmoid(free)
        return jnp.where(self.ranges, inside, jnp.clip(free, self.low, self.high))


@dataclass(frozen=True)
class Guess:
    """What least squares found."""

    physics: AbstractPhysics
    typical: dict[str, tuple[float, float]]
    """Mean and spread of each unmeasured state along the flow."""
    error: float
    """Root mean square of the residuals, in spreads of the observations."""


def first_guess(
    model: BayesianSDE,
    solver: AbstractSolver,
    batch: Batch,
    lift: Float[Array, "state obs"],
    hidden: tuple[str, ...],
    sizes: tuple[float, ...],
    regions: Regions,
) -> Guess | None:
    """The best of several searches; None where nothing is to be found or none ends well.

    `sizes` are scales on which starts of `hidden` states are tried, and `regions` where they may
    lie. Everything is in the coordinates of the model.
    """
    states = model.known.states
    known = model.known.gate.known
    looked_for = tuple(states.index(name) for name in hidden if known[states.index(name)])
    moved, held = eqx.partition(model.known.physics, trainable(model.known.physics))
    flat, unflatten = ravel_pytree(moved)
    if not (flat.size or looked_for) or not any(known):
        return None
    most = MOST_SERIES if not looked_for else max(4, MOST_SERIES // (2 * len(looked_for)))
    kept = np.arange(batch.count)
    if batch.count > most:
        kept = np.linspace(0, batch.count - 1, most).astype(int)
        batch = batch.take(jnp.asarray(kept))
    columns = jnp.asarray([hidden.index(states[i]) for i in looked_for], int)
    regions = regions.take(jnp.asarray(kept), columns)
    path = jnp.asarray(recorded_states(model, batch, lift))
    scale = Standardiser.of(batch.values, batch.observed).sd
    shape = (batch.count, len(looked_for))

    # Steps of states whose size is not known yet must not be bounded by it.
    sd = model.scale.value.states.sd
    for index in looked_for:
        sd = sd.at[index].set(UNBOUNDED * sizes[hidden.index(states[index])])
    model = eqx.tree_at(lambda m: m.scale.frozen.states.sd, model, sd)

    def model_of(parameters: Array) -> BayesianSDE:
        physics = eqx.combine(unflatten(parameters), held)
        return eqx.tree_at(lambda m: m.known.physics, model, physics)

    def flow(x: Unknowns) -> Float[Array, "series time state"]:
        sde = model_of(x.parameters).driven_by(ZeroNetwork(outputs=len(states)))
        each = jax.vmap(lambda one, line, start: _flow(sde, solver, one, line, start, looked_for))
        return each(batch, path, regions.starts(x.starts))

    def residuals(vector: Array) -> Array:
        x = restore(vector)
        found = model.observation.mean(flow(x))
        error = jnp.where(batch.observed, (found - batch.values) / scale, 0.0)[:, 1:].reshape(-1)
        error = jnp.nan_to_num(error, nan=1e3, posinf=1e3, neginf=-1e3)
        robust = error / jnp.sqrt(1 + jnp.abs(error) / ROBUST)
        # A weak tie to the first place decides what the data leave open.
        tie = TIE * jnp.concatenate([vector[: flat.size] - flat, vector[flat.size :] / big])
        return jnp.concatenate([robust / jnp.sqrt(seen), tie / jnp.sqrt(len(tie))])

    seen = float(np.maximum(np.asarray(batch.observed[:, 1:]).sum(), 1))
    zero = Unknowns(flat, jnp.zeros(shape))
    _, restore = ravel_pytree(zero)
    ranges = np.asarray(regions.ranges)
    each = np.where(ranges, 1.0, [sizes[hidden.index(states[i])] for i in looked_for])
    big = jnp.asarray(each.reshape(-1))
    first = jnp.asarray(_places(np.asarray(flat), each, ranges))

    @jax.jit
    def search(first: Array) -> tuple[Unknowns, Scalar, Array]:
        found, cost = jax.vmap(lambda one: _search(residuals, one))(first)
        best = jnp.argmin(jnp.where(jnp.isfinite(cost), cost, jnp.inf))
        x = restore(found[best])
        return x, cost[best], flow(x)

    x, cost, paths = search(first)
    if not np.isfinite(cost):
        return None
    paths = np.asarray(paths, float)
    recorded = np.asarray(batch.recorded)
    typical = {}
    for index in looked_for:
        values = paths[..., index][recorded]
        if not np.isfinite(values).all():
            return None
        mean, sd = float(values.mean()), float(values.std())
        typical[states[index]] = (mean, max(sd, LEAST_SIZE * abs(mean), 1e-6))
    physics = _inside(eqx.combine(unflatten(x.parameters), held))
    return Guess(physics, typical, float(np.sqrt(cost)))


def _inside(physics: AbstractPhysics) -> AbstractPhysics:
    """The same with no parameter at the limits of its range."""

    def moved(node):
        if not isinstance(node, Bounded):
            return node
        share = jax.nn.sigmoid(node.raw)
        slope = (node.high - node.low) * share * (1 - share)
        flat = (slope < FLAT * jnp.abs(node.value)) & (jnp.abs(node.raw) > INSIDE)
        return eqx.tree_at(
            lambda b: b.raw, node, jnp.where(flat, INSIDE * jnp.sign(node.raw), node.raw)
        )

    return jax.tree.map(moved, physics, is_leaf=lambda node: isinstance(node, Bounded))


def _flow(
    sde: SDE,
    solver: AbstractSolver,
    series: Batch,
    line: Float[Array, "time state"],
    start: Float[Array, " hidden"],
    hidden: tuple[int, ...],
) -> Float[Array, "time state"]:
    """The known drift from the first row on; states without an equation follow their line."""
    grid = series.grid(solver.substeps)
    free = jnp.asarray(sde.known.gate.known)
    since = series.elapsed
    ends = grid.t + grid.dt - series.times[0]
    along = jax.vmap(lambda column: jnp.interp(ends, since, column), 1, 1)(line)
    h0 = line[0]
    for position, index in enumerate(hidden):
        h0 = h0.at[index].set(start[position])
    h0 = sde.clip(h0)
    still = jnp.zeros_like(h0)

    def step(h, x):
        grid, followed = x
        after, _ = solver.step(sde, grid.t, h, grid.u, grid.dt, still, None)
        after = sde.clip(jnp.where(free, after, followed))
        return after, after

    _, path = lax.scan(step, h0, (grid, along))
    return jnp.concatenate([h0[None], path[grid.ends(series.times.shape[0])]])


def _places(
    flat: Float[np.ndarray, " parameter"],
    sizes: Float[np.ndarray, "series hidden"],
    ranges: Bool[np.ndarray, "series hidden"],
) -> Float[np.ndarray, "place unknown"]:
    """The given parameters first, others around them; starts all over their ranges, or on several
    scales where they have none; the same always.
    """
    rng = np.random.default_rng(0)
    around = flat + SPREAD * rng.normal(size=(PLACES, flat.size))
    around[: PLACES // 4] = flat
    tens = np.resize([1.0, 0.3, 3.0, 0.1, 10.0, 0.03], PLACES)[:, None, None]
    normals = rng.normal(size=(PLACES, *sizes.shape))
    starts = np.where(ranges, SPREAD * normals, tens * sizes * (1 + 0.2 * normals))
    return np.concatenate([around, starts.reshape(PLACES, -1)], 1)


def _search(
    residuals: Callable[[Array], Array], x: Float[Array, " unknown"]
) -> tuple[Array, Scalar]:
    """Levenberg–Marquardt: (JᵀJ + λ diag JᵀJ) δ = −Jᵀr, λ smaller after success.

    Begins with a step of zero, so that residuals and slopes stand in the program once.
    """

    def iterate(carry, _):
        x, gram, gradient, cost, damping = carry
        ridge = damping * (jnp.diag(gram) + 1e-9) + 1e-12
        step = solve_factored(cholesky(gram + jnp.diag(ridge)), -gradient)
        tried = x + jnp.where(jnp.isfinite(step), step, 0.0)
        slope, r = jax.jacfwd(lambda x: (residuals(x),) * 2, has_aux=True)(tried)
        after = r @ r
        better = after < cost
        damping = jnp.clip(jnp.where(better, damping / 3, damping * 4), 1e-7, 1e7)
        found = (tried, slope.T @ slope, slope.T @ r, after)
        kept = jax.tree.map(lambda a, b: jnp.where(better, a, b), found, carry[:4])
        return (*kept, damping), None

    size = len(x)
    start = (x, jnp.zeros((size, size)), jnp.zeros(size), jnp.asarray(jnp.inf), jnp.asarray(1e-2))
    (x, _, _, cost, _), _ = lax.scan(iterate, start, length=ITERATIONS + 1)
    return x, cost
