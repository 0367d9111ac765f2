"""Walks forecast by the SDE of `gait_model`: declared, fitted, asked."""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax import lax

from hybridsde._parameters import Relative
from hybridsde._types import Array, Bool, Float, PRNGKeyArray
from hybridsde.baselines import base
from hybridsde.data import Batch
from hybridsde.data.checks import check_positive, check_whole
from hybridsde.estimate.filter import carried, first_state
from hybridsde.estimate.gaussian import GaussianState, update
from hybridsde.estimate.states import factor
from hybridsde.fit import Callback, Fitted
from hybridsde.forecast import AbstractForecaster, Prediction, Requirements, estimated, noise_spread
from hybridsde.model import SDE, AbstractObservation, BayesianSDE, DiagonalDiffusion
from hybridsde.paper.gait_model import Spreads, gait_model, state_names
from hybridsde.paper.gait_shape import Gait, Sizes, estimate
from hybridsde.simulate import EulerMaruyama

LOOKS = 3
"""How often the observation is linearised at a row, each time about what was found before."""


@dataclass(frozen=True, kw_only=True, eq=False)
class GaitSDE(base.AbstractSimpleBaseline):
    """A walk: a known phase that goes round, an own cycle, and learned sways about it.

    - `harmonics`, `shapes`, `sways`, `smooth`: sizes; see `gait_shape.Sizes`.
    - `pace_spreads`: standard deviations of the pace, in those between the training sequences,
      one as likely as the other: a walk like the others, or an unusual one.
    - `phase_noise`, `sway_spread`, `stance_spread`, `noise_spread`, `guesses`: see
      `gait_model.Spreads`.
    """

    harmonics: int = 16
    shapes: int = 8
    sways: int = 12
    smooth: float = 1e-3
    pace_spreads: tuple[float, ...] = (1.0, 4.0)
    phase_noise: float = 0.08
    sway_spread: float = 1.5
    stance_spread: float = 0.0
    noise_spread: float = 3.0
    guesses: int = 32

    @property
    def name(self) -> str:
        """What it is called."""
        return "gait SDE"

    @property
    def requirements(self) -> Requirements:
        """Equal steps, every value, nothing cut."""
        return Requirements(inputs=False, regular=True, complete=True, whole=True)

    @property
    def state_names(self) -> tuple[str, ...]:
        """Phase, pace, shapes, stances, sways."""
        return state_names(self.shapes, self.sways)

    def check_settings(self) -> None:
        """Sizes are whole, spreads positive."""
        for size in ("harmonics", "shapes", "sways", "guesses"):
            check_whole(getattr(self, size), size)
        for spread in ("smooth", "phase_noise", "sway_spread", "noise_spread"):
            check_positive(getattr(self, spread), spread)
        for spread in self.pace_spreads:
            check_positive(spread, "pace_spreads")

    def init(self, batch: Batch, *, key: PRNGKeyArray | None = None) -> "GaitForecaster":
        """The right shapes, and no walk."""
        del key
        size, rows = batch.values.shape[-1], 2 * self.harmonics + 1
        one, many = np.ones(self.sways), np.zeros((self.shapes, rows, size))
        modes = np.zeros((self.sways, size))
        blank = Gait(many[0], many, modes, 1.0, 1.0, one, one / 2, one, np.ones(size))
        return self._forecaster(blank, 1.0)

    def estimate(self, batch: Batch, callbacks: tuple[Callback, ...]) -> Fitted[AbstractForecaster]:
        """Everything in closed form; see `gait_shape`."""
        del callbacks
        sizes = Sizes(self.harmonics, self.shapes, self.sways, self.smooth)
        found = estimate(np.asarray(batch.values, float), sizes)
        return estimated(self._forecaster(found, float(np.median(batch.steps))))

    def _forecaster(self, gait: Gait, step: float) -> "GaitForecaster":
        spreads = Spreads(
            self.phase_noise,
            self.sway_spread,
            self.stance_spread,
            self.noise_spread,
            self.guesses,
        )
        model = gait_model(gait, spreads, step, self.observations, self.given)
        return GaitForecaster(model, self.guesses, tuple(self.pace_spreads))


class GaitForecaster(AbstractForecaster):
    """Paths from what the given rows say of phase, pace, cycle and pose."""

    model: BayesianSDE
    guesses: int = eqx.field(static=True)
    pace_spreads: tuple[float, ...] = eqx.field(static=True)

    def __init__(self, model: BayesianSDE, guesses: int, pace_spreads: tuple[float, ...]):
        self.model, self.guesses, self.pace_spreads = model, guesses, pace_spreads

    @property
    def observation(self) -> AbstractObservation:
        """What is seen of the states."""
        return self.model.observation

    @property
    def context(self) -> int:
        """How many first rows a forecast is given."""
        return self.model.context

    def predict(
        self, batch: Batch, draws: int, *, paths_per_weight: int = 1, key: PRNGKeyArray
    ) -> Prediction:
        """Paths that begin at draws of the state after the last given row."""
        given = batch.past if batch.past is not None else _first_rows(batch, self.context)
        weight_key, *keys = jr.split(key, 4)
        weights = draws // paths_per_weight
        weight_keys = jnp.repeat(jr.split(weight_key, weights), paths_per_weight)
        steps = batch.steps[:, self.context - 1 :]

        def of_series(given: Batch, steps: Array, *keys: PRNGKeyArray) -> Array:
            states, evidence = self._ends(given)
            starts = _drawn(states, evidence, draws, keys[0], keys[1])
            paths = jax.vmap(lambda h, weights, noise: self._path(h, weights, noise, steps))
            return paths(starts, weight_keys, jr.split(keys[2], draws))

        each = (jr.split(one, batch.count) for one in keys)
        later = jax.vmap(of_series, out_axes=1)(given, steps, *each)
        before = jnp.repeat(later[:, :, :1], self.context - 1, 2)
        states = jnp.concatenate([before, later], 2)
        found = Prediction.of_states(self.observation, states)
        rows = batch.values[:, : self.context]
        return eqx.tree_at(lambda p: p.means, found, found.means.at[:, :, : self.context].set(rows))

    def _ends(self, given: Batch) -> tuple[GaussianState, Float[Array, " guess"]]:
        """The state after the given rows under every guess, and the evidence of each guess."""
        sde = self.model.driven_by(self.model.network.mean())
        prior = first_state(self.model, sde, given)
        turns = 2 * np.pi * np.arange(self.guesses) / self.guesses
        each = (np.tile(turns, len(self.pace_spreads)), np.repeat(self.pace_spreads, self.guesses))

        def under(turn: Array, spread: Array) -> tuple[GaussianState, Array]:
            covariance = prior.covariance.at[1, 1].multiply(spread**2)
            first = GaussianState(prior.mean.at[0].add(turn), covariance)
            return _filtered(self.model.observation, sde, given, first)

        return jax.vmap(under)(*(jnp.asarray(one) for one in each))

    def _path(
        self, start: Array, weight_key: PRNGKeyArray, key: PRNGKeyArray, steps: Array
    ) -> Float[Array, "time state"]:
        """One path of Euler–Maruyama, one step from row to row, with its start in front."""
        sde = self.model.draw(key=weight_key)
        dw = jnp.sqrt(steps)[:, None] * jr.normal(key, (len(steps), len(start)))

        def step(h: Array, x: tuple[Array, Array]) -> tuple[Array, Array]:
            dt, dw = x
            h, _ = EulerMaruyama().step(sde, jnp.zeros(()), h, jnp.zeros(0), dt, dw, None)
            return h, h

        return jnp.concatenate([start[None], lax.scan(step, start, (steps, dw))[1]])

    def spreads(self) -> dict[str, Relative]:
        """The diffusion of all states, and the measurement noise."""
        diffusion = self.model.diffusion
        assert isinstance(diffusion, DiagonalDiffusion)
        assert isinstance(diffusion.sd, Relative)
        return {"diffusion": diffusion.sd, **noise_spread(self.observation)}

    def describe(self) -> str:
        """By its scheme."""
        return "EulerMaruyama with 1 step from row to row"


def _first_rows(batch: Batch, rows: int) -> Batch:
    """What is given of every series."""
    return Batch(
        times=batch.times[:, :rows],
        steps=batch.steps[:, : rows - 1],
        values=batch.values[:, :rows],
        observed=batch.observed[:, :rows],
        inputs=batch.inputs[:, :rows],
        recorded=batch.recorded[:, :rows],
    )


def _filtered(
    observation: AbstractObservation, sde: SDE, given: Batch, first: GaussianState
) -> tuple[GaussianState, Float[Array, ""]]:
    """One series to its end by an extended Kalman filter, and ln p of all its rows."""

    def advance(state: GaussianState, x) -> tuple[GaussianState, Array]:
        dt, y, seen = x
        step = EulerMaruyama().transition(sde, jnp.zeros(()), state.mean, jnp.zeros(0), dt, None)
        return _looked(observation, y, seen, carried(step, dt, state))

    steps = jnp.concatenate([jnp.zeros(1), given.steps])
    last, evidence = lax.scan(advance, first, (steps, given.values, given.observed))
    return last, evidence.sum()


def _looked(
    observation: AbstractObservation,
    y: Float[Array, " obs"],
    seen: Bool[Array, " obs"],
    state: GaussianState,
) -> tuple[GaussianState, Float[Array, ""]]:
    """What one row says of the state; linearised again about the answer (iterated filter)."""
    about, told, found = state.mean, state, None
    sd = jnp.broadcast_to(observation.sd.value, y.shape)
    for _ in range(LOOKS):
        matrix = jax.jacfwd(observation.mean)(about)
        target = y - observation.mean(about) + matrix @ about
        told, found = update(state, matrix, sd, target, seen)
        about = told.mean
    assert found is not None
    return told, found.log_prob


def _drawn(
    states: GaussianState,
    evidence: Float[Array, " guess"],
    draws: int,
    choice_key: PRNGKeyArray,
    start_key: PRNGKeyArray,
) -> Float[Array, "draw state"]:
    """Draws of the state: a guess by its evidence, then from its Gaussian."""
    chosen = jr.categorical(choice_key, evidence, shape=(draws,))
    roots = jax.vmap(factor)(states.covariance)
    normals = jr.normal(start_key, (draws, states.mean.shape[-1]))
    return states.mean[chosen] + jnp.einsum("dij,dj->di", roots[chosen], normals)
