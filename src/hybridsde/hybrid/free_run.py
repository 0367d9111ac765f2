"""Does the fitted model stay where the recordings are when nothing corrects it?

Simulated from the starts of the training recordings over their length, before anybody forecasts.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax import lax

from hybridsde._streams import Stream, stream
from hybridsde._types import Array, Float, PRNGKeyArray
from hybridsde.data import Batch, Grid, Trajectories
from hybridsde.hybrid.failure import too_long_a_step
from hybridsde.hybrid.forecaster import SDEForecaster
from hybridsde.hybrid.spec import HybridSDE
from hybridsde.model import BayesianSDE, GaussianObservation

DRAWS, MOST_SERIES, MOST_ROWS = 64, 8, 300
"""Draws of the weights, and the recordings and rows that are simulated."""
ROOM = 2.0
"""A path has left the recorded range where it is this many times its width beyond an end."""
UNSTABLE = (
    "Forecasts as long as that are not to be believed: give more recordings, declare `bounds`, or "
    "write down what keeps it there."
)
SHARE = 0.03
"""Of the draws: fewer are left to chance."""


@dataclass(frozen=True)
class Left:
    """How many draws of one observation leave the range of its recordings, and when."""

    share: float
    after: float
    """The median time since the start after which they do."""
    why: str = ""

    @classmethod
    def of(cls, kept: Mapping[str, float | str]) -> "Left":
        """As a run folder holds it."""
        return cls(float(kept["share"]), float(kept["after"]), str(kept["why"]))

    def sentence(self, name: str) -> str:
        """What is said of it."""
        return (
            "Left to itself from the training starts, the fitted model leaves the range of the "
            f"recordings: {self.share:.0%} of the draws of {name!r}, half of these "
            f"within {self.after:.3g} of the start. {self.why}"
        )


def leaving(
    spec: HybridSDE, forecaster: SDEForecaster, data: Trajectories, seed: int
) -> Mapping[str, Left]:
    """Observations that free paths carry out of the range of the training recordings.

    None where that cannot be asked cheaply: of latent states, and of weights that are redrawn.
    """
    model = forecaster.model
    if spec.latent is not None or not model.weights.held:
        return {}
    if not isinstance(model.observation, GaussianObservation):
        return {}
    chosen = np.unique(np.linspace(0, len(data) - 1, MOST_SERIES).astype(int))
    some = data.cut([(int(n), 0, min(int(data.lengths[n]), MOST_ROWS)) for n in chosen])
    batch = Batch.of(spec._encode_quietly(some), spec.clock)
    steps = batch.solver_steps(forecaster.solver.substeps)
    rng = np.random.default_rng(seed)
    starts = rng.standard_normal((DRAWS, batch.count, model.start_normals))
    noise = rng.standard_normal((DRAWS, steps, batch.count, model.states))
    normals = (jnp.asarray(starts, float), jnp.asarray(noise, float))
    paths, seen, grid = _free(forecaster, batch, stream(seed, Stream.FREE_RUN), *normals)
    seen = spec.raw_observations(np.asarray(seen))
    recorded = np.where(data.observed, data.values, np.nan)
    low, high = np.nanmin(recorded, (0, 1)), np.nanmax(recorded, (0, 1))
    room = ROOM * np.where(high > low, high - low, np.abs(high))
    outside = ~((seen >= low - room) & (seen <= high + room))
    left, first = outside.any(1), outside.argmax(1)
    ends = np.cumsum(np.asarray(grid.dt), 0)
    elapsed = ends[first, np.arange(batch.count)[:, None]]
    found = {}
    for k, name in enumerate(spec.observations):
        gone = left[..., k]
        if gone.mean() > SHARE:
            draw, series = np.argwhere(gone)[0]
            until = int(first[draw, series, k]) + 1
            along = jax.tree.map(lambda leaf: leaf[:until, series], grid)  # noqa: B023
            slopes = _slopes(model, paths[draw, :until, series], along)
            why = too_long_a_step(spec, forecaster, np.asarray(slopes), np.asarray(along.dt))
            when = float(np.median(elapsed[..., k][gone]))
            found[name] = Left(float(gone.mean()), when, why or UNSTABLE)
    return found


@eqx.filter_jit
def _free(
    forecaster: SDEForecaster,
    batch: Batch,
    key: PRNGKeyArray,
    starts: Float[Array, "draw series normal"],
    noise: Float[Array, "draw step series state"],
) -> tuple[Float[Array, "draw step series state"], Float[Array, "draw step series obs"], Grid]:
    """States after each step of free paths, what would be seen of them, and the steps.

    Normals come from the host: that halves the time of compilation.
    """
    model, solver = forecaster.model, forecaster.solver
    grid = jax.vmap(lambda one: one.grid(solver.substeps, model.interpolation), out_axes=1)(batch)

    def under(key: PRNGKeyArray, starts: Array, noise: Array) -> Array:
        sde = model.draw(key=key)
        h0 = jax.vmap(lambda one, normal: model.initial_state(sde, one, normal))(batch, starts)

        def one_step(h, x, z):
            after, _ = solver.step(sde, x.t, h, x.u, x.dt, jnp.sqrt(x.dt) * z, None)
            return sde.clip(after)

        def advance(h, x):
            after = jax.vmap(one_step)(h, *x)
            return after, after

        return lax.scan(advance, h0, (grid, noise))[1]

    paths = jax.vmap(under)(jr.split(key, len(noise)), starts, noise)
    return paths, model.observation.raw(model.observation.mean(paths)), grid


@eqx.filter_jit
def _slopes(
    model: BayesianSDE, path: Float[Array, "step state"], grid: Grid
) -> Float[Array, "step state state"]:
    """Of the known drift along a path; asked only where something has left."""
    sde = model.typical()

    def slope(h: Array, t: Array, u: Array) -> Array:
        return jax.jacfwd(lambda h: sde.known_part(t, h, u))(h)

    return jax.vmap(slope)(path, grid.t, grid.u)
