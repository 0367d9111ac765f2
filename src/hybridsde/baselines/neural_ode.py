"""Neural ordinary differential equations (Chen, Rubanova, Bettencourt, Duvenaud 2018).

    h(0) = encoder(y_0 … y_{C−1}),   dh/dt = f_θ(h),   y_k ~ N(decoder(h(t_k)), diag σ²)

Plain weights, found by maximum likelihood; a forecast has measurement noise and no other doubt.
"""

from dataclasses import dataclass, field

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr

from hybridsde._parameters import Fixed, Relative
from hybridsde._types import Array, Float, Numbers, PRNGKeyArray
from hybridsde.baselines.base import (
    TRAINING,
    AbstractTrained,
    AbstractTrainedBaseline,
    check_own_noise,
    likelihood_terms,
    noise_of,
    seen_through,
)
from hybridsde.baselines.ode import solve
from hybridsde.data import Batch
from hybridsde.data.checks import check_whole
from hybridsde.fit import Training
from hybridsde.forecast import Prediction, Requirements, noise_spread
from hybridsde.model import AbstractObservation, Latent
from hybridsde.model.latent import EncodedStart, encoder_and_decoder
from hybridsde.model.network import ACTIVATIONS, MLP
from hybridsde.model.scaling import typical_rate
from hybridsde.objective import Terms


@dataclass(frozen=True, kw_only=True, eq=False)
class NeuralODE(AbstractTrainedBaseline):
    """A latent neural ODE.

    - `states`: latent dimensions. `latent`: encoder and decoder. `hidden`: the vector field.
    - `tolerance`: of adaptive steps; None takes one step of Tsit5 between two observations.
    - `noise`: standard deviation of a measurement; learned by default.
    """

    states: int = 6
    latent: Latent = field(default_factory=Latent)
    hidden: tuple[int, ...] = (30,)
    activation: str = "softplus"
    tolerance: float | None = None
    noise: Numbers | None = None

    def check_settings(self) -> None:
        """Sizes, noise, and a start without chance."""
        check_own_noise(self.noise, self.observations)
        check_whole(self.states, "states")
        if self.latent.spread or self.latent.jitter:
            raise ValueError(
                "A Neural ODE starts where its encoder says. Leave `latent.spread` and "
                "`latent.jitter` at 0."
            )

    @property
    def name(self) -> str:
        """As in its paper."""
        return "Neural ODE"

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
        """How many first rows the encoder sees."""
        return self.latent.context

    def init(self, batch: Batch, *, key: PRNGKeyArray) -> "LatentODE":
        """Random weights, scales of the recordings."""
        maps_key, field_key = jr.split(key)
        start, observation = encoder_and_decoder(
            self.latent,
            batch,
            self.states,
            self.observations,
            noise_of(self.noise, batch),
            positive=tuple(self.positive),
            key=maps_key,
        )
        widths = (self.states, *self.hidden, self.states)
        network = MLP.init(widths, ACTIVATIONS[self.activation], key=field_key)
        rate = Fixed(typical_rate(batch))
        return LatentODE(
            network=network,
            start=start,
            observation=observation,
            rate=rate,
            tolerance=self.tolerance,
            context=self.context,
        )


class LatentODE(AbstractTrained):
    """Vector field, encoder and decoder."""

    network: MLP
    start: EncodedStart
    observation: AbstractObservation
    rate: Fixed
    """Typical change per unit of time, so that the network works with numbers of order one."""
    tolerance: float | None = eqx.field(static=True)
    context: int = eqx.field(static=True)

    def paths(self, batch: Batch) -> Float[Array, "series time state"]:
        """h(t) at every time of every series."""
        rate = self.rate.value

        def one(series: Batch, times: Float[Array, " time"]) -> Float[Array, "time state"]:
            first = self.start.distribution(series.values, series.observed)[0]
            return solve(lambda h: rate * self.network(h), first, times, tolerance=self.tolerance)

        return jax.vmap(one)(batch, batch.elapsed)

    def loss(self, batch: Batch, total: int, *, key: PRNGKeyArray) -> Terms:
        """−(1/N) Σ_n Σ_k ln p(y_k | h(t_k))."""
        del total, key
        logs = self.observation.log_prob(batch.values, batch.observed, self.paths(batch))
        return likelihood_terms(logs.sum(-1), jnp.zeros(()))

    def predict(
        self, batch: Batch, draws: int, *, paths_per_weight: int = 1, key: PRNGKeyArray
    ) -> Prediction:
        """One path, as often as asked."""
        del paths_per_weight, key
        one = seen_through(self.observation, self.paths(batch)[None])
        means = jnp.broadcast_to(one.means, (draws, *one.means.shape[1:]))
        return Prediction.of_observations(means, one.sd)

    def spreads(self) -> dict[str, Relative]:
        """The measurement noise."""
        return noise_spread(self.observation)

    def describe(self) -> str:
        """By its solver."""
        return "Tsit5"
