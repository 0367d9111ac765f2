"""The linear-Gaussian state-space model, fitted by expectation maximisation (Shumway and Stoffer
1982).

    x_0 ~ N(m_0, P_0),   x_{t+1} ~ N(A x_t + B u_t, Q),   y_t ~ N(d + C x_t, R)

R is diagonal; u are inputs, if there are any, about their mean. Smoothing is that of statsmodels;
series are put one after the other, with A = 0 and Q = P_0 where a new one begins, which is exact.
"""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax import lax

from hybridsde._linear import cholesky
from hybridsde._parameters import Fixed, Relative
from hybridsde._types import Array, Bool, Float, PRNGKeyArray
from hybridsde.baselines.base import (
    AbstractEstimatedBaseline,
    AbstractSameShape,
    FixedContext,
    WithInputs,
    direct,
)
from hybridsde.data import Batch
from hybridsde.data.checks import check_whole
from hybridsde.estimate import GaussianState, update
from hybridsde.fit import Callback, Fitted, Progress
from hybridsde.forecast import AbstractForecaster, Prediction, Requirements, noise_spread
from hybridsde.model import GaussianObservation

SMALLEST = 1e-4
"""Variances stay above this share of the spread that they belong to."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearGaussian(WithInputs, FixedContext, AbstractSameShape, AbstractEstimatedBaseline):
    """A linear-Gaussian state-space model (Kalman).

    - `states`: dimensions of x.
    - `iterations`: of expectation maximisation.
    """

    states: int = 6
    iterations: int = 50

    def check_settings(self) -> None:
        """Sizes."""
        for name in ("states", "iterations"):
            check_whole(getattr(self, name), name)

    @property
    def name(self) -> str:
        """What it is called."""
        return "linear-Gaussian"

    @property
    def requirements(self) -> Requirements:
        """Rows come in equal steps of time; the smoother is that of statsmodels."""
        return Requirements(regular=True, whole=True, package="statsmodels")

    def init(self, batch: Batch, *, key: PRNGKeyArray) -> "StateSpace":
        """States are principal components of the recordings, filled in by column means."""
        del key
        rows = Rows.of(batch)
        return self._model(first_guess(rows, self.states), rows)

    def estimate(self, batch: Batch, callbacks: tuple[Callback, ...]) -> Fitted[AbstractForecaster]:
        """Expectation maximisation; every iteration raises the likelihood of the recordings."""
        rows = Rows.of(batch)
        matrices = first_guess(rows, self.states)
        losses = []
        for iteration in range(self.iterations):
            found = smooth(matrices, rows)
            matrices = improved(found, rows)
            losses.append(-found.log_likelihood / len(rows.y))
            for callback in callbacks:
                callback(Progress(iteration + 1, self.iterations, {"loss": np.array(losses[-1])}))
        history = {"loss": np.array(losses)}
        model = self._model(matrices, rows)
        done = np.array(self.iterations)
        return Fitted(model, history, np.array(False), done, done)

    def _model(self, m: "Matrices", rows: "Rows") -> "StateSpace":
        centre, scale = rows.centre, rows.scale
        sd = jnp.asarray(np.sqrt(m.r) * scale)
        b = m.b / rows.input_scale
        shift = -b @ rows.input_centre
        arrays = (m.a, b, shift, m.q, m.c * scale[:, None], m.d * scale + centre, m.m0, m.p0)
        a, b, shift, q, c, d, m0, p0 = (Fixed(jnp.asarray(one, float)) for one in arrays)
        return StateSpace(
            a=a, b=b, shift=shift, q=q, c=c, d=d, m0=m0, p0=p0,
            observation=direct(self, sd), context=self.given,
        )  # fmt: skip


@dataclass(frozen=True)
class Rows:
    """Recordings with observations and inputs in units of their spread, about their mean."""

    y: np.ndarray
    seen: np.ndarray
    recorded: np.ndarray
    u: np.ndarray
    centre: np.ndarray
    scale: np.ndarray
    input_centre: np.ndarray
    input_scale: np.ndarray

    @classmethod
    def of(cls, batch: Batch) -> "Rows":
        """Standardised over what was recorded."""
        y, seen = np.asarray(batch.values, float), np.asarray(batch.observed)
        u, recorded = np.asarray(batch.inputs, float), np.asarray(batch.recorded)
        there = np.broadcast_to(recorded[..., None], u.shape)
        centre, scale = _standards(y, seen)
        mean, spread = _standards(u, there)
        return cls(
            (y - centre) / scale, seen, recorded, (u - mean) / spread, centre, scale, mean, spread
        )


@dataclass(frozen=True)
class Matrices:
    """The model in standardised observations and inputs; R as its diagonal."""

    a: np.ndarray
    b: np.ndarray
    q: np.ndarray
    c: np.ndarray
    d: np.ndarray
    r: np.ndarray
    m0: np.ndarray
    p0: np.ndarray


@dataclass(frozen=True)
class Smoothed:
    """Moments of the states given all rows of their series; one array for all series."""

    mean: np.ndarray
    cov: np.ndarray
    cross: np.ndarray
    """Cov(x_{t+1}, x_t), for every t that has a successor."""
    first: np.ndarray
    """Which rows begin a series."""
    rows: np.ndarray
    """Which series and time they are."""
    log_likelihood: float


def _standards(y: np.ndarray, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    centre, scale = y.mean((0, 1), where=seen), y.std((0, 1), where=seen)
    return centre, np.where(scale > 0, scale, 1.0)


def first_guess(rows: Rows, states: int) -> Matrices:
    """Principal components, a regression of each row on the one before, and what is left."""
    recorded = rows.recorded
    flat = np.where(rows.seen, rows.y, 0.0)
    whole = flat[recorded]
    _, size, axes = np.linalg.svd(whole, full_matrices=False)
    kept = min(states, len(axes))
    c = np.zeros((flat.shape[-1], states))
    spread = size[:kept] / np.sqrt(len(whole))
    c[:, :kept] = axes[:kept].T * spread
    rng = np.random.default_rng(0)
    c[:, kept:] = 0.01 * rng.normal(size=c[:, kept:].shape)
    x = flat @ np.linalg.pinv(c).T
    before, after = (
        np.concatenate([x, rows.u], -1)[:, :-1][recorded[:, 1:]],
        x[:, 1:][recorded[:, 1:]],
    )
    a, b = np.split(np.linalg.lstsq(before, after, rcond=None)[0].T, [states], 1)
    left = after - before @ np.concatenate([a, b], 1).T
    q = left.T @ left / len(left) + 1e-3 * np.eye(states)
    # A column that seems to have no noise would keep it that way for hundreds of iterations.
    r = np.maximum(((flat - x @ c.T)[recorded] ** 2).mean(0), 0.1)
    return Matrices(a, b, q, c, np.zeros(len(c)), r, x[:, 0].mean(0), np.eye(states))


def smooth(m: Matrices, data: Rows) -> Smoothed:
    """The expectation step: Kalman filter and smoother over all series at once."""
    from statsmodels.tsa.statespace.kalman_smoother import KalmanSmoother  # an extra

    rows = np.argwhere(data.recorded)
    flat, first = data.y[data.recorded], rows[:, 1] == 0
    count, states = len(rows), len(m.a)
    begins = np.append(first[1:], False)
    a, q = (np.repeat(one[..., None], count, -1) for one in (m.a, m.q))
    a[..., begins], q[..., begins] = 0.0, m.p0[..., None]
    shift = np.where(begins, m.m0[:, None], m.b @ data.u[data.recorded].T)
    model = KalmanSmoother(k_endog=flat.shape[-1], k_states=states)
    model.bind(np.where(data.seen[data.recorded], flat - m.d, np.nan))
    model["design"], model["obs_cov"] = m.c, np.diag(m.r)
    model["transition"], model["state_cov"], model["state_intercept"] = a, q, shift
    model["selection"] = np.eye(states)
    model.initialize_known(m.m0, m.p0)
    model.filter_collapsed = states < flat.shape[-1]  # numbers as many as states, not observations
    found: Any = model.smooth()
    return Smoothed(
        found.smoothed_state.T,
        np.moveaxis(found.smoothed_state_cov, -1, 0),
        np.moveaxis(found.smoothed_state_autocov, -1, 0),
        first,
        rows,
        float(found.llf),
    )


def improved(s: Smoothed, data: Rows) -> Matrices:
    """The maximisation step, in closed form: [A B] = E[x′ zᵀ] E[z zᵀ]⁻¹ with z = (x, u)."""
    series, time = s.rows.T
    mean, states = s.mean, s.mean.shape[1]
    square = s.cov + mean[:, :, None] * mean[:, None]
    after = np.flatnonzero(~s.first)
    cross = s.cross[after - 1] + mean[after][:, :, None] * mean[after - 1][:, None]
    s11, u = square[after].sum(0), data.u[series, time][after - 1]
    beside = mean[after - 1].T @ u
    s00 = np.block([[square[after - 1].sum(0), beside], [beside.T, u.T @ u]])
    s00 += SMALLEST * np.diag(np.arange(len(s00)) >= states)  # an input that never moves
    s10 = np.concatenate([cross.sum(0), mean[after].T @ u], 1)
    both = np.linalg.solve(s00.T, s10.T).T
    a, b = np.split(both, [states], 1)
    q = (s11 - both @ s10.T) / len(after)
    starts = mean[s.first]
    m0 = starts.mean(0)
    apart = starts - m0
    p0 = s.cov[s.first].mean(0) + apart.T @ apart / len(starts)
    values, there = data.y[series, time], data.seen[series, time]
    wide = np.concatenate([mean, np.ones((len(mean), 1))], 1)
    outer = np.zeros((len(mean), states + 1, states + 1))
    outer[:, :states, :states] = s.cov
    outer += wide[:, :, None] * wide[:, None]
    c, d, r = [], [], []
    for column in range(values.shape[-1]):
        w = there[:, column]
        gram, seen_y = outer[w].sum(0), values[w, column]
        weights = np.linalg.solve(gram, wide[w].T @ seen_y)
        left = (seen_y**2).sum() - weights @ (wide[w].T @ seen_y)
        c.append(weights[:-1])
        d.append(weights[-1])
        r.append(max(left / w.sum(), SMALLEST))
    small = SMALLEST * np.eye(states)
    return Matrices(
        a, b, _symmetric(q) + small, np.array(c), np.array(d), np.array(r), m0, p0 + small
    )


def _symmetric(matrix: np.ndarray) -> np.ndarray:
    return (matrix + matrix.T) / 2


class StateSpace(AbstractForecaster):
    """All matrices, in the units of the observations."""

    a: Fixed
    b: Fixed
    shift: Fixed
    """Minus B times the mean of the inputs."""
    q: Fixed
    c: Fixed
    d: Fixed
    m0: Fixed
    p0: Fixed
    observation: GaussianObservation
    """Its `sd` is the root of the diagonal of R."""
    context: int = eqx.field(static=True)

    def filtered(
        self,
        values: Float[Array, "time obs"],
        observed: Bool[Array, "time obs"],
        recorded: Bool[Array, " time"],
        inputs: Float[Array, "time input"],
    ) -> GaussianState:
        """What is known of the state after the last of these rows that was recorded."""
        pushed = self._pushed(inputs)
        a, q, c, d = (one.value for one in (self.a, self.q, self.c, self.d))
        sd = self.observation.sd.value

        def step(state: GaussianState, row):
            y, seen, there, push = row
            predicted = GaussianState(a @ state.mean + push, a @ state.covariance @ a.T + q)
            after = update(predicted, c, sd, y - d, seen)[0]
            return jax.tree.map(lambda new, old: jnp.where(there, new, old), after, state), None

        start = GaussianState(self.m0.value, self.p0.value)
        first, _ = update(start, c, sd, values[0] - d, observed[0])
        later = (values[1:], observed[1:], recorded[1:], pushed[:-1])
        found, _ = lax.scan(step, first, later)
        return found

    def _pushed(self, inputs: Float[Array, "*time input"]) -> Float[Array, "*time state"]:
        """B (u − ū): what inputs add in the step to the next row."""
        return inputs @ self.b.value.T + self.shift.value

    def predict(
        self, batch: Batch, draws: int, *, paths_per_weight: int = 1, key: PRNGKeyArray
    ) -> Prediction:
        """States drawn after the given rows, and their noisy futures."""
        del paths_per_weight
        rows = batch.times.shape[1]
        told = batch if batch.past is None else batch.past
        known = (told.values, told.observed, told.recorded, told.inputs)
        if batch.past is None:
            known = tuple(one[:, : self.context] for one in known)
        pushed = self._pushed(batch.inputs[:, self.context - 1 : -1])
        a, size = self.a.value, len(self.a.value)
        root = cholesky(self.q.value)

        def one(
            state: GaussianState, pushed: Float[Array, "later state"], key: PRNGKeyArray
        ) -> Float[Array, "time obs"]:
            normals = jr.normal(key, (rows - self.context + 1, size))
            x = state.mean + cholesky(state.covariance) @ normals[0]

            def step(x: Array, given: tuple[Array, Array]):
                normal, push = given
                x = a @ x + push + root @ normal
                return x, x

            _, later = lax.scan(step, x, (normals[1:], pushed))
            before = jnp.broadcast_to(x, (self.context, size))
            return jnp.concatenate([before, later]) @ self.c.value.T + self.d.value

        keys = jr.split(key, (draws, batch.count))
        states = jax.vmap(self.filtered)(*known)
        means = jax.vmap(jax.vmap(one), (None, None, 0))(states, pushed, keys)
        return Prediction.of_observations(means, self.observation.sd.value[None, None, None])

    def spreads(self) -> dict[str, Relative]:
        """The measurement noise."""
        return noise_spread(self.observation)

    def describe(self) -> str:
        """One step from row to row."""
        return "its own steps from row to row"
