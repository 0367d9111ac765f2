"""Second-order latent ODEs with Bayesian networks: ODE²VAE (Yıldız, Heinonen, Lähdesmäki 2019).

Position s and velocity v follow an unknown acceleration field with weights W ~ q(W),

    ds/dt = v,   dv/dt = f_W(s, v),   y_k ~ N(decoder(s(t_k)), diag σ²).

Position is encoded from the first row, velocity from the first C rows, both with a spread. The
density of z = (s, v) is carried along the flow (their eq. 9),

    d ln q(z(t) | W)/dt = −tr ∂f_W/∂v,

because the divergence of (v, f) with respect to (s, v) has no other part. Training maximises

    E_q[Σ_k ln p(y_k | s_k) + ln p(z_k) − ln q(z_k | W)] − KL(q(W) ‖ p(W)),   p(z) = N(0, I).

The variant ODE²VAE-KL also keeps the flow near what the encoder says at later rows,

    − γ E_q Σ_k [ln q(z_k | W) − ln q_enc(z_k | y_k … y_{k+C−1})].
"""

import math
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr

from hybridsde._parameters import Fixed, Relative
from hybridsde._types import Array, Bool, Float, Numbers, PRNGKeyArray, Scalar
from hybridsde.baselines.base import (
    TRAINING,
    AbstractTrained,
    AbstractTrainedBaseline,
    check_own_noise,
    noise_of,
    seen_through,
)
from hybridsde.baselines.ode import solve
from hybridsde.data import Batch
from hybridsde.data.checks import check_positive, check_whole
from hybridsde.fit import Training
from hybridsde.forecast import Prediction, Requirements, noise_spread
from hybridsde.model import MLP, AbstractObservation, BayesianMLP, Latent
from hybridsde.model.latent import EncodedStart, encoder_and_decoder
from hybridsde.model.scaling import typical_rate
from hybridsde.objective import Terms


@dataclass(frozen=True, kw_only=True, eq=False)
class ODE2VAE(AbstractTrainedBaseline):
    """A second-order latent ODE.

    - `positions`: dimensions of s; as many velocities go with them.
    - `latent`: both encoders and the decoder; its `spread` is that of s and v at first.
    - `hidden`: the acceleration field; `initial_sd`, `prior_sd` of its weights.
    - `penalty`: γ; above 0 for the variant ODE²VAE-KL.
    - `noise`: standard deviation of a measurement; learned by default.
    """

    positions: int = 3
    latent: Latent = field(default_factory=lambda: Latent(spread=0.1))
    hidden: tuple[int, ...] = (30,)
    activation: str = "softplus"
    initial_sd: float = 0.01
    prior_sd: float = 1.0
    penalty: float = 0.0
    samples: int = 1
    tolerance: float | None = None
    noise: Numbers | None = None

    def check_settings(self) -> None:
        """Sizes, noise, and a start with chance."""
        check_own_noise(self.noise, self.observations)
        check_whole(self.positions, "positions")
        check_whole(self.samples, "samples")
        check_positive(self.latent.spread, "latent.spread")
        if self.latent.jitter:
            raise ValueError("ODE²VAE has no use for the `jitter` of `latent`. Leave it at 0.")
        if self.penalty:
            check_positive(self.penalty, "penalty")

    @property
    def name(self) -> str:
        """As in its paper."""
        return "ODE²VAE-KL" if self.penalty else "ODE²VAE"

    @property
    def requirements(self) -> Requirements:
        """No inputs; its solver is that of diffrax."""
        return Requirements(inputs=False, package="diffrax")

    @property
    def training(self) -> Training:
        """As most are."""
        return TRAINING

    @property
    def context(self) -> int:
        """How many first rows the encoder of the velocity sees."""
        return self.latent.context

    def init(self, batch: Batch, *, key: PRNGKeyArray) -> "SecondOrderODE":
        """Random weights, scales of the recordings."""
        position_key, velocity_key, field_key = jr.split(key, 3)
        names, sd = self.observations, noise_of(self.noise, batch)
        position, observation = encoder_and_decoder(
            replace(self.latent, context=1),
            batch,
            self.positions,
            names,
            sd,
            positive=tuple(self.positive),
            key=position_key,
        )
        velocity, _ = encoder_and_decoder(
            self.latent, batch, self.positions, names, sd, key=velocity_key
        )
        network = BayesianMLP.init(
            (2 * self.positions, *self.hidden, self.positions),
            self.activation,
            sd=self.initial_sd,
            prior_sd=self.prior_sd,
            last=1.0,
            key=field_key,
        )
        return SecondOrderODE(
            network=network,
            position=position,
            velocity=velocity,
            observation=observation,
            rate=Fixed(typical_rate(batch)),
            penalty=self.penalty,
            samples=self.samples,
            tolerance=self.tolerance,
            context=self.context,
        )


class Phase(NamedTuple):
    """Position, velocity and the logarithm of their density."""

    s: Float[Array, "*time position"]
    v: Float[Array, "*time position"]
    log_q: Float[Array, "*time"]


class SecondOrderODE(AbstractTrained):
    """Acceleration field, encoders and decoder."""

    network: BayesianMLP
    position: EncodedStart
    velocity: EncodedStart
    observation: AbstractObservation
    rate: Fixed
    """Typical change per unit of time: time is counted in units of its inverse."""
    penalty: float = eqx.field(static=True)
    samples: int = eqx.field(static=True)
    tolerance: float | None = eqx.field(static=True)
    context: int = eqx.field(static=True)

    def encode(
        self, values: Float[Array, "time obs"], observed: Bool[Array, "time obs"]
    ) -> tuple[Float[Array, " phase"], Float[Array, " phase"]]:
        """Mean and spread of z at the first of these rows."""
        s, v = (part.distribution(values, observed) for part in (self.position, self.velocity))
        return jnp.concatenate([s[0], v[0]]), jnp.concatenate([s[1], v[1]])

    def flow(
        self,
        field: MLP,
        z: Float[Array, " phase"],
        log_q: Scalar,
        times: Float[Array, " time"],
    ) -> Phase:
        """The path from z, and how its density changes along it."""
        rate = self.rate.value

        def change(phase: Phase) -> Phase:
            def acceleration(v: Float[Array, " position"]) -> Float[Array, " position"]:
                return field(jnp.concatenate([phase.s, v]))

            found, trace = value_and_trace(acceleration, phase.v)
            return Phase(rate * phase.v, rate * found, -rate * trace)

        s, v = jnp.split(z, 2)
        return solve(change, Phase(s, v, log_q), times, tolerance=self.tolerance)

    def loss(self, batch: Batch, total: int, *, key: PRNGKeyArray) -> Terms:
        """Minus the bound, per series; `total` series share the KL of the weights."""

        def one_sample(key: PRNGKeyArray):
            weight_key, start_key = jr.split(key)
            field = self.network.sample(key=weight_key)
            keys = jr.split(start_key, batch.count)
            return jax.vmap(lambda *args: self._bound(field, *args))(batch, batch.elapsed, keys)

        logs, penalty = jax.vmap(one_sample)(jr.split(key, self.samples))
        kl = self.network.kl_to_prior()
        complexity = penalty.mean() + kl / total
        found = logs.mean()
        return Terms(complexity - found, found, penalty.mean(), kl, complexity)

    def _bound(
        self, field: MLP, series: Batch, times: Float[Array, " time"], key: PRNGKeyArray
    ) -> tuple[Scalar, Scalar]:
        """Log-likelihood of one series, and what its latent path costs."""
        mean, sd = self.encode(series.values, series.observed)
        epsilon = jr.normal(key, mean.shape)
        path = self.flow(field, mean + sd * epsilon, log_normal(epsilon) - jnp.log(sd).sum(), times)
        logs = self.observation.log_prob(series.values, series.observed, path.s)
        z = jnp.concatenate([path.s, path.v], -1)
        penalty = path.log_q - jax.vmap(log_normal)(z)
        if self.penalty:
            penalty += self.penalty * self._encoder_penalty(series, path)
        return logs.sum(), jnp.sum(jnp.where(series.recorded, penalty, 0.0))

    def _encoder_penalty(self, series: Batch, path: Phase) -> Float[Array, " time"]:
        """Ln q(z_k | W) − ln q_enc(z_k | y_k … y_{k+C−1}), zero where rows are lacking."""
        context = self.velocity.context
        z = jnp.concatenate([path.s, path.v], -1)
        last = series.recorded.sum() - context

        def at(k: Array, z: Float[Array, " phase"], log_q: Scalar) -> Scalar:
            rows = k + jnp.arange(context)  # beyond the end the last row is repeated, and not used
            mean, sd = self.encode(series.values[rows], series.observed[rows])
            density = log_normal((z - mean) / sd) - jnp.log(sd).sum()
            return jnp.where(k <= last, log_q - density, 0.0)

        return jax.vmap(at)(jnp.arange(len(z)), z, path.log_q)

    def predict(
        self, batch: Batch, draws: int, *, paths_per_weight: int = 1, key: PRNGKeyArray
    ) -> Prediction:
        """Paths of sampled weights from sampled starts."""
        shape = (paths_per_weight, batch.count)

        def one_network(key: PRNGKeyArray) -> Float[Array, "path series time position"]:
            weight_key, start_key = jr.split(key)
            field = self.network.sample(key=weight_key)

            def one(series: Batch, times: Float[Array, " time"], key: PRNGKeyArray):
                mean, sd = self.encode(series.values, series.observed)
                z = mean + sd * jr.normal(key, mean.shape)
                return self.flow(field, z, jnp.zeros(()), times).s

            keys = jr.split(start_key, math.prod(shape)).reshape(shape)
            over_series = jax.vmap(one)
            return jax.vmap(over_series, (None, None, 0))(batch, batch.elapsed, keys)

        positions = jax.vmap(one_network)(jr.split(key, draws // paths_per_weight))
        return seen_through(self.observation, positions.reshape(draws, *positions.shape[2:]))

    def spreads(self) -> dict[str, Relative]:
        """The measurement noise."""
        return noise_spread(self.observation)

    def describe(self) -> str:
        """By its solver."""
        return "Tsit5"


def log_normal(x: Float[Array, " n"]) -> Scalar:
    """Ln N(x; 0, I)."""
    return -0.5 * jnp.sum(x**2) - 0.5 * len(x) * jnp.log(2 * jnp.pi)


def value_and_trace(function, x: Float[Array, " n"]) -> tuple[Float[Array, " n"], Scalar]:
    """f(x) and tr ∂f/∂x, exactly: one directional derivative for each dimension."""
    value, push = jax.linearize(function, x)
    return value, jnp.trace(jax.vmap(push)(jnp.eye(len(x), dtype=x.dtype)))
