"""Ridge regression of principal components on their last rows: what anybody would try first."""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax import lax

from hybridsde._parameters import Fixed, Relative
from hybridsde._types import Array, Float, PRNGKeyArray
from hybridsde.baselines import base
from hybridsde.data import Batch
from hybridsde.data.checks import check_positive, check_whole
from hybridsde.fit import Callback, Fitted
from hybridsde.forecast import AbstractForecaster, Prediction, Requirements, estimated, noise_spread
from hybridsde.model import GaussianObservation

SMALLEST = 0.05
"""σ of a channel that never moves."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RidgeComponents(base.AbstractSimpleBaseline):
    """x_k = c + Σ_i A_i x_{k−i} + ε_k for principal components x, by ridge regression; iterated.

    - `components`: how many are kept.
    - `lags`: rows that are looked back at; no more than are given.
    - `penalty`: on the squares of A, in the units of the data.
    """

    components: int = 12
    lags: int = 30
    penalty: float = 100.0

    @property
    def name(self) -> str:
        """What it is called."""
        return f"ridge, {self.components} components, {self.lags} frames"

    @property
    def requirements(self) -> Requirements:
        """Equal steps, every value, nothing cut."""
        return Requirements(inputs=False, regular=True, complete=True, whole=True)

    def check_settings(self) -> None:
        """Look back at rows that are given."""
        check_whole(self.components, "components")
        check_whole(self.lags, "lags")
        check_positive(self.penalty, "penalty")
        if self.lags > self.given:
            raise ValueError(
                f"`lags` is {self.lags}, but only {self.given} rows are given. Look back at fewer."
            )

    def init(self, batch: Batch, *, key: PRNGKeyArray | None = None) -> "RidgeForecaster":
        """The right shapes, all zero."""
        del key
        size, k = batch.values.shape[-1], self.components
        zero = (np.zeros((size, k)), np.zeros(size), np.zeros((k * self.lags + 1, k)), np.eye(k))
        return self._forecaster(*zero, np.ones(size))

    def estimate(self, batch: Batch, callbacks: tuple[Callback, ...]) -> Fitted[AbstractForecaster]:
        """Components by singular values, A by ridge regression, the noise from what is left."""
        del callbacks
        values = np.asarray(batch.values, float)
        mean = values.mean((0, 1))
        flat = (values - mean).reshape(-1, values.shape[-1])
        axes = np.linalg.svd(flat, full_matrices=False)[2][: self.components].T
        x, y = self._pairs((values - mean) @ axes)
        penalty = self.penalty * np.eye(x.shape[1])
        penalty[-1, -1] = 0.0
        weights = np.linalg.solve(x.T @ x + penalty, x.T @ y)
        left = y - x @ weights
        root = np.linalg.cholesky(left.T @ left / len(left) + 1e-9 * np.eye(self.components))
        beside = (flat - flat @ axes @ axes.T).std(0)
        sd = np.maximum(beside, SMALLEST)
        return estimated(self._forecaster(axes, mean, weights, root, sd))

    def _pairs(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Every row after the first ones beside those before it, the newest first, and a one."""
        rows = x.shape[1]
        past = [x[:, self.lags - 1 - i : rows - 1 - i] for i in range(self.lags)]
        before = np.concatenate([*past, np.ones_like(past[0][..., :1])], -1)
        return before.reshape(-1, before.shape[-1]), x[:, self.lags :].reshape(-1, x.shape[-1])

    def _forecaster(
        self, axes: np.ndarray, mean: np.ndarray, weights: np.ndarray, root: np.ndarray, sd
    ) -> "RidgeForecaster":
        numbers = (Fixed(jnp.asarray(one)) for one in (axes, mean, weights, root))
        return RidgeForecaster(base.direct(self, jnp.asarray(sd)), self.given, *numbers)


class RidgeForecaster(AbstractForecaster):
    """Steps of the components from the last given rows on."""

    observation: GaussianObservation
    context: int = eqx.field(static=True)
    axes: Fixed
    mean: Fixed
    weights: Fixed
    """All matrices under each other, and the constant."""
    root: Fixed
    """L with LLᵀ the covariance of ε."""

    def predict(
        self, batch: Batch, draws: int, *, paths_per_weight: int = 1, key: PRNGKeyArray
    ) -> Prediction:
        """Sampled steps after the given rows."""
        del paths_per_weight
        given = batch.values[:, : self.context]
        if batch.past is not None:
            given = batch.past.last_rows(self.context)[0]
        rows = batch.values.shape[1] - self.context
        components = (given - self.mean.value) @ self.axes.value

        def one(known: Array, key: PRNGKeyArray) -> Float[Array, "time state"]:
            noise = jr.normal(key, (rows, known.shape[-1])) @ self.root.value.T
            return self._continued(known, noise)

        keys = jr.split(key, (draws, batch.count))
        later = jax.vmap(jax.vmap(one), (None, 0))(components, keys)
        later = later @ self.axes.value.T + self.mean.value
        before = jnp.broadcast_to(given, (draws, *given.shape))
        means = jnp.concatenate([before, later], 2)
        return Prediction.of_observations(means, self.observation.sd.value[None, None, None])

    def _continued(
        self, known: Float[Array, "row state"], noise: Float[Array, "time state"]
    ) -> Float[Array, "time state"]:
        """One path of the components."""
        weights = self.weights.value
        lags = (len(weights) - 1) // known.shape[-1]

        def step(past: Array, noise: Array) -> tuple[Array, Array]:
            after = past.reshape(-1) @ weights[:-1] + weights[-1] + noise
            return jnp.concatenate([after[None], past[:-1]]), after

        return lax.scan(step, known[::-1][:lags], noise)[1]

    def spreads(self) -> dict[str, Relative]:
        """What is added beside the components."""
        return noise_spread(self.observation)

    def describe(self) -> str:
        """One step from row to row."""
        return "its own steps from row to row"
