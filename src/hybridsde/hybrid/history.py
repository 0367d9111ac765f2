"""What a history says of the states and of the weights: filtered, smoothed, and gone on from.

A draw of the weights counts by how well it explains the history, p(θ | Y) ∝ p_φ(θ) p(Y | θ), and
each has its own Gaussian over the states.
"""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax import lax

from hybridsde._types import Array, Bool, Float, Int, PRNGKeyArray, PyTree
from hybridsde.data import Batch
from hybridsde.estimate.censored import at_limit
from hybridsde.estimate.estimator import AbstractEstimator, Record
from hybridsde.estimate.filter import first_state, innovations, to_the_end
from hybridsde.estimate.gaussian import GaussianState, Innovation
from hybridsde.estimate.states import at_rows, factor
from hybridsde.forecast import StatesGiven
from hybridsde.model import SDE, BayesianSDE, GaussianObservation
from hybridsde.simulate import AbstractSolver

NETWORKS = 48
"""Draws of the weights that a history is filtered with."""
LEAST_LEFT = 0.25
"""The evidence is tempered until it leaves so large a share of the draws, counted by ESS."""
TEMPERS = 2.0 ** -np.arange(24)


BEYOND_BELIEF = 6.0
"""A last value is set aside whose innovation is larger than this many usual ones."""
USUAL = 0.6745
"""The median of the size of a standard normal."""
DRAWN = 64
"""States that stand for what an estimator without a Gaussian knows at the last row."""


class DrawnStates(eqx.Module):
    """What is known of the state at one time, as draws in equal shares."""

    draws: Float[Array, "*batch draw state"]


class Ends(eqx.Module):
    """The state after the last row of each series, under draws of the weights."""

    weight_keys: Array
    last: GaussianState
    """Leaves begin with sample × series."""
    log_evidence: Float[Array, "sample series"]


class DrawnEnds(eqx.Module):
    """The same, where the state is no Gaussian."""

    weight_keys: Array
    last: DrawnStates
    log_evidence: Float[Array, "sample series"]


def weight_noise(
    sde: SDE, numbers: Array, batch: Batch, solver: AbstractSolver, key: PRNGKeyArray
) -> PyTree:
    """What the network of `sde` consumes along every series: step × series × …"""
    return sde.learned.network.noise(numbers, batch.solver_steps(solver.substeps), key=key)


def filter_ends(
    model: BayesianSDE, solver: AbstractSolver, batch: Batch, weights: int, *, key: PRNGKeyArray
) -> Ends:
    """Filter every series to its end under draws of the weights; nothing on the way is kept."""
    weight_key, call_key = jr.split(key)
    keys = jr.split(weight_key, weights)
    numbers = jnp.arange(weights * batch.count, dtype=jnp.uint32).reshape(weights, batch.count)

    def under_one(key: PRNGKeyArray, numbers: Array) -> tuple[GaussianState, Array]:
        sde = model.draw(key=key)
        noise = weight_noise(sde, numbers, batch, solver, call_key)
        axes = (0, jax.tree.map(lambda _: 1, noise))

        def of_series(one: Batch, noise: PyTree) -> tuple[GaussianState, Array]:
            return to_the_end(model, sde, solver, one, noise, first_state(model, sde, one))

        return jax.vmap(of_series, axes)(batch, noise)

    last, log_evidence = jax.vmap(under_one)(keys, numbers)
    return Ends(keys, last, log_evidence)


def drawn_ends(
    model: BayesianSDE,
    solver: AbstractSolver,
    batch: Batch,
    weights: int,
    estimator: AbstractEstimator,
    *,
    key: PRNGKeyArray,
) -> DrawnEnds:
    """The same by any estimator, as draws: particles, where the state is no Gaussian."""
    weight_key, call_key, path_key = jr.split(key, 3)
    keys = jr.split(weight_key, weights)
    numbers = jnp.arange(weights * batch.count, dtype=jnp.uint32).reshape(weights, batch.count)

    def under_one(key: PRNGKeyArray, numbers: Array, keys: Array) -> tuple[Array, Array]:
        sde = model.draw(key=key)
        noise = weight_noise(sde, numbers, batch, solver, call_key)
        axes = (0, jax.tree.map(lambda _: 1, noise), 0)

        def of_series(one: Batch, noise: PyTree, key: PRNGKeyArray) -> tuple[Array, Array]:
            record = Record(model, sde, solver, one, noise)
            found = estimator(record, draws=DRAWN, smooth=False, key=key)
            return found.paths[:, -1], found.log_prob

        return jax.vmap(of_series, axes)(batch, noise, keys)

    path_keys = jr.split(path_key, (weights, batch.count))
    draws, log_evidence = jax.vmap(under_one)(keys, numbers, path_keys)
    return DrawnEnds(keys, DrawnStates(draws), log_evidence)


def usual_sizes(
    model: BayesianSDE, solver: AbstractSolver, past: Batch
) -> Float[Array, "series obs"]:
    """How large innovations are along each series, without its last row; one at least."""
    found = innovations(model, model.typical(), solver, past)
    return _usual(found, _ending(model, solver, past))


def _usual(found: Innovation, ending: Bool[Array, "series step"]) -> Float[Array, "series obs"]:
    size = jnp.where(_plain(found) & ~ending[..., None], _size(found), jnp.nan)
    return jnp.maximum(jnp.nan_to_num(jnp.nanmedian(size, 1) / USUAL, nan=1.0), 1.0)


def _size(found: Innovation) -> Float[Array, "series step obs"]:
    return jnp.abs(found.error) / jnp.sqrt(found.variance)


def _plain(found: Innovation) -> Bool[Array, "series step obs"]:
    """What was measured, and not at a limit."""
    return found.seen if found.side is None else found.seen & (found.side == 0)


def _ending(model: BayesianSDE, solver: AbstractSolver, past: Batch) -> Bool[Array, "series step"]:
    """The steps that reach the last row."""
    rows = jax.vmap(lambda one: one.grid(solver.substeps, model.interpolation).row)(past)
    return rows == (past.recorded.sum(1) - 1)[:, None]


def without_wild_ends(
    model: BayesianSDE,
    solver: AbstractSolver,
    past: Batch,
    first: GaussianState | None = None,
    usual: Float[Array, "series obs"] | None = None,
) -> tuple[Batch, Bool[Array, "series obs"]]:
    """A past without those values of its last row that are beyond belief, and which these are.

    A value whose innovation z is so large may be a spike or a jump of the state, which only the
    row after it can tell: until then it says nothing. It is compared with the `usual` size of
    innovations, by default that along the series: of a model that is often far off nothing is
    beyond belief. For the mean of the weights.
    """
    found = innovations(model, model.typical(), solver, past, first=first)
    ending = _ending(model, solver, past)
    last = jnp.max(jnp.where(_plain(found) & ending[..., None], _size(found), 0.0), 1)
    wild = last > BEYOND_BELIEF * (_usual(found, ending) if usual is None else usual)
    series, end = jnp.arange(past.count), past.recorded.sum(1) - 1
    observed = past.observed.at[series, end].set(past.observed[series, end] & ~wild)
    return replace(past, observed=observed), wild


def filter_on(model: BayesianSDE, solver: AbstractSolver, ends: Ends, batch: Batch) -> Ends:
    """The same after further rows; the first row of `batch` is the last that `ends` know.

    For weights that are held along a path.
    """

    def under_one(key: PRNGKeyArray, last: GaussianState) -> tuple[GaussianState, Array]:
        sde = model.draw(key=key)

        def of_series(one: Batch, last: GaussianState) -> tuple[GaussianState, Array]:
            return to_the_end(model, sde, solver, one, None, last)

        return jax.vmap(of_series)(batch, last)

    last, more = jax.vmap(under_one)(ends.weight_keys, ends.last)
    return Ends(ends.weight_keys, last, ends.log_evidence + more)


def go_on(
    model: BayesianSDE,
    solver: AbstractSolver,
    batch: Batch,
    draws: int,
    *,
    paths_per_weight: int = 1,
    estimator: AbstractEstimator | None = None,
    key: PRNGKeyArray,
) -> tuple[Float[Array, "sample series time state"], Bool[Array, "series obs"]]:
    """Paths of a batch from what its past says of the state: h_0 ~ p(h | past, θ), θ ~ p(θ | past).

    And which last values were set aside; see `without_wild_ends`. The first row of the batch is the
    last of its past. Without an `estimator` the state is a
    Gaussian, by the filter that the model was trained with.
    """
    assert batch.past is not None
    filter_key, path_key = jr.split(key)
    past, wild = without_wild_ends(model, solver, batch.past)
    count = min(draws // paths_per_weight, NETWORKS)
    if estimator is None:
        ends = filter_ends(model, solver, past, count, key=filter_key)
    else:
        ends = drawn_ends(model, solver, past, count, estimator, key=filter_key)
    paths = paths_after(
        model, solver, ends, batch, draws, paths_per_weight=paths_per_weight, key=path_key
    )
    return paths, wild


def paths_after(
    model: BayesianSDE,
    solver: AbstractSolver,
    ends: Ends | DrawnEnds,
    batch: Batch,
    draws: int,
    *,
    paths_per_weight: int = 1,
    key: PRNGKeyArray,
) -> Float[Array, "sample series time state"]:
    """Paths of a batch from the states that `ends` know at its first row."""
    choice_key, start_key, path_key = jr.split(key, 3)
    weights = draws // paths_per_weight
    chosen = chosen_weights(ends.log_evidence, weights, key=choice_key)
    if not model.weights.held:
        chosen = jnp.resize(jnp.arange(len(ends.log_evidence)), chosen.shape[::-1]).T
    normals = jr.normal(start_key, (weights, paths_per_weight, batch.count, model.states))
    numbers = jnp.arange(weights * paths_per_weight * batch.count, dtype=jnp.uint32)
    numbers = numbers.reshape(weights, paths_per_weight, batch.count)

    def one(sde: SDE, series: Batch, h0: Array, number: Array) -> Array:
        noise_key, wiener_key = jr.split(jr.fold_in(path_key, number))
        grid = series.grid(solver.substeps, model.interpolation)
        steps = len(grid.dt)
        dw = jnp.sqrt(grid.dt)[:, None] * jr.normal(wiener_key, (steps, model.states))
        noise = sde.learned.network.noise(number[None], steps, key=noise_key)
        noise = jax.tree.map(lambda leaf: leaf[:, 0], noise)

        def step(h, x):
            grid, dw, noise = x
            h, _ = solver.step(sde, grid.t, h, grid.u, grid.dt, dw, noise)
            h = sde.clip(h)
            return h, h

        _, path = lax.scan(step, h0, (grid, dw, noise))
        return at_rows(jnp.concatenate([h0[None], path]), grid, series.times.shape[0])

    def under_one(
        index: Int[Array, ""], series: Batch, last: GaussianState | DrawnStates, normals, numbers
    ):
        """One series under one draw of the weights."""
        sde = model.draw(key=ends.weight_keys[index])
        starts = jax.vmap(sde.clip)(_starts(last, index, normals))
        return jax.vmap(lambda h0, number: one(sde, series, h0, number))(starts, numbers)

    over_series = jax.vmap(under_one, (0, 0, 1, 1, 1))
    paths = jax.vmap(over_series, (0, None, None, 0, 0))(chosen, batch, ends.last, normals, numbers)
    return jnp.moveaxis(paths, 2, 1).reshape(draws, batch.count, *paths.shape[3:])


def _starts(
    last: GaussianState | DrawnStates, index: Int[Array, ""], normals: Float[Array, "path state"]
) -> Float[Array, "path state"]:
    """Draws of the last state under one draw of the weights, from standard normals."""
    if isinstance(last, DrawnStates):
        chances = jax.scipy.stats.norm.cdf(normals[:, 0])
        count = last.draws.shape[1]
        return last.draws[index, jnp.minimum((chances * count).astype(int), count - 1)]
    root = factor(last.covariance[index])
    return last.mean[index] + normals @ root.T


def states_given(
    model: BayesianSDE,
    solver: AbstractSolver,
    batch: Batch,
    draws: int,
    *,
    smooth: bool,
    estimator: AbstractEstimator,
    paths_per_weight: int = 1,
    key: PRNGKeyArray,
) -> StatesGiven:
    """Draws of every state at every row, given the rows up to it, or given all of them.

    Smoothed draws are whole paths; filtered ones are independent from row to row.
    """
    filter_key, choice_key, path_key = jr.split(key, 3)
    weight_key, call_key = jr.split(filter_key)
    weights = draws // paths_per_weight
    count = min(weights, NETWORKS)
    keys = jr.split(weight_key, count)
    numbers = jnp.arange(count * batch.count, dtype=jnp.uint32).reshape(count, batch.count)
    rows = batch.times.shape[1]
    each = -(-draws // count)

    def one(sde: SDE, series: Batch, noise: PyTree, key: PRNGKeyArray):
        record = Record(model, sde, solver, series, noise)
        found = estimator(record, draws=each, smooth=smooth, key=key)
        grid = series.grid(solver.substeps, model.interpolation)

        def rows_of(leaf: Array) -> Array:
            return at_rows(leaf, grid, rows)

        paths = jax.vmap(rows_of)(found.paths)
        return paths, found.log_prob, rows_of(found.foretold), rows_of(found.covariance)

    def under_one(key: PRNGKeyArray, numbers: Array, keys: Array):
        sde = model.draw(key=key)
        noise = weight_noise(sde, numbers, batch, solver, call_key)
        axes = (0, jax.tree.map(lambda _: 1, noise), 0)
        return jax.vmap(lambda series, noise, key: one(sde, series, noise, key), axes)(
            batch, noise, keys
        )

    path_keys = jr.split(path_key, (count, batch.count))
    paths, log_evidence, means, covariances = jax.vmap(under_one)(keys, numbers, path_keys)
    chosen = chosen_weights(log_evidence, draws, key=choice_key)
    use = jnp.cumsum(jax.nn.one_hot(chosen, count, axis=-1, dtype=jnp.int32), 0)
    nth = jnp.take_along_axis(use, chosen[..., None], -1)[..., 0] - 1

    def of_series(paths: Array, chosen: Array, nth: Array) -> Array:
        return paths[chosen, nth % each]

    states = jax.vmap(of_series, (1, 1, 1), 1)(paths, chosen, nth)
    counted = usable(log_evidence)
    flat = jax.nn.softmax(counted, 0)
    return StatesGiven(
        states,
        jnp.where(jnp.isfinite(log_evidence).any(0), jax.nn.logsumexp(counted, 0), jnp.nan)
        - jnp.log(count),
        1 / jnp.sum(flat**2, 0),
        _innovations(model, batch, means, covariances, flat),
    )


def _innovations(
    model: BayesianSDE, batch: Batch, means: Array, covariances: Array, share: Array
) -> Float[Array, "series time obs"]:
    """Errors of forecasts from row to row in their own spread, weights averaged over."""
    assert isinstance(model.observation, GaussianObservation)
    c = model.observation.matrix.value
    expected = means @ c.T
    variance = jnp.einsum("oi,wstij,oj->wsto", c, covariances, c) + model.observation.sd.value**2
    mean, second = weighed(share, expected), weighed(share, variance + expected**2)
    z = (batch.values - mean) / jnp.sqrt(jnp.maximum(second - mean**2, 1e-30))
    plain = batch.observed
    if model.observation.ends is not None:  # at a limit there is no error to speak of
        plain = plain & (at_limit(batch.values, model.observation.ends) == 0)
    return jnp.where(plain, z, jnp.nan).at[:, 0].set(jnp.nan)


def usable(log_evidence: Float[Array, "sample series"]) -> Float[Array, "sample series"]:
    """With draws left out whose filter has no finite end; all count alike where none has one."""
    finite = jnp.isfinite(log_evidence)
    found = jnp.where(finite, log_evidence, -jnp.inf)
    return jnp.where(finite.any(0), found, 0.0)


def weighed(share: Float[Array, "sample series"], leaf: Array) -> Array:
    """Σ share · leaf over samples; one without a share counts nothing, whatever it is."""
    wide = share.reshape(*share.shape, *(1,) * (leaf.ndim - 2))
    return jnp.sum(jnp.where(wide > 0, wide * leaf, 0.0), 0)


def chosen_weights(
    log_evidence: Float[Array, "sample series"], draws: int, *, key: PRNGKeyArray
) -> Int[Array, "draw series"]:
    """For each series, draws of the weights by how well they explain it: systematic resampling.

    The evidence is raised to the largest power 1, ½, ¼, … that leaves a share of the draws: a
    sample of the weights cannot stand for a posterior that is much narrower than what it was
    drawn from. One under which the filter was lost is not drawn.
    """
    tempers = TEMPERS[:, None, None].astype(log_evidence.dtype)
    tempered = jax.nn.softmax(usable(log_evidence) * tempers, 1)
    left = 1 / jnp.sum(tempered**2, 1)
    enough = left >= LEAST_LEFT * len(log_evidence)
    power = jnp.argmax(enough, 0)
    weights = jnp.take_along_axis(tempered, power[None, None, :], 0)[0]

    def of_series(weights: Float[Array, " sample"], key: PRNGKeyArray) -> Int[Array, " draw"]:
        shift_key, order_key = jr.split(key)
        at = (jnp.arange(draws) + jr.uniform(shift_key)) / draws
        found = jnp.searchsorted(jnp.cumsum(weights), at)
        return jr.permutation(order_key, jnp.minimum(found, len(weights) - 1))

    return jax.vmap(of_series, (1, 0), 1)(weights, jr.split(key, log_evidence.shape[1]))
