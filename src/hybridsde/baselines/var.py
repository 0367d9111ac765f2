"""Vector autoregression with inputs (ARX): each row from the rows before it, by least squares."""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax import lax

from hybridsde._parameters import Fixed, Relative
from hybridsde._types import Array, Float, PRNGKeyArray
from hybridsde.baselines.base import (
    AbstractEstimatedBaseline,
    AbstractSameShape,
    FixedContext,
    WithInputs,
    direct,
)
from hybridsde.data import Batch
from hybridsde.fit import Callback, Fitted
from hybridsde.forecast import AbstractForecaster, Prediction, Requirements, estimated, noise_spread
from hybridsde.model import GaussianObservation

ORDERS = (1, 2, 3, 5, 8)
HELD_OUT = 0.3
"""Share of the rows at the ends of the recordings that chooses the order."""
RIDGE = 1e-4
SMALLEST = 1e-3
"""Measurement noise in a forecast, as a share of the spread: the rest is in the steps."""


@dataclass(frozen=True, kw_only=True, eq=False)
class VectorAutoregression(WithInputs, FixedContext, AbstractSameShape, AbstractEstimatedBaseline):
    """y_k = c + Σ_i A_i y_{k−i} + B u_{k−1} + ε_k, ε ~ N(0, Q); on logarithms where `positive`.

    - `inputs`: exogenous inputs.
    - `order`: rows that are looked back at. By default that of 1, 2, 3, 5 and 8 which forecasts the
      last third of the training recordings best, to their ends.

    Missing values are bridged by straight lines. Rows before the given ones are taken to be equal
    to the first of them.
    """

    order: int | None = None

    @property
    def name(self) -> str:
        """What it is called."""
        return "log-VAR" if self.positive else "VAR"

    @property
    def requirements(self) -> Requirements:
        """Equal steps; recordings whole."""
        return Requirements(regular=True, whole=True)

    def check_settings(self) -> None:
        """Look back at one row at least."""
        if self.order is not None and self.order < 1:
            raise ValueError(f"`order` must be positive, but is {self.order}.")

    def init(self, batch: Batch, *, key: PRNGKeyArray | None = None) -> "Autoregression":
        """Matrices of the right shape, all zero."""
        del key
        n, m = batch.values.shape[-1], len(self.inputs)
        lags = self.order or max(ORDERS)
        zero = jnp.zeros((n * lags + m + 1, n))
        return Autoregression(
            observation=direct(self, jnp.ones(n)),
            weights=Fixed(zero),
            root=Fixed(jnp.eye(n)),
            mean=Fixed(jnp.zeros(n)),
            lags=lags,
            context=self.given,
        )

    def estimate(self, batch: Batch, callbacks: tuple[Callback, ...]) -> Fitted[AbstractForecaster]:
        """The order by forecasts of the ends of the recordings, then all matrices from all rows."""
        del callbacks
        y, u = batch.bridged(), np.asarray(batch.inputs, float)
        rows = np.asarray(batch.recorded).sum(1)
        scale = np.concatenate([one[:n] for one, n in zip(y, rows, strict=True)]).std(0)
        scale = np.where(scale > 0, scale, 1.0)
        order = self.order or _best_order(y, u, rows, scale)
        weights, noise = _regress(y, u, rows, order, scale)
        blank = self.init(batch)
        n, m = y.shape[-1], u.shape[-1]
        whole = np.zeros(blank.weights.value.shape)
        whole[: n * order] = weights[: n * order]
        whole[n * blank.lags :] = weights[n * order :]
        assert whole.shape[0] == n * blank.lags + m + 1
        root = np.linalg.cholesky(noise + np.diag((SMALLEST * scale) ** 2))
        found = eqx.tree_at(
            lambda f: (f.weights.frozen, f.root.frozen, f.mean.frozen),
            blank,
            (jnp.asarray(whole), jnp.asarray(root), jnp.asarray(y[:, 0].mean(0))),
        )
        observation = direct(self, jnp.asarray(SMALLEST * scale))
        return estimated(eqx.tree_at(lambda f: f.observation, found, observation))


def _features(y: np.ndarray, u: np.ndarray, order: int) -> np.ndarray:
    """For every row after the first: the rows before it, the newest first, inputs and a one."""
    back = [np.concatenate([y[:1].repeat(i, 0), y[: len(y) - 1 - i]]) for i in range(order)]
    back = [one[: len(y) - 1] for one in back]
    return np.concatenate([*back, u[:-1], np.ones((len(y) - 1, 1))], 1)


def _regress(
    y: np.ndarray, u: np.ndarray, rows: np.ndarray, order: int, scale: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Ridge regression of each row on what came before; the covariance of what is left."""
    pairs = [(_features(a[:n], b[:n], order), a[1:n]) for a, b, n in zip(y, u, rows, strict=True)]
    x, target = (np.concatenate([pair[k] for pair in pairs]) for k in (0, 1))
    size = x.std(0)
    size[-1] = 1.0
    size = np.where(size > 0, size, 1.0)
    z = x / size
    gram = z.T @ z + RIDGE * len(z) * np.diag([*np.ones(z.shape[1] - 1), 0.0])
    weights = np.linalg.lstsq(gram, z.T @ target, rcond=None)[0] / size[:, None]
    left = target - x @ weights
    freedom = max(len(x) - x.shape[1], 1)
    return weights, left.T @ left / freedom + np.diag((1e-6 * scale) ** 2)


def _best_order(y: np.ndarray, u: np.ndarray, rows: np.ndarray, scale: np.ndarray) -> int:
    """The order whose forecasts of the last rows, from the first part alone, are nearest."""
    first = np.maximum((rows * (1 - HELD_OUT)).astype(int), 2)
    errors = {}
    for order in ORDERS:
        if first.sum() < 4 * (order * y.shape[-1] + u.shape[-1] + 1):
            continue
        weights, _ = _regress(y, u, first, order, scale)
        total, count = 0.0, 0
        for series, (begin, end) in enumerate(zip(first, rows, strict=True)):
            past = [y[series, max(begin - 1 - i, 0)] for i in range(order)]
            for row in range(begin, end):
                x = np.concatenate([*past, u[series, row - 1], [1.0]])
                after = np.clip(x @ weights, -1e6, 1e6)
                past = [after, *past[:-1]]
                total += float((((after - y[series, row]) / scale) ** 2).clip(0, 100).sum())
                count += 1
        errors[order] = total / max(count, 1)
    return min(errors, key=lambda order: errors[order]) if errors else 1


class Autoregression(AbstractForecaster):
    """Steps of y_k = c + Σ_i A_i y_{k−i} + B u_{k−1} + L ξ_k from the given rows on."""

    observation: GaussianObservation
    weights: Fixed
    """All matrices under each other: lags, inputs, constant."""
    root: Fixed
    """L with LLᵀ = Q."""
    mean: Fixed
    """What stands in for a value that no given row holds."""
    lags: int = eqx.field(static=True)
    context: int = eqx.field(static=True)

    def predict(
        self, batch: Batch, draws: int, *, paths_per_weight: int = 1, key: PRNGKeyArray
    ) -> Prediction:
        """Sampled steps after the given rows."""
        del paths_per_weight
        rows, n = batch.times.shape[1], batch.values.shape[-1]
        weights, root = self.weights.value, self.root.value
        given = (batch.values[:, : self.context], batch.observed[:, : self.context])
        if batch.past is not None:
            given = batch.past.last_rows(max(self.lags, self.context))

        def one(y, seen, u, key) -> Float[Array, "time obs"]:
            def fill(before, x):
                now = jnp.where(x[1], x[0], before)
                return now, now

            _, known = lax.scan(fill, self.mean.value, (y, seen))
            back = jnp.maximum(len(known) - 1 - jnp.arange(self.lags), 0)
            noise = jr.normal(key, (rows - self.context, n)) @ root.T

            def step(past: Array, x):
                inputs, noise = x
                feature = jnp.concatenate([past.reshape(-1), inputs, jnp.ones(1)])
                after = feature @ weights + noise
                return jnp.concatenate([after[None], past[:-1]]), after

            _, later = lax.scan(step, known[back], (u[self.context - 1 : -1], noise))
            return jnp.concatenate([known[len(known) - self.context :], later])

        keys = jr.split(key, (draws, batch.count))
        means = jax.vmap(jax.vmap(one), (None, None, None, 0))(*given, batch.inputs, keys)
        return Prediction.of_observations(means, self.observation.sd.value[None, None, None])

    def spreads(self) -> dict[str, Relative]:
        """What is added to a step that was drawn."""
        return noise_spread(self.observation)

    def describe(self) -> str:
        """One step from row to row."""
        return "its own steps from row to row"
