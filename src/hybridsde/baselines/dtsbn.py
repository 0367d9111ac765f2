"""Deep temporal sigmoid belief networks with a stochastic middle layer: DTSBN-S (Gan, Li, Henao,
Carlson, Carin 2015).

Binary units z (top) and h (middle), Gaussian observations v (standardised), order one in time:

    p(z_t = 1) = σ(W₁ z_{t−1} + W₃ h_{t−1} + b₁)
    p(h_t = 1) = σ(W₂ z_t + W₄ h_{t−1} + W₆ v_{t−1} + b₂)
    v_t ~ N(W₅ h_t + W₇ v_{t−1} + b₃,  exp 2(W₅′ h_t + W₇′ v_{t−1} + b₃′))

Recognition runs the other way:

    q(h_t = 1) = σ(U₅ v_t + U₄ h_{t−1} + U₆ v_{t−1} + c₂)
    q(z_t = 1) = σ(U₂ h_t + U₁ z_{t−1} + U₃ h_{t−1} + c₁)

Before the first row all of them are zero. The bound Σ_t ℓ_t, ℓ_t = ln p(v_t, h_t, z_t | past) −
ln q(h_t, z_t | past, v_t), is maximised by neural variational inference and learning (Mnih and
Gregor 2014): the recognition network follows

    Σ_t (R_t − C(v_t) − c)/max(1, s) ∇ ln q(h_t, z_t),   R_t = Σ_{u ≥ t} λ^{u−t} ℓ_u,

with C a learned baseline of the input, c and s mean and spread of what is left of R over the batch.
λ = 0 is the signal of the paper, which leaves out what a unit does to later rows; λ = 1 has no such
bias and more variance.
"""

from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jax import lax

from hybridsde._parameters import Fixed, Relative
from hybridsde._types import Array, Float, PRNGKeyArray, Scalar
from hybridsde.baselines.base import (
    AbstractTrained,
    AbstractTrainedBaseline,
    FixedContext,
    direct,
)
from hybridsde.data import Batch
from hybridsde.data.checks import check_whole
from hybridsde.fit import Training
from hybridsde.forecast import Prediction, Requirements, noise_spread
from hybridsde.model import MLP, GaussianObservation
from hybridsde.model.network import Linear
from hybridsde.model.scaling import Standardiser
from hybridsde.objective import Terms

SMALL = 1e-2
"""Standard deviation of starting weights."""
LOWEST, HIGHEST = -5.0, 2.0
"""Bounds on the logarithm of a standard deviation, in spreads of the observation."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DTSBN(FixedContext, AbstractTrainedBaseline):
    """A two-layer temporal sigmoid belief network.

    - `middle`, `top`: how many units h and z.
    - `discount`: λ.
    - `baseline`: width of the network C.
    """

    middle: int = 30
    top: int = 30
    discount: float = 0.0
    baseline: int = 30

    def check_settings(self) -> None:
        """Sizes and discount."""
        for name in ("middle", "top", "baseline"):
            check_whole(getattr(self, name), name)
        if not 0 <= self.discount <= 1:
            raise ValueError(f"`discount` must lie between 0 and 1, but is {self.discount}.")

    @property
    def name(self) -> str:
        """As in its paper."""
        return "DTSBN-S"

    @property
    def training(self) -> Training:
        """Longer and faster than the others: slow ones stay at a linear autoregression."""
        return Training(epochs=600, batch_size=8, learning_rate=2e-2)

    @property
    def requirements(self) -> Requirements:
        """Rows come in equal steps of time, and each is an input of the next."""
        return Requirements(inputs=False, regular=True, complete=True)

    def init(self, batch: Batch, *, key: PRNGKeyArray) -> "BeliefNetwork":
        """Small random weights."""
        keys = iter(jr.split(key, 7))
        v, h, z = len(self.observations), self.middle, self.top
        channels = Standardiser.of(batch.values, batch.observed)
        return BeliefNetwork(
            top=_linear(z + h, z, key=next(keys)),
            middle=_linear(z + h + v, h, key=next(keys)),
            visible=_linear(h + v, v, key=next(keys)),
            log_sd=_linear(h + v, v, key=next(keys)),
            see_middle=_linear(v + h + v, h, key=next(keys)),
            see_top=_linear(h + z + h, z, key=next(keys)),
            baseline=MLP.init((v, self.baseline, 1), jnp.tanh, key=next(keys)),
            channels=Fixed(channels),
            observation=direct(self, channels.sd),
            discount=self.discount,
            context=self.given,
        )


class Units(NamedTuple):
    """Everything at one time."""

    v: Float[Array, " obs"]
    h: Float[Array, " middle"]
    z: Float[Array, " top"]


class BeliefNetwork(AbstractTrained):
    """All weights: the names of the equations are rows of these maps."""

    top: Linear
    """W₁, W₃, b₁."""
    middle: Linear
    """W₂, W₄, W₆, b₂."""
    visible: Linear
    """W₅, W₇, b₃."""
    log_sd: Linear
    """W₅′, W₇′, b₃′."""
    see_middle: Linear
    """U₅, U₄, U₆, c₂."""
    see_top: Linear
    """U₂, U₁, U₃, c₁."""
    baseline: MLP
    """C."""
    channels: Fixed
    observation: GaussianObservation
    discount: float = eqx.field(static=True)
    context: int = eqx.field(static=True)

    def before(self) -> Units:
        """What stands before the first row."""
        sizes = (len(layer.bias) for layer in (self.visible, self.middle, self.top))
        return Units(*(jnp.zeros(size) for size in sizes))

    def density(self, past: Units, now: Units) -> Scalar:
        """Ln p(v_t, h_t, z_t | past)."""
        mean, log_sd = self._visible(past, now.h)
        seen = -0.5 * ((now.v - mean) / jnp.exp(log_sd)) ** 2 - log_sd - 0.5 * jnp.log(2 * jnp.pi)
        return (
            _log_bernoulli(now.z, self.top(_join(past.z, past.h)))
            + _log_bernoulli(now.h, self.middle(_join(now.z, past.h, past.v)))
            + seen.sum()
        )

    def recognise(
        self, past: Units, v: Float[Array, " obs"], *, key: PRNGKeyArray
    ) -> tuple[Units, Scalar]:
        """H_t and z_t ~ q, and ln q of them."""
        middle_key, top_key = jr.split(key)
        for_h = self.see_middle(_join(v, past.h, past.v))
        h = jr.bernoulli(middle_key, jax.nn.sigmoid(for_h)).astype(v.dtype)
        for_z = self.see_top(_join(h, past.z, past.h))
        z = jr.bernoulli(top_key, jax.nn.sigmoid(for_z)).astype(v.dtype)
        return Units(v, h, z), _log_bernoulli(h, for_h) + _log_bernoulli(z, for_z)

    def generate(self, past: Units, *, key: PRNGKeyArray) -> tuple[Units, Units, Array]:
        """The next units, once with the mean of v and once with a draw of it, and its ln s."""
        top_key, middle_key, noise_key = jr.split(key, 3)
        dtype = past.v.dtype
        chance = jax.nn.sigmoid(self.top(_join(past.z, past.h)))
        z = jr.bernoulli(top_key, chance).astype(dtype)
        chance = jax.nn.sigmoid(self.middle(_join(z, past.h, past.v)))
        h = jr.bernoulli(middle_key, chance).astype(dtype)
        mean, log_sd = self._visible(past, h)
        v = mean + jnp.exp(log_sd) * jr.normal(noise_key, mean.shape)
        return Units(mean, h, z), Units(v, h, z), log_sd

    def _visible(self, past: Units, h: Float[Array, " middle"]) -> tuple[Array, Array]:
        given = _join(h, past.v)
        return self.visible(given), jnp.clip(self.log_sd(given), LOWEST, HIGHEST)

    def _standard(self, values: Float[Array, "*batch obs"]) -> Float[Array, "*batch obs"]:
        return self.channels.value(values)

    def signals(
        self, v: Float[Array, "time obs"], *, key: PRNGKeyArray
    ) -> tuple[Float[Array, " time"], Float[Array, " time"]]:
        """ℓ_t and ln q(h_t, z_t) along one series, its units drawn from q."""

        def step(past: Units, given):
            v, key = given
            now, log_q = self.recognise(past, v, key=key)
            now = lax.stop_gradient(now)
            return now, (self.density(past, now) - log_q, log_q)

        _, found = lax.scan(step, self.before(), (v, jr.split(key, len(v))))
        return found

    def loss(self, batch: Batch, total: int, *, key: PRNGKeyArray) -> Terms:
        """Minus the bound; its gradient is the estimate above.

        The baseline learns from its squared error at the same time.
        """
        del total
        v, recorded = self._standard(batch.values), batch.recorded
        keys = jr.split(key, batch.count)
        bound, log_q = jax.vmap(lambda v, key: self.signals(v, key=key))(v, keys)
        bound = jnp.where(recorded, bound, 0.0)
        returns = lax.stop_gradient(self.returns(bound))
        expected = jax.vmap(jax.vmap(lambda v: self.baseline(v)[0]))(v)
        left = returns - lax.stop_gradient(expected)
        centre = jnp.mean(left, where=recorded)
        spread = jnp.maximum(1.0, jnp.std(left, where=recorded))
        # ℓ + ln q is ln p, which moves the generative weights alone.
        ascent = bound + log_q + log_q * (left - centre) / spread
        error = (returns - centre - expected) ** 2
        surrogate = jnp.sum(jnp.where(recorded, error - ascent, 0.0), 1).mean()
        scale = jnp.log(self.channels.value.sd).sum()
        found = lax.stop_gradient(jnp.sum(jnp.where(recorded, bound - scale, 0.0), 1).mean())
        zero = jnp.zeros(())
        loss = surrogate - lax.stop_gradient(surrogate) - found
        return Terms(loss, found, zero, zero, zero)

    def returns(self, bound: Float[Array, "series time"]) -> Float[Array, "series time"]:
        """R_t = Σ_{u ≥ t} λ^{u−t} ℓ_u."""

        def step(later: Float[Array, " series"], now: Float[Array, " series"]):
            found = now + self.discount * later
            return found, found

        _, found = lax.scan(step, jnp.zeros(len(bound)), bound.T, reverse=True)
        return found.T

    def predict(
        self, batch: Batch, draws: int, *, paths_per_weight: int = 1, key: PRNGKeyArray
    ) -> Prediction:
        """Units recognised on the given rows, then generated with all their noise."""
        del paths_per_weight
        channels, rows = self.channels.value, batch.times.shape[1]
        v = self._standard(batch.values[:, : self.context])

        def one(v: Float[Array, "time obs"], key: PRNGKeyArray):
            seen_key, later_key = jr.split(key)

            def recognise(past: Units, given):
                now, _ = self.recognise(past, given[0], key=given[1])
                return now, None

            def generate(past: Units, key: PRNGKeyArray):
                mean, drawn, log_sd = self.generate(past, key=key)
                return drawn, (mean.v, log_sd)

            now, _ = lax.scan(recognise, self.before(), (v, jr.split(seen_key, len(v))))
            _, (means, log_sd) = lax.scan(generate, now, jr.split(later_key, rows - len(v)))
            return jnp.concatenate([v, means]), jnp.concatenate([jnp.zeros_like(v), log_sd])

        keys = jr.split(key, (draws, len(v)))
        means, log_sd = jax.vmap(jax.vmap(one), (None, 0))(v, keys)
        sd = self.observation.sd.value * jnp.exp(log_sd)
        return Prediction.of_observations(channels.inverse(means), sd)

    def spreads(self) -> dict[str, Relative]:
        """The measurement noise."""
        return noise_spread(self.observation)

    def describe(self) -> str:
        """One step from row to row."""
        return "its own steps from row to row"


def _join(*parts: Float[Array, " _"]) -> Float[Array, " _"]:
    return jnp.concatenate(parts)


def _log_bernoulli(x: Float[Array, " n"], logits: Float[Array, " n"]) -> Scalar:
    """Ln Π σ(a)^x (1 − σ(a))^(1−x)."""
    return jnp.sum(x * logits - jax.nn.softplus(logits))


def _linear(inputs: int, outputs: int, *, key: PRNGKeyArray) -> Linear:
    return Linear(SMALL * jr.normal(key, (inputs, outputs)), jnp.zeros(outputs))
