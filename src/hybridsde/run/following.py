"""A run that follows records as they grow: the state after every new row, in milliseconds."""

from dataclasses import dataclass, replace

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from hybridsde._errors import InputError
from hybridsde._streams import Beside, beside
from hybridsde._types import Array, Bool, Float, Numbers, PRNGKeyArray
from hybridsde.data import Batch, Grid, Trajectories
from hybridsde.forecast import Forecast, ModelSpec, Prediction
from hybridsde.forecast.future import clock_of, future, labelled, shared_weights
from hybridsde.forecast.inputs import FutureInputs, driven
from hybridsde.hybrid import HybridSDE, SDEForecaster
from hybridsde.hybrid.history import (
    NETWORKS,
    Ends,
    filter_ends,
    filter_on,
    paths_after,
    usable,
    usual_sizes,
    weighed,
    without_wild_ends,
)


@dataclass(frozen=True, eq=False)
class Follower:
    """Records up to now, as a filter remembers them; `update` takes in what comes next.

    Updating row by row equals filtering at once. Draws of the weights stay the same and count by
    how well they have explained everything so far.
    """

    spec: ModelSpec
    forecaster: SDEForecaster
    before: Trajectories
    """The row before the last of every record, as the model sees it."""
    last: Trajectories
    """The last row. Whether it can be believed is asked again when the next one comes."""
    interval: float | None
    """The usual time between rows."""
    ends: Ends
    """At the row before the last."""
    now: Ends
    """At the last row, without what is beyond belief in it."""
    set_aside: Bool[np.ndarray, "series obs"]
    """What that is."""
    usual: Float[np.ndarray, "series obs"]
    """How large innovations were along the records that following began with."""
    plausible: tuple[tuple[float, float], ...] | None
    key: PRNGKeyArray

    def update(self, rows: Trajectories) -> "Follower":
        """With further rows of the same records, in the same order; compiled for powers of two."""
        if rows.ids != self.last.ids:
            raise InputError(
                "New rows must be of the same records in the same order, "
                f"{', '.join(self.last.ids)}, but are of {', '.join(rows.ids)}."
            )
        self.spec.check(rows)
        late = np.flatnonzero(rows.times[:, 0] <= self.last.times[:, 0])
        if late.size:
            raise InputError(
                f"New rows of {rows.ids[late[0]]!r} begin at {rows.times[late[0], 0]:g}, but "
                f"{self.last.times[late[0], 0]:g} is known already."
            )
        encoded = after(self.last, self.spec.encode(rows))
        ends = self._on(self.ends, after(self.before, without_last(encoded)))
        before, last = last_rows(without_last(encoded)), last_rows(encoded)
        return replace(self, before=before, last=last, ends=ends).at_the_end()

    def at_the_end(self) -> "Follower":
        """With the last row taken in, as far as it can be believed."""
        batch = self._batch(after(self.before, self.last))
        now, wild = _filter_last(self.forecaster, self.ends, batch, jnp.asarray(self.usual))
        return replace(self, now=now, set_aside=np.asarray(wild))

    def _on(self, ends: Ends, rows: Trajectories) -> Ends:
        return _filter_on(self.forecaster, ends, self._batch(rows))

    def _batch(self, rows: Trajectories) -> Batch:
        return filled(Batch.of(padded(rows), self.spec.clock))

    def forecast(
        self,
        times: Numbers | None = None,
        *,
        steps: int | None = None,
        elapsed: Numbers | None = None,
        inputs: FutureInputs | None = None,
        draws: int = 200,
    ) -> Forecast:
        """Sampled futures after the last row; see `Run.forecast`."""
        clock = clock_of(self.last, times, elapsed, steps, self.interval)
        moving = driven(self.spec, self.last, clock, inputs)
        batch = future(self.last, moving, 1, self.spec.clock)
        shared = shared_weights(draws, None)
        path_key, noise_key = jr.split(beside(self.key, Beside.FOLLOWED))
        found = _paths(self.forecaster, self.now, batch, draws, shared, path_key)
        found = replace(found, set_aside=jnp.asarray(self.set_aside)[None])
        found = found.at(moving.asked)
        return labelled(
            self.spec, self.forecaster, found, self.last, clock, shared, self.plausible, noise_key
        )

    def mean(self) -> np.ndarray:
        """The mean of every state of every record now, trajectory × state, in the data's units."""
        share = jax.nn.softmax(usable(self.now.log_evidence), 0)
        mean = weighed(share, self.now.last.mean)
        return self.spec.raw_states(np.asarray(mean))


def follow(
    spec: ModelSpec,
    forecaster: object,
    history: Trajectories,
    plausible: tuple[tuple[float, float], ...] | None,
    usual_step: float | None = None,
    *,
    key: PRNGKeyArray,
) -> Follower:
    """Filter records up to now, to go on from there."""
    held = isinstance(forecaster, SDEForecaster) and forecaster.held
    if not (held and isinstance(spec, HybridSDE) and spec.latent is None):
        raise InputError(
            f"{spec.name} cannot be updated row by row: it has no states that are filtered under "
            "held weights."
        )
    assert isinstance(forecaster, SDEForecaster)
    spec.check(history)
    encoded = spec.encode(history)
    last, earlier = last_rows(encoded), encoded
    if (encoded.lengths > 1).all():
        earlier = without_last(encoded)
    ends = _filter_ends(forecaster, Batch.of(earlier, spec.clock), key)
    nothing = np.zeros((len(history), len(history.states)), bool)
    step = history.interval or usual_step
    usual = np.asarray(_usual_sizes(forecaster, Batch.of(encoded, spec.clock)))
    found = Follower(
        spec, forecaster, last_rows(earlier), last, step, ends, ends, nothing, usual,
        plausible, key,
    )  # fmt: skip
    return found if earlier is encoded else found.at_the_end()


def without_last(data: Trajectories) -> Trajectories:
    """Every series without its last row."""
    cuts = [(n, 0, rows - 1) for n, rows in enumerate(map(int, data.lengths))]
    return data.cut(cuts).named(data.ids)


def last_rows(data: Trajectories) -> Trajectories:
    """The last row of every series."""
    cuts = [(n, rows - 1, rows) for n, rows in enumerate(map(int, data.lengths))]
    return data.cut(cuts).named(data.ids)


def after(last: Trajectories, rows: Trajectories) -> Trajectories:
    """Rows with the one before them in front."""

    def joined(name: str) -> np.ndarray:
        return np.concatenate([getattr(last, name)[:, :1], getattr(rows, name)], 1)

    return replace(
        rows,
        times=joined("times"),
        values=joined("values"),
        observed=joined("observed"),
        inputs=joined("inputs"),
        lengths=rows.lengths + 1,
    )


def padded(data: Trajectories) -> Trajectories:
    """With so many rows that repeat the last, unobserved, that their number is a power of two."""
    rows = data.times.shape[1]
    spare = power_of_two(rows) - rows
    wide = dict.fromkeys(("values", "observed", "inputs"), ((0, 0), (0, spare), (0, 0)))
    return replace(
        data,
        times=np.pad(data.times, ((0, 0), (0, spare)), mode="edge"),
        inputs=np.pad(data.inputs, wide["inputs"], mode="edge"),
        values=np.pad(data.values, wide["values"]),
        observed=np.pad(data.observed, wide["observed"]),
    )


def filled(batch: Batch) -> Batch:
    """With steps of length zero at the end, so that their number is a power of two."""
    if batch.fine is None:
        return batch
    steps = batch.fine.dt.shape[1]
    spare = power_of_two(steps) - steps

    def wider(leaf: jax.Array, mode: str) -> jax.Array:
        room = [(0, 0), (0, spare)] + [(0, 0)] * (leaf.ndim - 2)
        return jnp.pad(leaf, room, mode=mode)

    fine = batch.fine
    grid = Grid(
        wider(fine.t, "edge"),
        wider(fine.dt, "constant"),
        wider(fine.u, "edge"),
        wider(fine.row, "constant"),
    )
    return replace(batch, fine=grid)


def power_of_two(count: int) -> int:
    """The smallest that is not less."""
    return 1 << max(0, count - 1).bit_length()


@eqx.filter_jit
def _usual_sizes(forecaster: SDEForecaster, batch: Batch) -> Array:
    return usual_sizes(forecaster.model, forecaster.solver, batch)


@eqx.filter_jit
def _filter_ends(forecaster: SDEForecaster, batch: Batch, key: PRNGKeyArray) -> Ends:
    return filter_ends(forecaster.model, forecaster.solver, batch, NETWORKS, key=key)


@eqx.filter_jit
def _filter_on(forecaster: SDEForecaster, ends: Ends, batch: Batch) -> Ends:
    return filter_on(forecaster.model, forecaster.solver, ends, batch)


@eqx.filter_jit
def _filter_last(
    forecaster: SDEForecaster, ends: Ends, batch: Batch, usual: Array
) -> tuple[Ends, Array]:
    share = jax.nn.softmax(usable(ends.log_evidence), 0)
    first = jax.tree.map(lambda leaf: weighed(share, leaf), ends.last)
    model, solver = forecaster.model, forecaster.solver
    believed, wild = without_wild_ends(model, solver, batch, first, usual)
    return filter_on(model, solver, ends, believed), wild


@eqx.filter_jit
def _paths(
    forecaster: SDEForecaster,
    ends: Ends,
    batch: Batch,
    draws: int,
    shared: int,
    key: PRNGKeyArray,
) -> Prediction:
    states = paths_after(
        forecaster.model, forecaster.solver, ends, batch, draws, paths_per_weight=shared, key=key
    )
    return Prediction.of_states(forecaster.observation, states).after(1)
