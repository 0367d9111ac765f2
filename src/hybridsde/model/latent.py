"""States that nobody measured: encoded from the first observations, decoded into the others."""

from collections.abc import Sequence
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr

from hybridsde._parameters import AbstractParameter, Fixed
from hybridsde._types import Array, Bool, Float, PRNGKeyArray
from hybridsde.data import Batch
from hybridsde.data.checks import check_positive, check_whole
from hybridsde.model.network import ACTIVATIONS, MLP
from hybridsde.model.observation import AbstractObservation
from hybridsde.model.scaling import Scale, Standardiser
from hybridsde.model.start import AbstractStart

SMALL = 0.1
"""Factor on the starting weights of the layer that gives the spread of h₀."""


@dataclass(frozen=True)
class Latent:
    """How observations and latent states are tied together.

    - `context`: how many first rows the encoder sees; forecasts begin after them.
    - `encoder`, `decoder`: widths of the hidden layers.
    - `spread`: the starting standard deviation of h₀, which is then learned as a function of the
      first rows; 0 for a start without spread.
    - `jitter`: noise on the first rows before they are encoded, as a share of each observation's
      spread. The encoder learns not to rely on small differences, and doubt about the first rows
      becomes doubt about h₀.
    """

    context: int = 3
    encoder: Sequence[int] = (30, 30)
    decoder: Sequence[int] = (30, 30)
    activation: str = "softplus"
    spread: float = 0.0
    jitter: float = 0.0

    def __post_init__(self):
        check_whole(self.context, "context")
        for name in ("encoder", "decoder"):
            for width in getattr(self, name):
                check_whole(width, name)
        if self.activation not in ACTIVATIONS:
            raise ValueError(
                f"`activation` must be one of {', '.join(ACTIVATIONS)}, but is {self.activation!r}."
            )
        for name in ("spread", "jitter"):
            if getattr(self, name):
                check_positive(getattr(self, name), name)


class DecodedObservation(AbstractObservation):
    """y = m + s ∘ decoder(h) + ε, ε ~ N(0, diag σ²); m and s standardise the observations."""

    decoder: MLP
    channels: Fixed
    sd: AbstractParameter
    names: tuple[str, ...] = eqx.field(static=True)
    positive: tuple[str, ...] = eqx.field(static=True, default=())
    limits: tuple[tuple[float, float], ...] | None = eqx.field(static=True, default=None)

    def mean(self, h: Float[Array, "*batch state"]) -> Float[Array, "*batch obs"]:
        """The decoder, in the units of the observations."""
        flat = h.reshape(-1, h.shape[-1])
        out = jax.vmap(self.decoder)(flat).reshape(*h.shape[:-1], -1)
        return self.channels.value.inverse(out)


class EncodedStart(AbstractStart):
    """h₀ ~ N(μ, s²) with (μ, ln s) = encoder(y_0 … y_C−1), the amortised start of a latent path.

    Missing values enter as the mean of their channel, the others with jitter. Without spread
    h₀ = μ.
    """

    encoder: MLP
    channels: Fixed
    context: int = eqx.field(static=True)
    spread: float = eqx.field(static=True)
    jitter: float = eqx.field(static=True, default=0.0)

    def normals(self, states: int) -> int:
        """One for every state, and one for every value that is seen with jitter."""
        seen = self.context * len(self.channels.value.mean)
        return states + (seen if self.jitter else 0)

    def __call__(
        self,
        series: Batch,
        observation: AbstractObservation,
        scale: Scale,
        epsilon: Float[Array, " normal"],
    ) -> Float[Array, " state"]:
        """One draw of h₀, from standard normals."""
        del observation, scale
        values, observed = series.values, series.observed
        blur = jnp.zeros(())
        if self.jitter:
            own = len(epsilon) - self.context * values.shape[-1]
            blur, epsilon = self.jitter * epsilon[own:], epsilon[:own]
        mean, sd = self.distribution(values, observed, blur)
        return mean + sd * epsilon

    def distribution(
        self,
        values: Float[Array, "time obs"],
        observed: Bool[Array, "time obs"],
        blur: Float[Array, "*normal"] | float = 0.0,
    ) -> tuple[Float[Array, " state"], Float[Array, "*state"]]:
        """μ and s of h₀; `blur` is added to the standardised values."""
        first = slice(0, self.context)
        seen = self.channels.value(values[first]).reshape(-1) + blur
        code = self.encoder(jnp.where(observed[first].reshape(-1), seen, 0.0), None)
        if not self.spread:
            return code, jnp.zeros(())
        mean, log_sd = jnp.split(code, 2)
        return mean, self.spread * jnp.exp(log_sd)


def encoder_and_decoder(
    latent: Latent,
    batch: Batch,
    states: int,
    names: tuple[str, ...],
    sd: AbstractParameter,
    *,
    positive: tuple[str, ...] = (),
    key: PRNGKeyArray,
) -> tuple[EncodedStart, DecodedObservation]:
    """Untrained maps between the first rows, latent states and observations."""
    encoder_key, decoder_key = jr.split(key)
    observations = len(names)
    activation = ACTIVATIONS[latent.activation]
    out = states * (2 if latent.spread else 1)
    encoder = MLP.init(
        (latent.context * observations, *latent.encoder, out), activation, key=encoder_key
    )
    if latent.spread:
        last = encoder.layers[-1]
        small = last.weight.at[:, states:].multiply(SMALL)
        encoder = eqx.tree_at(lambda m: m.layers[-1].weight, encoder, small)
    decoder = MLP.init((states, *latent.decoder, observations), activation, key=decoder_key)
    channels = Fixed(Standardiser.of(batch.values, batch.observed))
    start = EncodedStart(
        encoder, channels, latent.context, float(latent.spread), float(latent.jitter)
    )
    return start, DecodedObservation(
        decoder=decoder, channels=channels, sd=sd, names=names, positive=positive
    )
